"""Elements of the page: tables that the reader may sort, and figures as inline SVG.

A figure takes its colours from the page, so that it is right by day, by night and in print.
"""

import io
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from markupsafe import Markup, escape
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from wirelessfl.analysis.replay.recording import Recording
from wirelessfl.summary import number_text
from wirelessfl.summary.style import CYCLE
from wirelessfl.trace import SecAggOutcome, SecAggStage, has_group, read_group

# A table of more rounds than these shows every second, every third, ... of them.
_MOST_ROWS = 1000


@dataclass(frozen=True)
class Cell:
    """A cell of a table: what is shown, and by what it is sorted."""

    text: str
    value: float | str


@dataclass(frozen=True)
class SortedTable:
    """A table whose rows the reader may sort.

    Attributes:
        caption: what its rows are.
        head: names of the columns.
        rows: of cells.
    """

    caption: str
    head: tuple[str, ...]
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Drawing:
    """A figure on the page that stands still.

    Attributes:
        title: above it.
        svg: the picture.
        caption: below it, in words for everybody.
    """

    title: str
    svg: Markup
    caption: str


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{share:.1%}"


def number_cell(value: float) -> Cell:
    """A number, sorted as such."""
    return Cell(number_text(value), value)


# Variables of the trace or the summary, with the heads of their columns.
_EPSILONS = {"epsilon_published": "ε published", "epsilon_accounted": "ε accounted"}
_ROUND_COLUMNS = {
    "test_accuracy": "accuracy",
    "test_loss": "loss",
    "participants": "heard",
    **_EPSILONS,
    "server_gain": "α_u",
    "jammer_gain": "α_CJ",
    "effective_noise_std": "σ_m",
    "aggregate_noise_std": "on weights",
    "sim_time": "time (s)",
}
POINT_COLUMNS = {
    **_EPSILONS,
    "participants_mean": "heard",
    "sim_time": "time (s)",
    "airtime": "airtime (s)",
    "energy": "energy (J)",
}


def round_table(trace: xr.Dataset) -> SortedTable:
    """The rounds of a run, or as many of them as a table can show."""
    step, unknown = -(-trace.sizes["round"] // _MOST_ROWS), np.full(trace.sizes["round"], np.nan)
    # An earlier version did not record every variable.
    columns = [trace["round"].values, *(trace[name].values if name in trace else unknown for name in _ROUND_COLUMNS)]
    rows = [
        [Cell(_percent(value), value) if at == 1 else number_cell(value) for at, value in enumerate(map(float, row))]
        for row in zip(*(column[::step] for column in columns), strict=True)
    ]
    return SortedTable("Rounds" if step == 1 else f"Every {step}th round", ("round", *_ROUND_COLUMNS.values()), rows)


_BITS_A_BYTE = 8
_COST_COLUMNS = {
    "messages_up": "messages up",
    "bits_up": "bytes up",
    "messages_down": "messages down",
    "bits_down": "bytes down",
    "seconds": "time (s)",
    "energy": "energy (J)",
    "dropouts": "not heard",
    "refused": "refused",
}


def secure_aggregation_costs(recording: Recording) -> xr.Dataset | None:
    """The group ``/secagg`` of the rounds of a recording; None for a run without secure aggregation."""
    rounds, known = slice(recording.first, recording.last), has_group(recording.path, "secagg")
    return read_group(recording.path, "secagg").sel(round=rounds) if known else None


def cost_facts(costs: xr.Dataset) -> list[tuple[str, str]]:
    """Facts on secure aggregation: the number of sums, and the cost of all of them together."""
    outcomes = costs["outcome"].values
    summed = int((outcomes == SecAggOutcome.SUMMED).sum())
    up, down, seconds = (float(costs[name].sum(skipna=False)) for name in ("bits_up", "bits_down", "seconds"))
    return [
        ("secure aggregation", f"{costs.attrs['protocol']}, {summed} of {len(outcomes)} rounds summed"),
        ("secure messages", f"{_megabytes(up)} up, {_megabytes(down)} down, {number_text(seconds)} s"),
    ]


def cost_table(costs: xr.Dataset) -> SortedTable:
    """A row for each stage that the protocol has, all rounds together; unknown watts stay unknown."""
    totals = costs[list(_COST_COLUMNS)].sum("round", skipna=False)
    rows = []
    for stage in costs["stage"].values:
        values = {name: float(total) for name, total in totals.sel(stage=stage).items()}
        if any(value > 0 for value in values.values()):
            words = SecAggStage(stage).name.lower().replace("_", " ")
            rows.append([Cell(words, words), *(_cost_cell(name, values[name]) for name in _COST_COLUMNS)])
    caption = "Secure aggregation: the cost of each stage, all rounds together"
    return SortedTable(caption, ("stage", *_COST_COLUMNS.values()), rows)


def _cost_cell(name: str, value: float) -> Cell:
    if name in ("seconds", "energy"):
        return number_cell(value)
    count = value / _BITS_A_BYTE if name.startswith("bits") else value
    return Cell(f"{count:,.0f}", count)


def _megabytes(bits: float) -> str:
    return f"{number_text(bits / _BITS_A_BYTE / 1e6)} MB"


INK = "#010203"
"""Text, axes and ticks; becomes the page's own text colour."""
FAINT = "#040506"
"""Grid and reference lines."""
_VARIABLES = ("blue", "vermilion", "green", "orange", "sky", "pink", "grey")
COLOURS = {colour.lower(): variable for colour, variable in zip(CYCLE, _VARIABLES, strict=True)}
"""Colours that are variables of the page's style; matplotlib writes them in small letters."""

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
    "svg.hashsalt": "wirelessfl",
    "svg.image_inline": True,
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "axes.titlesize": 10,
    "lines.linewidth": 1.5,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}


def draw_svg(name: str, caption: str, draw: Callable[[Figure], None], size: tuple[float, float] = (5.0, 3.0)) -> Markup:
    """Figure as an SVG element for a page of HTML.

    Args:
        name: distinguishes its ids from those of the other figures of the page.
        caption: what it shows, for those who cannot see it.
        draw: fills the figure.
        size: inches; on the page it is as wide as there is room.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return _inline(buffer.getvalue(), name, caption)


def log_scale(axis: Axis) -> None:
    """A logarithmic axis whose labels are plain numbers; SVG text has no mathematics."""
    (axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale)("log")
    low, high = axis.get_data_interval()
    short = low > 0 and high < 30 * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def whole_numbers(axis: Axis) -> None:
    """Ticks at whole numbers: there is no round 2.5."""
    axis.set_major_locator(MaxNLocator(nbins="auto", steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))


def _inline(svg: str, name: str, caption: str) -> Markup:
    # The SVG element alone: ids of its own, colours of the page, no style that would reach beyond it.
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", svg)
    for side in ("width", "height"):
        svg = re.sub(rf'(<svg[^>]*?) {side}="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    svg = svg.replace(INK, "currentColor").replace(FAINT, "var(--faint)")
    for colour, variable in COLOURS.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return Markup(svg)  # drawn here; the backend has escaped the texts in it
