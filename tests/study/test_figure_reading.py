"""How the figure of a study reads: intervals where they are drawn, categories as points, words, any width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.speed import rest_slow
from tests.study.test_figure import ALGORITHM, COUNT, DEADLINE, MANY, SNR, study
from tests.summary.reading import assert_readable, figures_of
from wirelessfl.study import Factor, Study, band
from wirelessfl.study.figure import draw_study
from wirelessfl.study.words import factor_words, key_words, level_words
from wirelessfl.summary.style import COLUMN_IN, PAGE_IN

UPLINKS = Factor(("uplink",), (({"kind": "over_the_air"},), ({"kind": "digital"},), ({"kind": "secure_aggregation"},)))
BOTH = ("test_accuracy", "epsilon_accounted")


def figure_of(one: Study, width: float = PAGE_IN) -> Figure:
    """The figure of a study, drawn."""
    return figures_of(lambda: draw_study(one, Path("study.png"), width), "wirelessfl.summary.drawing")[0]


def test_means_and_bands_of_a_logarithmic_axis_are_those_of_the_logarithms(tmp_path: Path) -> None:
    one = study(tmp_path, (SNR, COUNT), metrics=BOTH)
    axes = figure_of(one).axes[4]
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "ε accounted\ngeometric mean"
    table = one.to_dataframe()
    runs = [np.log10(table[table["run"] == f"(0, 0)-{seed}"]["epsilon_accounted"].to_numpy()) for seed in range(3)]
    expected = band(runs)
    assert np.asarray(axes.lines[0].get_ydata()) == pytest.approx(10**expected.mean)
    corners = np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1]
    assert corners.min() == pytest.approx(np.min(10 ** (expected.mean - expected.half_width)))
    assert corners.max() == pytest.approx(np.max(10 ** (expected.mean + expected.half_width)))
    assert corners.min() > 0 and axes.get_ylim()[0] > 0
    assert figure_of(study(tmp_path, (SNR, COUNT), seeds=1, metrics=BOTH)).axes[4].get_ylabel() == "ε accounted"


@pytest.mark.parametrize(("level", "edge"), [(0.97, 100.0), (0.03, 0.0)])
def test_no_band_leaves_the_range_of_an_accuracy(tmp_path: Path, level: float, edge: float) -> None:
    one = study(tmp_path, (SNR, ALGORITHM), seeds=2)
    table = one.to_dataframe()
    table["test_accuracy"] = level + np.where(table["run"].str.endswith("-1"), 0.02, -0.02)
    table.to_parquet(one.folder.table)
    figure = figure_of(one)
    bands = [collection for axes in figure.axes[:3] for collection in axes.collections]
    edges = np.concatenate([np.asarray(path.vertices)[:, 1] for one in bands for path in one.get_paths()])
    assert edges.min() >= 0 and edges.max() <= 100 and edge in edges
    for axes in figure.axes:
        assert axes.get_ylim()[0] >= 0 and axes.get_ylim()[1] <= 100
    for _, caps, _ in figure.axes[3].containers:
        ends = np.concatenate([np.asarray(cap.get_ydata()) for cap in caps])
        assert ends.min() >= 0 and ends.max() <= 100


def test_categories_are_points_and_numbers_are_joined(tmp_path: Path) -> None:
    def last(*factors: Factor) -> list[str]:
        return [container[0].get_linestyle() for container in figure_of(study(tmp_path, factors)).axes[-1].containers]

    assert set(last(SNR, ALGORITHM)) == {"-"}
    assert set(last(ALGORITHM, SNR)) == {"None"}
    assert set(last(UPLINKS)) == {"None"} and set(last(DEADLINE, ALGORITHM)) == {"None"}


def test_levels_have_words() -> None:
    together = Factor(
        ("uplink", "training.privacy"),
        (({"kind": "over_the_air"}, {"clip": 1}), ({"kind": "digital"}, {"clip": 1}), ({"kind": "ideal"}, {"clip": 2})),
    )
    assert level_words(together) == ("over the air", "digital", "ideal") and factor_words(together) == "uplink"
    assert together.short_name == "uplink"
    plugins = Factor(("uplink.power_control.policy",), (("full_power",), ("mine.policies:Half_Power",)))
    assert level_words(plugins) == ("full power", "Half_Power")
    same = Factor(("uplink.power_control.policy",), (("one:Policy",), ("two:Policy",)))
    assert level_words(same) == ("one:Policy", "two:Policy")
    paths = Factor(("channel.fading.file",), (("my_gains.h5",), ("../a_b/c.h5",)))
    assert level_words(paths) == ("my_gains.h5", "../a_b/c.h5")
    assert level_words(Factor(("timing.deadline_s",), ((0.1,), (None,)))) == ("0.1", "none")
    assert level_words(COUNT) == tuple(COUNT.label(level) for level in range(len(COUNT.levels)))


@pytest.mark.parametrize("width", [COLUMN_IN, PAGE_IN])
def test_long_names_of_levels_leave_the_panels_their_height(tmp_path: Path, width: float) -> None:
    names = Factor(("uplink.power_control.policy",), (("cross_layer",), ("strongest:StrongestShareOfAllClients",)))
    for factors in ((names, COUNT), (names,)):
        figure = figure_of(study(tmp_path, factors, seeds=2), width)
        assert_readable(figure)
        assert min(axes.get_window_extent().height for axes in figure.axes) / figure.dpi > 0.8


@pytest.mark.parametrize("levels", [2, 9, 16])
def test_points_beside_each_other_stay_in_their_panel(tmp_path: Path, levels: int) -> None:
    many = Factor(("training.batch_size",), tuple((size,) for size in range(1, levels + 1)))
    last = figure_of(study(tmp_path, (SNR, many), seeds=2)).axes[-1]
    panel = last.get_window_extent()
    for line in (container[0] for container in last.containers):
        places = line.get_transform().transform(np.column_stack([line.get_xdata(), line.get_ydata()]))[:, 0]
        assert places.min() > panel.x0 and places.max() < panel.x1


def test_categories_alone_have_the_colours_of_their_curves(tmp_path: Path) -> None:
    curves, last = figure_of(study(tmp_path, (UPLINKS,))).axes
    points = [container[0] for container in last.containers]
    assert [point.get_color() for point in points] == [line.get_color() for line in curves.lines]


@pytest.mark.parametrize("width", rest_slow([COLUMN_IN, PAGE_IN]))
@pytest.mark.parametrize(
    "factors",
    [(SNR, COUNT), (UPLINKS,), (COUNT, UPLINKS), (SNR, ALGORITHM, DEADLINE), (MANY, SNR)],
    ids=lambda factors: "-".join(factor.keys[0] for factor in factors),
)
def test_no_text_is_cut_off_or_hidden(tmp_path: Path, factors: tuple[Factor, ...], width: float) -> None:
    one = study(tmp_path, factors, seeds=2, metrics=BOTH, name="a study with a rather long name, as people give them")
    figure = figure_of(one, width)
    assert figure.get_figwidth() == width
    assert_readable(figure)
    assert min(axes.get_window_extent().width for axes in figure.axes) / figure.dpi > 0.8, "panels wide enough to read"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("uplink.receiver.antennas", "antennas (receiver)"),
        ("uplink.jammer.antennas", "antennas (jammer)"),
        ("uplink.snr_db", "SNR (dB)"),
        ("clients.count", "number of clients"),
        ("timing.deadline_s", "deadline (s)"),
        ("timing.bandwidth_hz", "bandwidth (Hz)"),
        ("training.algorithm.name", "algorithm"),
        ("uplink.kind", "uplink"),
        ("uplink.jammer.epsilon", "ε (jammer)"),
        ("training.privacy.epsilon", "ε (privacy)"),
        ("training.epochs", "epochs"),
        ("rounds", "rounds"),
        ("uplink", "uplink"),
        ("clients.roles.0", "roles"),
        ("clients.roles.0.fraction", "fraction (roles)"),
    ],
)
def test_keys_have_words_and_units(path: str, words: str) -> None:
    assert key_words(path) == words
