"""Runs and points of studies laid over each other: their curves over one axis, and the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from wirelessfl.errors import InputError, precondition
from wirelessfl.summary.axes import (
    Columns,
    EnergyUnit,
    XAxis,
    axis_values,
    columns_of,
    common_energy_unit,
    is_wide,
    x_label,
)
from wirelessfl.summary.curves import STEPS_SENTENCE, mean_curve
from wirelessfl.summary.drawing import log_scale, show_range, whole_numbers
from wirelessfl.summary.intervals import Interval, interval_of, is_logarithmic, lowest_of, on_scale, vertical_range
from wirelessfl.summary.legend import legend_of
from wirelessfl.summary.style import CYCLE, LINES, PAGE_IN, STYLE
from wirelessfl.trace import ROOT, at_slot_start, axis_label

if TYPE_CHECKING:
    import xarray as xr

COMPARED = ("test_accuracy", "test_loss", "epsilon_accounted")
"""Variables of the trace that a comparison shows."""

PLOTTED = tuple(variable.name for variable in ROOT.of("round") if variable.name != "event_count")
"""Variables of the trace with one value a round."""

_PANEL_IN = 1.9


def run_columns(trace: xr.Dataset) -> dict[str, NDArray[np.float64]]:
    """Columns by round of an opened trace: all variables with one value a round, and what axes are made of."""
    there = {name: at_slot_start(trace[name]).astype(np.float64) for name in PLOTTED if name in trace}
    return columns_of(trace) | there


@dataclass(frozen=True, eq=False)
class Entry:
    """A run, or a point of a study with all its seeds.

    Attributes:
        name: what it is called in the legend.
        runs: columns by round of each run.
    """

    name: str
    runs: tuple[Columns, ...]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Curve of one variable of an entry.

    Attributes:
        x: (g,) places on the axis.
        interval: (g,) means over the runs, in the unit of the axis.
        missing: what is drawn of the entry, and why not all; "" where all rounds have a place.
    """

    x: NDArray[np.float64]
    interval: Interval
    missing: str


@dataclass(frozen=True)
class Overlay:
    """Entries that are drawn over each other.

    Attributes:
        entries: in the order of the legend.
    """

    entries: tuple[Entry, ...]

    @cached_property
    def energy_unit(self) -> EnergyUnit | None:
        """Unit of the axis of energy; None where no energy is known.

        Raises:
            InputError: some are known in joules and others in units of the noise.
        """
        return common_energy_unit({entry.name: run for entry in self.entries for run in entry.runs})

    def curve(self, entry: Entry, y: str, x: XAxis) -> Drawn:
        """Mean of a variable over the runs of an entry, in the unit of its axis."""
        unit = self.energy_unit if x == "energy" else None
        places = [axis_values(x, run, unit) for run in entry.runs]
        curve = mean_curve(x, places, [on_scale(y, run[y]) for run in entry.runs])
        return Drawn(curve.x, interval_of(y, curve.mean, lowest_of(y, [curve.mean.mean])), curve.missing)

    def label(self, x: XAxis) -> str:
        """Label of an axis."""
        return x_label(x, self.energy_unit if x == "energy" else None)

    def legend(self, x: XAxis) -> list[str]:
        """Names of the entries, and what an axis does not show of each."""
        curves = ((entry.name, self.curve(entry, COMPARED[0], x).missing) for entry in self.entries)
        return [f"{name}: {words}" if words else name for name, words in curves]

    def missing(self, x: XAxis) -> list[str]:
        """Entries that an axis does not show, or not with all rounds, each with the reason."""
        return [words for words, entry in zip(self.legend(x), self.entries, strict=True) if words != entry.name]

    def require(self, x: XAxis) -> None:
        """Check that an axis other than the rounds shows anything at all.

        Raises:
            InputError: no entry has a place on it, or their energies have no unit in common.
        """
        shown = x == "round" or any(len(self.curve(entry, COMPARED[0], x).x) for entry in self.entries)
        words = "; ".join(self.missing(x)) or "no evaluated round"
        precondition(
            shown, f"x: {x}: nothing to draw ({words}); allowed: an axis on which a run has a place", InputError
        )

    def metrics(self, x: XAxis) -> tuple[str, ...]:
        """Variables of a comparison that say anything over an axis: an ε over itself does not, nor one of ∞ alone."""
        finite = any(np.isfinite(run["epsilon_accounted"]).any() for entry in self.entries for run in entry.runs)
        return COMPARED if finite and x != "epsilon" else COMPARED[:2]


class ShownFigure(Figure):
    """Figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=STYLE["savefig.dpi"])
        return buffer.getvalue()


def draw_overlay(overlay: Overlay, x: XAxis, metrics: Sequence[str], width_in: float = PAGE_IN) -> ShownFigure:
    """Figure of variables of several runs over one axis, a panel each, side by side as far as the width goes.

    Raises:
        InputError: nothing has a place on the axis.
    """
    overlay.require(x)
    across = max(1, min(len(metrics), int(width_in / _PANEL_IN)))
    down = -(-len(metrics) // across)
    names = overlay.legend(x)
    legend = legend_of(names if len(names) > 1 else (), width_in)
    settings: dict[Any, Any] = dict(STYLE)
    with mpl.rc_context(settings):
        figure = ShownFigure(figsize=(width_in, _PANEL_IN * down + 0.3 + legend.height_in), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for axes, metric in zip(panels, metrics, strict=False):
            _draw(axes, overlay, metric, x)
        for axes in panels[len(metrics) :]:
            axes.remove()
        legend.draw(figure, panels[0])
    return figure


def caption(overlay: Overlay) -> str:
    """Words below an overlay: what bands and curves are; "" where every entry is one run."""
    several = any(len(entry.runs) > 1 for entry in overlay.entries)
    words = "Mean over the seeds with its 95 % confidence interval; of ε the geometric mean."
    return f"{words} {STEPS_SENTENCE}" if several else ""


def _draw(axes: Axes, overlay: Overlay, metric: str, x: XAxis) -> None:
    curves = [overlay.curve(entry, metric, x) for entry in overlay.entries]
    for at, curve in enumerate(curves):
        shade, line = CYCLE[at % len(CYCLE)], LINES[at // len(CYCLE) % len(LINES)]
        drawn = curve.interval
        known = np.isfinite(drawn.mean)
        marker = "." if known.sum() < 3 else ""
        axes.plot(curve.x[known], drawn.mean[known], color=shade, linestyle=line, label=str(at), marker=marker)
        banded = known & np.isfinite(drawn.low) & np.isfinite(drawn.high)
        axes.fill_between(curve.x[banded], drawn.low[banded], drawn.high[banded], color=shade, alpha=0.18, linewidth=0)
    if x == "round":
        whole_numbers(axes.xaxis)
    elif is_wide([curve.x for curve in curves]):
        log_scale(axes.xaxis)
    limits = vertical_range(metric, [curve.interval for curve in curves])
    if limits is not None:
        show_range(axes, limits, logarithmic=is_logarithmic(metric))
    axes.set_xlabel(overlay.label(x))
    axes.set_ylabel(axis_label(metric))


def plot_run(name: str, columns: Columns, x: XAxis, y: str, width_in: float) -> ShownFigure:
    """Figure of one variable of a run, given by its columns.

    Raises:
        InputError: there is no such variable, or nothing has a place on the axis.
    """
    known = [name for name in PLOTTED if name in columns]
    precondition(y in known, f"y: found {y!r}; allowed: {', '.join(known)}", InputError)
    return draw_overlay(Overlay((Entry(name, (columns,)),)), x, (y,), width_in)
