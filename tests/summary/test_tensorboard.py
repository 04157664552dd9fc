"""Event files for TensorBoard: what goes into them, and what is said where they cannot be written."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.cli import main
from wirelessfl.errors import InputError, OutputError
from wirelessfl.simulation import FinishedRound, Round
from wirelessfl.summary import TensorBoardLog


def finished(index: int, **values: float) -> FinishedRound:
    """A round of which nothing is known but some values."""
    this = FinishedRound(Round(index, np.arange(2)))
    this.__dict__["values"] = values
    return this


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a writer that writes nothing was told; torch's own needs a package that need not be there."""
    calls: list[Any] = []

    def writer(folder: str, *, purge_step: int) -> SimpleNamespace:
        calls.append(("open", folder, purge_step))
        return SimpleNamespace(add_scalar=lambda *what: calls.append(what), close=lambda: calls.append("close"))

    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    return calls


def test_every_value_there_is_on_its_card(calls: list[Any], tmp_path: Path) -> None:
    with TensorBoardLog(tmp_path / "log") as log:
        log(finished(3, test_accuracy=0.5, epsilon_accounted=math.inf, test_loss=math.nan))
        log(finished(4, sim_time=2.0, energy=0.25, server_gain=7.0))
    assert calls == [
        ("open", str(tmp_path / "log"), 3),
        ("learning/test_accuracy", 0.5, 3),
        ("privacy/epsilon_accounted", math.inf, 3),
        ("cost/sim_time", 2.0, 4),
        ("cost/energy_j", 0.25, 4),
        ("radio/server_gain", 7.0, 4),
        "close",
    ]


def test_a_run_without_rounds_leaves_nothing(calls: list[Any], tmp_path: Path) -> None:
    with TensorBoardLog(tmp_path / "log"):
        pass
    assert calls == []
    assert not (tmp_path / "log").exists()


def test_a_place_that_cannot_be_written(calls: list[Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError, match="is not a writable folder"):
            TensorBoardLog(place)
    assert calls == []


@pytest.mark.slow
def test_the_command_logs_beside_the_trace_or_where_it_is_told(calls: list[Any], tmp_path: Path) -> None:
    arguments = [
        "simulate",
        "quickstart",
        "--set",
        "rounds=1",
        "--quiet",
        "--out",
        str(tmp_path / "x"),
        "--tensorboard",
    ]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert calls[0] == ("open", str(tmp_path / "x" / "tensorboard"), 1)
    assert ("cost/airtime", wfl.open_trace(tmp_path / "x" / "trace.h5")["airtime"].item(), 1) in calls
    calls.clear()
    assert CliRunner().invoke(main, [*arguments, str(tmp_path / "y"), "--overwrite"]).exit_code == 0
    assert calls[0] == ("open", str(tmp_path / "y"), 1)


def test_without_the_package_one_line_and_no_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"pip install 'wirelessfl\[tensorboard\]'"):
        TensorBoardLog(tmp_path)
    result = CliRunner().invoke(main, ["simulate", "quickstart", "--out", str(tmp_path / "x"), "--tensorboard"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_what_tensorboard_reads_is_the_trace_also_after_a_resumed_run(tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    scenario = small(rounds=4)

    def stop_after_two(this: FinishedRound) -> None:
        log(this)
        if this.index == 3:  # as if killed after the log was written and before the round was on disk
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), TensorBoardLog(tmp_path / "tensorboard") as log:
        wfl.simulate(scenario, tmp_path, threads=1, on_round=stop_after_two, pictures=False)
    with TensorBoardLog(tmp_path / "tensorboard") as log:
        result = wfl.simulate(scenario, tmp_path, threads=1, resume=True, on_round=log, pictures=False)
    events = reader.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    series = events.Scalars("learning/test_accuracy")
    assert [event.step for event in series] == [1, 2, 3, 4]
    expected = wfl.open_trace(result.trace)["test_accuracy"].values.astype(np.float32)
    np.testing.assert_array_equal([event.value for event in series], expected)
