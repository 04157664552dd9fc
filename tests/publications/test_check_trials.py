"""Trials of tuning are made again, as runs of studies are."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wirelessfl as wfl
from publications import catalogue, stored, tuning_runs
from publications.check import check_runs
from publications.noted import unwatched
from publications.stored import Stored, foreign_trials, stored_runs, stored_trials
from publications.sweeps import SWEEPS
from publications.tables import Tables
from publications.tuning import Sweep, Trial, TunedMethod
from tests.publications.example import ABOUT
from tests.publications.rerun import PAPER, command
from wirelessfl.errors import MissingDataError

BASE = """
name: e
rounds: 1
data: {partition: {scheme: iid}}
clients: {count: 3}
model: {name: logistic}
training: {steps: 4, epochs: null}
uplink: {kind: ideal}
trace: {events: false, models: none}
"""


@pytest.fixture
def tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Sweep, list[Trial], Path]:
    """A sweep of two rates and two seeds, its trials, and the folder of its results."""
    monkeypatch.setitem(catalogue.PAPERS, "tiny", PAPER)
    monkeypatch.setattr(stored, "load_designs", lambda paper, size, overrides: {})
    studies = tmp_path / "studies"
    (studies / "tiny" / "small").mkdir(parents=True)
    (studies / "tiny" / "base.yaml").write_text(BASE, encoding="utf-8")
    (studies / "tiny" / "small" / "one.yaml").write_text("{base: ../base.yaml, seeds: 1}", encoding="utf-8")
    monkeypatch.setattr(tuning_runs, "STUDIES", studies)
    rate = "training.optimizer.lr"
    method = TunedMethod("m", {}, {rate: (0.1, 0.5)}, {rate: 0.1})
    sweep = Sweep("s", "Digits", "small", "one", 2, (method,), {}, {}, seeds=(8, 9))
    monkeypatch.setitem(SWEEPS, "tiny", (sweep,))
    trials = tuning_runs.run_sweep("tiny", sweep, tmp_path / "work", "", unwatched, workers=1)
    folder = tmp_path / "papers" / "tiny"
    tuning_runs.write_trials(folder, sweep, trials)
    return sweep, trials, folder


def test_trials_of_a_sweep_are_made_again(tried: tuple[Sweep, list[Trial], Path], tmp_path: Path) -> None:
    """To the digits that are stored; elsewhere to one sample, and the loss, which decides between equals, to 1 %."""
    sweep, trials, folder = tried
    first, *_, last = stored_trials(PAPER, "small", folder)
    assert not last.digits and first.text().startswith("small, tuning-s, training.optimizer.lr=0.1")
    assert first.spread["validation_accuracy"] == pytest.approx(
        abs(trials[0].accuracy - trials[1].accuracy) / 2**0.5, abs=1e-5
    )
    assert check_runs([first, last], tmp_path / "again") == []

    def told(one: Trial, **numbers: Any) -> list[str]:
        tuning_runs.write_trials(folder, sweep, [*trials[:3], replace(one, **numbers)])
        *_, found = stored_trials(PAPER, "small", folder)
        return check_runs([found], tmp_path / f"{one.provenance.processor}-{numbers}")

    here, there = trials[3], replace(trials[3], provenance=replace(trials[3].provenance, processor="Z80"))
    for one in (here, there):
        (line,) = told(one, accuracy=one.accuracy + 0.02)
        assert line.startswith("small, tuning-s, training.optimizer.lr=0.5") and "): validation_accuracy is " in line
        assert len(told(one, loss=1.02 * one.loss)) == 1
    assert len(told(here, loss=1.005 * here.loss)) == 1
    assert told(there, loss=1.005 * there.loss) == told(there) == []


@pytest.mark.parametrize("there", [True, False])
def test_without_the_data_of_a_paper_nothing_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    """Synthetic rows in the form of adult give other runs: refused, unless a study asks for them."""
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    source = "synthetic" if there else "auto"
    base = BASE.replace("data: {", f"data: {{dataset: {{name: adult, source: {source}}}, ")
    (tmp_path / "base.yaml").write_text(base, encoding="utf-8")
    (tmp_path / "one.yaml").write_text("base: base.yaml\nseeds: 1\n", encoding="utf-8")
    design = wfl.load_study(tmp_path / "one.yaml")
    monkeypatch.setattr(stored, "load_designs", lambda paper, size, overrides: {"one": design})
    monkeypatch.setattr(stored, "tuning_design", lambda paper, sweep, method: design)
    method = TunedMethod("m", {}, {"a": (1,)}, {"a": 1})
    sweep = Sweep("s", "", "small", "one", 1, (method,), {}, {}, seeds=(8,))
    monkeypatch.setitem(SWEEPS, "tiny", (sweep,))
    tuning_runs.write_trials(tmp_path, sweep, [Trial("m", 0, 8, 0.5, 1.0, 1.0, design.runs[0].id)])
    found = (
        lambda: [*stored_runs(PAPER, Tables({**ABOUT}, {}))],
        lambda: [*stored_trials(PAPER, "small", tmp_path)],
        lambda: [*foreign_trials(PAPER, "small", tmp_path)],
    )
    for one in found:
        with nullcontext() if there else pytest.raises(MissingDataError, match=r"tiny: found no files of adult.*_DATA"):
            one()


def test_a_trial_of_an_earlier_grid_is_told(
    tried: tuple[Sweep, list[Trial], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It cannot be made again: the sweep as it stands does not have it."""
    sweep, trials, folder = tried
    assert [*foreign_trials(PAPER, "small", folder)] == []
    tuning_runs.write_trials(folder, sweep, [*trials[:3], replace(trials[3], run="0" * 16)])
    assert [*foreign_trials(PAPER, "small", folder)] == ["tuning-s.csv: 1 of 4 trials are not of the sweep"]
    (folder / "about.json").write_text(wfl.to_json({**ABOUT, "seeds": {}, "runs": {}}), encoding="utf-8")
    (folder / "claims.csv").write_text("", encoding="utf-8")
    again = dict(zip(tuning_runs.TOLD, (trials[1].accuracy, trials[1].loss, trials[1].epsilon), strict=True))
    monkeypatch.setattr(Stored, "made_again", lambda *_: again)
    assert command("tiny", "--sample", "1", "--out", str(tmp_path)) == 4
    captured = capsys.readouterr()
    assert "tiny: 1 of the 3 runs and tuning trials of size small" in captured.out
    assert "tiny, small, tuning-s, training.optimizer.lr=0.1, seed 9: the same" in captured.out
    assert "1 differences:\n  tiny, small, tuning-s.csv: 1 of 4 trials are not of the sweep" in captured.err
