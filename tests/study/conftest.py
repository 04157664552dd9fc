"""A finished study that several tests look at, and workers that cost no process."""

from __future__ import annotations

import pytest

from tests.study.studies import InlineWorkers, design
from wirelessfl.study import Study, run_study, runner


def work_inline(patch: pytest.MonkeyPatch, workers: InlineWorkers) -> None:
    """Have studies computed in this process."""
    patch.setattr(runner, "LocalWorkers", lambda *_: workers)


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> InlineWorkers:
    """Workers inside this process, for everything that is not about processes."""
    workers = InlineWorkers()
    work_inline(monkeypatch, workers)
    return workers


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study of four points and two seeds, run to its end."""
    folder = tmp_path_factory.mktemp("finished")
    plan = design(folder, grid={"uplink.snr_db": [0, 10], "clients.count": [3, 6]}, seeds=2)
    with pytest.MonkeyPatch.context() as patch:
        work_inline(patch, InlineWorkers())
        return run_study(plan, folder / "out", threads=1)
