"""A run that turns at a last digit is measured by how far each of its numbers moves when it is disturbed."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from publications.check import check_runs, compare_run
from publications.drift import Drift, own_drift
from publications.stored import Stored
from publications.tables import LEARNT, RunRow
from tests.publications.rerun import ABROAD, changed, disturbed_as, origin_here, stored_as


@pytest.mark.parametrize(
    ("then", "now", "samples"), [(0.7133, 0.7099, 10_000), (0.84031, 0.84012, 16_281)], ids=["mnist", "adult"]
)
def test_the_runs_that_were_older_than_the_noise_are_found(
    row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: float, now: float, samples: int
) -> None:
    """Both cases of the issue, of processors that nobody knows: by their accuracy alone, however far losses drift."""
    seeds = [0.6, 0.8]
    monkeypatch.setattr(Stored, "tested", lambda *_: samples)
    numbers = {**row.numbers, "test_accuracy": then}
    others = [replace(row, seed=50 + at, numbers={**numbers, "test_accuracy": x}) for at, x in enumerate(seeds)]
    one = stored_as(replace(row, numbers=numbers, provenance=origin_here(processor="")), *others)
    assert one.spread["test_accuracy"] > 0.03
    for moved in (0.0, 1 / samples):  # of the accuracy itself: not at all, or by one sample
        disturbed_as(monkeypatch, {**row.numbers, "test_accuracy": now}, {"test_accuracy": moved}, {"test_loss": 0.5})
        found = check_runs([one], tmp_path)
        if (then, moved) == (0.84031, 1 / samples):
            assert found == []  # three samples lie within five drifts of one
        else:
            assert f"test_accuracy is {now}, recorded is {then}" in found[0]
            assert f"test_accuracy moves by {moved:.2g}" in found[0] and "loss" not in found[0]


def test_a_number_that_rounding_moves_may_lie_as_far_off(
    row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Disturbed by 2^-22 of its rate, up or down: five times what this number moves by, and no other."""
    monkeypatch.setattr(Stored, "tested", lambda *_: 10_000)
    rates = disturbed_as(monkeypatch, row.numbers, {}, {"test_loss": 0.001})
    near = changed(row, "test_loss", 1.004, origin_here(**ABROAD))
    differing, how = compare_run(near, tmp_path)
    assert differing == [] and how.endswith("; disturbed by rounding, here itself test_loss moves by 0.001")
    rate = near.run.scenario.training.optimizer.lr
    assert rates == [None, rate * (1 + 2**-22), rate * (1 - 2**-22)]
    assert len(compare_run(changed(row, "test_loss", 1.006, origin_here(**ABROAD)), tmp_path)[0]) == 1
    assert len(compare_run(changed(row, "train_loss", 1.004, origin_here(**ABROAD)), tmp_path)[0]) == 1
    assert len(compare_run(changed(row, "test_accuracy", 1.01, origin_here(**ABROAD)), tmp_path)[0]) == 1


@pytest.mark.parametrize(
    ("moved", "off", "count"),
    [(0.0005, 0.0024, 0), (0.0005, 0.0026, 1), (0.001, 0.0029, 0), (0.001, 0.0034, 1), (0.1, 0.49, 0), (0.09, 0.49, 1)],
)
def test_an_accuracy_that_is_steady_itself_lies_no_further_off_than_0003(
    row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: float, off: float, count: int
) -> None:
    """Five times its own drift, but 0.003 at most unless it moves by as much itself; a trial at rate 32 does."""
    monkeypatch.setattr(Stored, "tested", lambda *_: 10_000)
    known = replace(row, numbers={**row.numbers, "test_accuracy": 0.25})
    disturbed_as(monkeypatch, known.numbers, {"test_accuracy": moved}, {"test_loss": 10.0})
    one = changed(known, "test_accuracy", 1 + off / 0.25, origin_here(**ABROAD))
    assert len(compare_run(one, tmp_path)[0]) == count


@pytest.mark.parametrize("name", ["epsilon_accounted", "jammer_gain"])
def test_a_drift_with_other_accounts_is_not_known(
    row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A rate times clip that equals τ: a little more, and a whole update is accounted for, or a jammer sends more."""
    known = replace(row, numbers={**row.numbers, name: 3.0})
    disturbed_as(monkeypatch, known.numbers, {name: 1.0}, {"test_loss": 0.5, "test_accuracy": 0.5})
    for metric, factor in (("test_loss", 1.004), ("test_accuracy", 1.05)):
        (differing,), how = compare_run(changed(known, metric, factor, origin_here(**ABROAD)), tmp_path)
        assert differing.startswith(f"{metric} is ")
        assert f"; its own drift is not known, for disturbed by rounding it has other {name} too" in how
        assert how.endswith("the first limit decides")
    assert compare_run(changed(known, "test_loss", 1 + 9e-7, origin_here(**ABROAD)), tmp_path)[0] == []


@pytest.mark.parametrize("unknown", [math.inf, math.nan])
def test_an_infinite_drift_is_not_usable(
    row: RunRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unknown: float
) -> None:
    disturbed_as(monkeypatch, row.numbers, {"test_loss": unknown}, {})
    for factor in (1.004, math.inf, math.nan):
        (differing,), how = compare_run(changed(row, "test_loss", factor, origin_here(**ABROAD)), tmp_path)
        assert differing.startswith("test_loss is ")
        assert how.endswith("test_loss moves by inf (not usable: the first limit decides)")
    assert Drift({"test_loss": unknown}).allows("test_loss", 5.0) == 0


def test_a_run_is_disturbed_by_its_rate(row: RunRow, tmp_path: Path) -> None:
    """Logistic regression at a small rate moves by about as much as the rate, and what it accounts for does not."""
    one = stored_as(row)
    drift = own_drift(one, one.made_again(tmp_path / "now"), tmp_path)
    assert drift.changed == () and drift.moves.keys() == set(LEARNT)
    assert 0 < drift.moves["test_loss"] < 1e-6 and drift.moves["test_accuracy"] == 0
