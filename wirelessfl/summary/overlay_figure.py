"""The picture of runs and points of studies laid over each other."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wirelessfl.errors import InputError, precondition
from wirelessfl.summary.axes import Columns, XAxis, is_wide
from wirelessfl.summary.drawing import (
    above_foot,
    foot_height_in,
    foot_lines,
    log_scale,
    show_range,
    whole_numbers,
    write_foot,
)
from wirelessfl.summary.intervals import is_logarithmic, vertical_range
from wirelessfl.summary.legend import legend_of
from wirelessfl.summary.overlay import PLOTTED, Entry, Overlay
from wirelessfl.summary.style import CYCLE, LINES, PAGE_IN, STYLE
from wirelessfl.trace import axis_label

_PANEL_IN = 1.9
_BANDS = "Bands: 95 % confidence intervals over the seeds."


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
        foot = foot_lines(_BANDS if any(len(entry.runs) > 1 for entry in overlay.entries) else "", width_in)
        height = _PANEL_IN * down + 0.3 + legend.height_in + foot_height_in(foot)
        figure = ShownFigure(figsize=(width_in, height))
        room = above_foot(figure, foot)
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for axes, metric in zip(panels, metrics, strict=False):
            _draw(axes, overlay, metric, x)
        for axes in panels[len(metrics) :]:
            axes.remove()
        legend.draw(figure, panels[0])
        if foot:
            write_foot(figure, foot, room)
    return figure


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
        InputError: there is no such variable, it is NaN throughout, or nothing has a place on the axis.
    """
    known = [name for name in PLOTTED if name in columns]
    precondition(y in known, f"y: found {y!r}; allowed: {', '.join(known)}", InputError)
    told = not np.isnan(columns[y]).all()
    precondition(told, f"y: {y}: nothing to draw (NaN in every round); allowed: a variable of the run", InputError)
    return draw_overlay(Overlay((Entry(name, (columns,)),)), x, (y,), width_in)
