"""Curves of a study over rounds, seconds, energy and ε: means of steps, and what has no place is said."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.study.studies import InlineWorkers, design
from tests.study.test_figure import ALGORITHM, SNR, drawn
from wirelessfl.errors import InputError
from wirelessfl.study import Factor, RunRecord, Study, band, open_study, run_study
from wirelessfl.study.curves import StudyCurves
from wirelessfl.summary.axes import XAxis
from wirelessfl.summary.curves import STEPS_SENTENCE


def made_up(folder: Path, factors: tuple[Factor, ...], x: tuple[XAxis, ...], seeds: int = 3) -> Study:
    """A study whose seeds differ in seconds, joules, ε and length; the last point of the last factor is not private."""
    random = np.random.default_rng(1)
    records, tables = [], []
    for levels in np.ndindex(*(len(factor.levels) for factor in factors)):
        for seed in range(seeds):
            rounds = 6 + seed
            records.append(RunRecord(run := f"{levels}-{seed}", levels, seed, "complete"))
            private = levels[-1] < len(factors[-1].levels) - 1
            accuracy = np.where(np.arange(rounds) % 2 == 1, np.sort(random.random(rounds)), np.nan)
            table = {
                **{"run": run, "round": np.arange(1, rounds + 1), "test_accuracy": accuracy},
                **{"sim_time": np.cumsum(random.random(rounds)), "energy": random.random(rounds)},
                "epsilon_accounted": np.cumsum(random.random(rounds)) if private else np.inf,
                **{"tx_energy": 1.0, "jammer_energy": np.nan},
            }
            tables.append(pd.DataFrame(table))
    pd.concat(tables).to_parquet(folder / "study.parquet")
    return Study(folder, "made-up", factors, ("test_accuracy",), tuple(records), x)


def held(place: float, places: list[float], values: list[float]) -> float:
    """What holds at a place: the last value until then."""
    return [value for at, value in zip(places, values, strict=True) if at <= place and not math.isnan(value)][-1]


@pytest.mark.parametrize("x", ["sim_time", "energy", "epsilon"])
def test_means_of_seeds_are_those_of_their_steps(tmp_path: Path, x: XAxis) -> None:
    study = made_up(tmp_path, (SNR,), (x,))
    curve = StudyCurves(study).curve("test_accuracy", (0,), x)
    runs = []
    for _, rows in study.to_dataframe().head(3 * 7).groupby("run"):
        column = {"sim_time": rows["sim_time"], "energy": rows["energy"].cumsum(), "epsilon": rows["epsilon_accounted"]}
        runs.append((column[x].tolist(), (100 * rows["test_accuracy"]).tolist()))
    known = [[at for at, value in zip(*run, strict=True) if not math.isnan(value)] for run in runs]
    assert curve.x[0] == max(places[0] for places in known) and curve.x[-1] == min(places[-1] for places in known)
    for at, place in enumerate(curve.x.tolist()):
        expected = band([[held(place, *run)] for run in runs])
        assert curve.mean.mean[at] == pytest.approx(expected.mean[0])
        assert curve.mean.half_width[at] == pytest.approx(expected.half_width[0])


def test_one_seed_is_drawn_as_it_is(tmp_path: Path) -> None:
    study = made_up(tmp_path, (SNR,), ("sim_time",), seeds=1)
    curve = StudyCurves(study).curve("test_accuracy", (1,), "sim_time")
    rows = study.to_dataframe().query("run == '(1,)-0'").dropna(subset="test_accuracy")
    np.testing.assert_array_equal(curve.x, rows["sim_time"])
    np.testing.assert_allclose(curve.mean.mean, 100 * rows["test_accuracy"])


def test_axes_stand_side_by_side_and_name_what_is_not_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = made_up(tmp_path, (SNR,), ("round", "sim_time", "energy", "epsilon"))
    figure = drawn(study, monkeypatch)
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert labels == ["round", "simulated time (s)", "energy so far (J)", "ε accounted so far"]
    note = figure.texts[-1].get_text()
    assert note == STEPS_SENTENCE and figure.get_suptitle().count("\n") == 0
    assert [len(np.asarray(line.get_xdata())) > 0 for line in figure.axes[3].lines] == [True, True, False]
    (words,) = [text.get_text() for text in figure.axes[3].texts]
    assert "5: not drawn, the accounted ε is ∞" in " ".join(words.split())
    assert not figure.axes[1].texts
    narrow = drawn(study, monkeypatch, width_in=3.5)
    note = narrow.texts[-1].get_text()
    assert " ".join(note.split()) == STEPS_SENTENCE and note.count("\n") == 1
    assert [spec.rowspan.start for axes in narrow.axes if (spec := axes.get_subplotspec())] == [0, 0, 1, 1]
    assert [axes.get_xlabel() for axes in narrow.axes] == labels
    assert StudyCurves(study).remarks() == ["over epsilon, uplink.snr_db=5: not drawn, the accounted ε is ∞"]


def test_with_two_factors_an_axis_has_rows_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = made_up(tmp_path, (SNR, ALGORITHM), ("round", "energy"))
    figure = drawn(study, monkeypatch)
    assert len(figure.axes) == 4 + 3  # the last round is shown once
    assert [axes.get_xlabel() for axes in figure.axes] == [
        *["round"] * 3,
        "SNR (dB)",
        *["energy so far (J)"] * 3,
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon_accounted": np.inf}, "not drawn, the accounted ε is ∞ at 1 of 3 seeds"),
        ({"energy": np.nan, "tx_energy": np.nan}, "not drawn, no energy is counted at 1 of 3 seeds"),
    ],
)
def test_one_seed_without_a_place_is_counted(tmp_path: Path, change: dict[str, float], words: str) -> None:
    study = made_up(tmp_path, (SNR,), ("round",))
    table = study.to_dataframe()
    table.loc[table["run"] == "(0,)-1", list(change)] = list(change.values())
    table.to_parquet(study.folder.table)
    x: XAxis = "epsilon" if "epsilon_accounted" in change else "energy"
    curve = StudyCurves(study).curve("test_accuracy", (0,), x)
    assert len(curve.x) == 0 and curve.missing == words


def test_energies_of_two_units_are_refused(tmp_path: Path) -> None:
    study = made_up(tmp_path, (SNR,), ("energy",))
    table = study.to_dataframe()
    table.loc[table["run"].str.startswith("(1,)"), "energy"] = np.nan
    table.to_parquet(study.folder.table)
    with pytest.raises(InputError, match=r"uplink\.snr_db=0\).*uplink\.tx_power_dbm"):
        StudyCurves(study).curve("test_accuracy", (0,), "energy")


@pytest.mark.slow
def test_a_study_that_ran(tmp_path: Path, inline: InlineWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ideal point, an asynchronous one that evaluates every other step, and failed runs, over all axes."""
    uplinks: list[Any] = [{"kind": "over_the_air"}, {"kind": "ideal"}, {"kind": "digital", "access": "ofdma"}]
    modes: list[Any] = [{"mode": "synchronous"}, {"mode": "synchronous"}, {"mode": "asynchronous", "buffer": 2}]
    together = {"uplink": uplinks, "aggregation": modes}
    plan = design(
        tmp_path, zip=together, seeds=2, x=["round", "sim_time", "energy", "epsilon"], set={"evaluate.every": 2}
    )
    study = run_study(plan, tmp_path / "out")
    assert open_study(study.path).x == study.x == ("round", "sim_time", "energy", "epsilon")
    remarks = StudyCurves(study).remarks()
    assert sum("no energy" in words for words in remarks) == 1 and sum("∞" in words for words in remarks) == 2
    broken = replace(
        study, records=tuple(replace(one, status="failed") for one in study.records[:1]) + study.records[1:]
    )
    figure = drawn(broken, monkeypatch)
    assert len(figure.axes) == 4 and "1 of 6 runs missing" in figure.get_suptitle()
    assert figure.axes[2].get_xlabel() == "energy sent so far (noise = 1)"
