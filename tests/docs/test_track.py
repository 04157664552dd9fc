"""The page on trackers hands them every round, with stand-ins and with those that are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PageRun, blocks
from tests.docs.stand_ins import TRACKERS, missing, put_in_place

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "track.md"
MOST_LINES = 10


def carry_out(name: str) -> None:
    """The block of the page on one tracker."""
    run = PageRun()
    try:
        run.carry_out(
            next(block for block in blocks(PAGE.read_text(encoding="utf-8")) if f"import {name}" in block.text), None
        )
    finally:
        run.close()


@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_gets_every_round(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tracker = put_in_place(monkeypatch, (name,))[name]
    carry_out(name)
    assert [step for step, _ in tracker.steps] == [1, 2] and tracker.ended and tracker.settings
    assert {"test_accuracy", "epsilon_published", "epsilon_accounted"} <= tracker.steps[-1][1].keys()
    assert all(Path(folder, "trace.h5").exists() for folder in tracker.folders)


@pytest.mark.parametrize("name", TRACKERS)
def test_it_takes_few_lines(name: str) -> None:
    text = next(block.text for block in blocks(PAGE.read_text(encoding="utf-8")) if f"import {name}" in block.text)
    written = [line for line in text.splitlines() if line.strip() and not line.startswith(("import", "from"))]
    assert len(written) <= MOST_LINES


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", TRACKERS)
def test_the_tracker_itself_takes_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing((name,)):
        pytest.skip(f"{name} is not installed")
    monkeypatch.chdir(tmp_path)
    store = (tmp_path / "mlruns").as_uri()
    offline = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "HOME": str(tmp_path)}
    files = {"MLFLOW_TRACKING_URI": store, "MLFLOW_ALLOW_FILE_STORE": "true"}  # its database is not in mlflow-skinny
    for variable, value in (offline | files).items():
        monkeypatch.setenv(variable, value)
    carry_out(name)
    assert any(path.name.startswith(("wandb", "mlruns", "mlflow")) for path in tmp_path.iterdir())
