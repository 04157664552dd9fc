"""What the figures of a run show and how they read, at the width of a column and of a page."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import wirelessfl as wfl
from tests.simulation.scenarios import small
from tests.speed import rest_slow
from tests.summary.reading import assert_readable, figures_of, labels
from wirelessfl.analysis.replay.paired import draw_paired
from wirelessfl.summary.drawing import log_scale
from wirelessfl.summary.overview import what_varies
from wirelessfl.summary.run_figures import draw_run
from wirelessfl.summary.style import COLUMN_IN, PAGE_IN, FigureOptions

RUNS: dict[str, dict[str, Any]] = {
    "jammer": {"uplink__jammer": {"epsilon": 1.0}},
    "watts": {
        "uplink": {"kind": "over_the_air", "tx_power_dbm": 10.0},
        "channel__pathloss": {"model": "log_distance"},
    },
    "ideal": {"uplink": {"kind": "ideal"}, "rounds": 1, "clients__count": 1},
    "failures": {
        "faults": {
            "availability": {"model": "gilbert_elliott"},
            "crash_rate_per_s": 20.0,
            "fade_threshold": 0.3,
        },
        "timing__deadline_s": 0.016,
    },
    "diverged": {"uplink": {"kind": "ideal"}, "training__optimizer__lr": 1e30},
    "long name": {"name": "a-scenario-with-a-name-that-is-far-too-long-for-the-width-of-a-single-column-of-text"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Traces by the name of their run."""
    folder = tmp_path_factory.mktemp("reading")
    for name, changes in RUNS.items():
        wfl.simulate(small(**changes), folder / name, device="cpu", threads=1, figures="none")
    return {name: folder / name / "trace.h5" for name in RUNS}


@cache
def drawn(trace: Path, width: float) -> tuple[Figure, Figure]:
    """Summary and timeline of a run."""
    options = FigureOptions("png", width)
    summary, timeline = figures_of(lambda: draw_run(trace, options), "wirelessfl.summary.drawing")
    return summary, timeline


@pytest.mark.parametrize(
    "width", [COLUMN_IN, pytest.param(PAGE_IN, marks=pytest.mark.slow), pytest.param(12.0, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", rest_slow(RUNS, fast=2))
def test_no_text_is_cut_off_or_hidden_at_any_width(runs: dict[str, Path], name: str, width: float) -> None:
    for figure in drawn(runs[name], width):
        assert figure.get_figwidth() == width
        assert_readable(figure)


def test_panels_stand_in_two_columns_from_the_width_of_a_page_with_legends_inside(runs: dict[str, Path]) -> None:
    page, column = (drawn(runs["jammer"], width)[0] for width in (PAGE_IN, COLUMN_IN))
    places = {round(axes.get_position().x0, 2) for axes in page.axes}
    assert len(places) == 2 and len({round(axes.get_position().x0, 2) for axes in column.axes}) == 1
    legends = [(axes, legend) for axes in page.axes if (legend := axes.get_legend()) is not None]
    assert len(legends) == 4
    for axes, legend in legends:
        inside, box = axes.get_window_extent().padded(1.0), legend.get_window_extent()
        assert inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
        highest = max(float(line.get_window_extent().y1) for line in axes.lines)
        assert highest <= box.y0 + 2, "no curve runs under the legend"
    assert min(axes.xaxis.label.get_fontsize() for axes in page.axes) == 8


def test_axes_have_words_and_units(runs: dict[str, Path]) -> None:
    normalised, watts, ideal = (labels(drawn(runs[name], PAGE_IN)[0]) for name in ("jammer", "watts", "ideal"))
    assert normalised == [
        *("test accuracy (%)", "loss (nat)", "ε at δ = 1e-05", "clients heard", "channel gain |h|"),
        *("largest back-off", "energy (noise = 1)", "airtime so far (s)"),
    ]
    assert "energy (J)" in watts and "gain |h|² (dB)" in watts
    assert ideal == ["test accuracy (%)", "loss (nat)", "ε at δ = 1e-05", "clients heard"]
    assert not [label for label in (*normalised, *watts) if "_" in label]


def test_with_a_path_loss_gains_are_in_decibels(runs: dict[str, Path]) -> None:
    figure = drawn(runs["watts"], PAGE_IN)[0]
    axes = next(one for one in figure.axes if one.get_ylabel() == "gain |h|² (dB)")
    with wfl.open_trace(runs["watts"]) as trace:
        power = trace["channel_re"].values ** 2 + trace["channel_im"].values ** 2
    middle = np.nanmedian(10 * np.log10(power), axis=1)
    np.testing.assert_allclose(np.asarray(axes.lines[0].get_ydata()), middle[np.isfinite(middle)])


@pytest.mark.slow
def test_accuracy_is_within_its_range_and_epsilon_above_zero(runs: dict[str, Path]) -> None:
    for name in RUNS:
        accuracy, _, epsilon, *_ = drawn(runs[name], PAGE_IN)[0].axes
        assert accuracy.get_ylim() == (0, 100)
        assert epsilon.get_yscale() == "linear" or epsilon.get_ylim()[0] > 0


def test_paired_runs_read_as_one_does(runs: dict[str, Path]) -> None:
    with wfl.open_trace(runs["jammer"]) as recorded, wfl.open_trace(runs["long name"]) as changed:
        draw = partial(draw_paired, recorded, changed, Path("paired.png"), "changed: uplink.jammer=null")
        (figure,) = figures_of(draw, "wirelessfl.summary.drawing")
    assert figure.get_figwidth() == COLUMN_IN
    assert_readable(figure)
    assert labels(figure)[0] == "test accuracy (%)"
    bars = [bar.get_bbox() for bar in figure.axes[1].patches if isinstance(bar, Rectangle)]
    left, right = figure.axes[1].get_xlim()
    assert min(bar.x0 for bar in bars) >= left and max(bar.x1 for bar in bars) <= right


def ticks(low: float, high: float) -> list[str]:
    """Labels of a logarithmic axis over values."""
    figure = Figure()
    axes: Axes = figure.subplots()
    axes.plot([1, 2], [low, high])
    log_scale(axes.yaxis)
    figure.canvas.draw_idle()
    bottom, top = axes.get_ylim()
    shown = [place for place in axes.yaxis.get_majorticklocs() if bottom <= place <= top]
    return [axes.yaxis.get_major_formatter()(place) for place in shown]


def test_ticks_of_logarithmic_axes_read_1_3_10() -> None:
    assert ticks(0.8, 350) == ["1", "3", "10", "30", "100", "300"]
    assert ticks(1.0, 8.0) == ["1", "2", "3", "5"]
    assert ticks(2e3, 5e6) == ["3000", "10⁴", "3·10⁴", "10⁵", "3·10⁵", "10⁶", "3·10⁶"]
    assert ticks(1e-6, 1e2) == ["10⁻⁶", "10⁻⁴", "10⁻²", "1", "100"]
    assert len(ticks(3.0, 3.1)) >= 2 and "·" not in "".join(ticks(3.0, 3.1))


def test_a_timeline_of_nothing_but_participants_shows_what_varies(runs: dict[str, Path]) -> None:
    everybody, failures = (drawn(runs[name], PAGE_IN)[1] for name in ("jammer", "failures"))
    assert everybody.axes[0].get_title() == "every client took part in every round"
    assert "compute time (s)" in labels(everybody)
    assert failures.axes[0].get_title() == "outcome of every round for every client"
    named = [text.get_text() for legend in failures.subfigs[0].legends for text in legend.get_texts()]
    assert "participated" in named and len(named) > 1


def test_what_varies_is_chosen_by_the_numbers(runs: dict[str, Path]) -> None:
    with wfl.open_trace(runs["jammer"]) as opened:
        trace = opened.load()
    trace["backoff"] = 1.0 + trace["compute_time"] / float(trace["compute_time"].max())

    def with_constant(*names: str) -> xr.Dataset:
        return trace.assign({name: xr.ones_like(trace[name]) for name in names})

    chosen = [
        what_varies(trace),
        what_varies(with_constant("compute_time")),
        what_varies(with_constant("compute_time", "backoff")),
        what_varies(with_constant("compute_time", "backoff", "channel_re", "channel_im")),
        what_varies(with_constant("compute_time", "backoff", "channel_re", "channel_im", "tx_energy")),
    ]
    assert [None if one is None else one.label for one in chosen] == [
        *("compute time (s)", "back-off", "channel gain |h|", "energy sent (noise = 1)", None),
    ]


@pytest.mark.parametrize("name", ["jammer", "failures"])
def test_client_0_is_on_top_in_every_panel(runs: dict[str, Path], name: str) -> None:
    overview, *_, steps = drawn(runs[name], PAGE_IN)[1].axes
    for axes in (overview, steps):
        bottom, top = axes.get_ylim()
        assert bottom > top
    named = [label.get_text() for label in steps.get_yticklabels()]
    assert named[0] == "server" and named.index("0") < named.index("1")


@pytest.mark.parametrize(("factor", "scale"), [(2.0, "linear"), (1e3, "log")])
def test_paired_epsilons_that_span_orders_have_a_logarithmic_axis(
    factor: float, scale: str, runs: dict[str, Path]
) -> None:
    with wfl.open_trace(runs["jammer"]) as recorded:
        flat = recorded.assign(epsilon_accounted=0.0 * recorded["round"] + 1.0)
        changed = flat.assign(epsilon_accounted=factor * flat["epsilon_accounted"])
        draw = partial(draw_paired, flat, changed, Path("paired.png"), "changed")
        (figure,) = figures_of(draw, "wirelessfl.summary.drawing")
    assert figure.axes[2].get_yscale() == scale
    assert_readable(figure)
