"""The picture of a study: every shape of study is drawn, and what is drawn is what was computed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from wirelessfl.study import Factor, RunRecord, Study, band
from wirelessfl.study.figure import draw_study
from wirelessfl.summary.style import PAGE_IN

SNR = Factor(("uplink.snr_db",), ((-5,), (0,), (5,)))
COUNT = Factor(("clients.count",), ((10,), (50,), (200,)))
ALGORITHM = Factor(("training.algorithm.name",), (("fedavg",), ("fedprox",)))
DEADLINE = Factor(("timing.deadline_s",), ((None,), (0.5,)))
TOGETHER = Factor(("clients.count", "data.limit"), ((2, 20), (4, 40)))
MANY = Factor(("training.epochs",), tuple((number,) for number in range(1, 31)))


def study(folder: Path, factors: tuple[Factor, ...], seeds: int = 3, **changes: Any) -> Study:
    """A study with made-up numbers, of five rounds a run."""
    records, rows = [], []
    random = np.random.default_rng(0)
    for levels in np.ndindex(*(len(factor.levels) for factor in factors)):
        for seed in range(seeds):
            run = f"{levels}-{seed}"
            accuracy = 0.5 + 0.1 * np.arange(5) / 5 + 0.05 * sum(levels) + 0.01 * random.normal(size=5)
            epsilon = np.arange(1.0, 6.0) * (1 + seed)
            records.append(RunRecord(run, tuple(levels), seed, "complete"))
            rows.append(pd.DataFrame({"run": run, "test_accuracy": accuracy, "epsilon_accounted": epsilon}))
    pd.concat(rows).to_parquet(folder / "study.parquet")
    made = Study(folder, "made-up", factors, ("test_accuracy",), tuple(records))
    return replace(made, **changes)


def picture_of(one: Study) -> Path:
    """The PNG of a study."""
    return one.path / "study.png"


def drawn(one: Study, monkeypatch: pytest.MonkeyPatch, width_in: float = PAGE_IN) -> Figure:
    """The figure that is written."""
    kept: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: kept.append(figure))
    draw_study(one, picture_of(one), width_in)
    return kept[0]


@pytest.mark.parametrize(
    ("factors", "rows", "columns"),
    [
        ((), 1, 1),
        ((SNR,), 1, 2),
        ((TOGETHER,), 1, 2),
        pytest.param((SNR, COUNT), 1, 4, marks=pytest.mark.slow),
        ((DEADLINE, ALGORITHM), 1, 3),
        pytest.param((SNR, ALGORITHM, COUNT), 2, 4, marks=pytest.mark.slow),
        ((SNR, ALGORITHM, DEADLINE, COUNT), 4, 4),
        ((Factor(("rounds",), ((5,),)), SNR), 1, 2),  # what does not vary takes no room
        pytest.param((MANY, SNR), 1, 7, marks=pytest.mark.slow),
        pytest.param((SNR, MANY, COUNT), 12, 4, marks=pytest.mark.slow),
    ],
)
def test_every_shape_is_drawn(tmp_path: Path, factors: tuple[Factor, ...], rows: int, columns: int) -> None:
    one = study(tmp_path, factors, seeds=2)
    draw_study(one, picture_of(one))
    assert picture_of(one).read_bytes().startswith(b"\x89PNG")
    with pytest.MonkeyPatch.context() as patch:
        grid = drawn(one, patch).axes
    assert len(grid) == rows * columns


def test_curves_and_bands_are_means_and_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = study(tmp_path, (SNR, COUNT))
    figure = drawn(one, monkeypatch)
    table = one.to_dataframe()
    for column, axes in enumerate(figure.axes[:3]):
        assert axes.get_title() == f"SNR (dB) = {SNR.label(column)}"
        for colour in range(3):
            runs = [100 * table[table["run"] == f"{(column, colour)}-{seed}"]["test_accuracy"] for seed in range(3)]
            expected = band(runs)
            line = axes.lines[colour]
            assert np.asarray(line.get_xdata()).tolist() == [1, 2, 3, 4, 5]
            assert np.asarray(line.get_ydata()) == pytest.approx(expected.mean)
            corners = np.asarray(axes.collections[colour].get_paths()[0].vertices)
            assert np.max(corners[:, 1]) == pytest.approx(np.max(expected.mean + expected.half_width))
            assert np.min(corners[:, 1]) == pytest.approx(np.min(expected.mean - expected.half_width))
    last = figure.axes[3]
    for colour, container in enumerate(last.containers):
        line = container[0]
        curves = [figure.axes[column].lines[colour].get_ydata() for column in range(3)]
        assert np.asarray(line.get_ydata()) == pytest.approx([np.asarray(curve)[-1] for curve in curves])


def test_the_legend_tells_the_levels_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = drawn(study(tmp_path, (SNR, COUNT)), monkeypatch)
    (legend,) = figure.legends
    assert legend.get_title().get_text() == "number of clients"
    assert [text.get_text() for text in legend.get_texts()] == ["10", "50", "200"]
    assert len({line.get_color() for line in figure.axes[0].lines}) == 3


def test_every_level_looks_different_up_to_twenty_eight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = drawn(study(tmp_path, (MANY,), seeds=1), monkeypatch)
    looks = [(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines]
    assert len(set(looks[:28])) == 28


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = study(tmp_path, (SNR,))
    records = tuple(
        replace(record, status="failed") if record.levels == (0,) or record.seed == 2 else record
        for record in one.records
    )
    figure = drawn(replace(one, records=records), monkeypatch)
    assert figure.get_suptitle() == "made-up: mean and 95 % confidence over 3 seeds; 5 of 9 runs missing"
    assert len(np.asarray(figure.axes[0].lines[0].get_xdata())) == 0


def test_nothing_finished_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = study(tmp_path, (SNR,))
    none = replace(one, records=tuple(replace(record, status="failed") for record in one.records))
    figure = drawn(none, monkeypatch)
    assert [text.get_text() for text in figure.texts if "no run" in text.get_text()] == ["no run has ended well"]


def test_one_seed_says_so_and_has_no_band(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = drawn(study(tmp_path, (SNR,), seeds=1), monkeypatch)
    assert figure.get_suptitle() == "made-up: one seed"
    paths = [path for collection in figure.axes[0].collections for path in collection.get_paths()]
    assert all(np.asarray(path.vertices).size == 0 for path in paths)


def test_a_wide_numeric_factor_and_epsilon_are_logarithmic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = study(tmp_path, (COUNT, SNR), metrics=("test_accuracy", "epsilon_accounted"))
    figure = drawn(one, monkeypatch)
    assert [axes.get_yscale() for axes in figure.axes] == ["linear"] * 4 + ["log"] * 4
    assert figure.axes[3].get_xscale() == "log"
    assert [label.get_text() for label in figure.axes[3].get_xticklabels()] == ["10", "50", "200"]


def test_infinite_epsilon_is_not_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = study(tmp_path, (SNR,), metrics=("epsilon_accounted",))
    table = one.to_dataframe().assign(epsilon_accounted=np.inf)
    table.to_parquet(one.folder.table)
    figure = drawn(one, monkeypatch)
    assert [len(np.asarray(line.get_xdata())) for line in figure.axes[0].lines] == [0, 0, 0]


def test_wide_bands_do_not_drown_the_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = study(tmp_path, (SNR,), seeds=2)
    table = one.to_dataframe()
    table.loc[table["run"].str.endswith("-1"), "test_accuracy"] += 0.4  # half width 12.7 · 0.2 = 254 points
    table.to_parquet(one.folder.table)
    low, high = drawn(one, monkeypatch).axes[0].get_ylim()
    means = 100 * (0.7 + np.array([0.0, 0.18]))
    span = means[1] - means[0]
    assert low < means[0] and high > means[1]
    assert high - low < 4 * span


ODD = Factor(("data.dataset.root",), (("$\\nope$",), ("_under",), ("a^b$c$\\",), ("x\ny$",)))


@pytest.mark.parametrize(
    "factors",
    [(ODD,), (ODD, SNR), (SNR, ODD), (SNR, ODD, COUNT)],
    ids=["alone", "columns", "colours", "rows"],
)
def test_values_of_a_study_are_no_mathematics(
    tmp_path: Path, factors: tuple[Factor, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matplotlib would parse what lies between two dollars, and leaves an underscored label out of the legend."""
    one = study(tmp_path, factors, name="$\\nope$")
    draw_study(one, picture_of(one))
    assert picture_of(one).read_bytes().startswith(b"\x89PNG")
    if factors[-1] is ODD:
        legend = drawn(one, monkeypatch).legends[0]
        assert [text.get_text() for text in legend.get_texts()] == [ODD.label(level) for level in range(4)]
