"""Runs and points of studies laid over each other on the page, in charts whose axis the reader chooses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wirelessfl.analysis.compare import MOST_CURVES, TABLE, Compared, overlay_of
from wirelessfl.analysis.report.charts import Chart, Curve, Dash, Values
from wirelessfl.analysis.report.elements import Cell, SortedTable, number_cell
from wirelessfl.analysis.report.study import Point, panels
from wirelessfl.errors import InputError
from wirelessfl.summary.axes import X_AXES, XAxis, is_wide
from wirelessfl.summary.intervals import is_logarithmic
from wirelessfl.summary.overlay import COMPARED, Drawn, Entry, Overlay, caption
from wirelessfl.summary.style import CYCLE
from wirelessfl.trace import axis_label

_TITLES = {"test_accuracy": "Accuracy", "test_loss": "Loss", "epsilon_accounted": "Privacy"}
_DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted")


@dataclass(frozen=True)
class Overlaid:
    """Charts over every axis on which there is anything to draw.

    Attributes:
        charts: one for each variable.
        labels: of the axes, by name.
        missing: why an axis shows nothing, or what it leaves out, by its name.
    """

    charts: tuple[Chart, ...]
    labels: Mapping[str, str]
    missing: Mapping[str, str]


def overlaid(overlay: Overlay, prefix: str, title: str = "", remark: str = "") -> Overlaid:
    """Charts of accuracy, loss and accounted ε of several runs and points.

    Args:
        overlay: what is laid over each other.
        prefix: of the names of the charts.
        title: behind the title of each chart.
        remark: behind each caption.
    """
    refused, shown = _axes(overlay)
    labels: dict[str, str] = {x: overlay.label(x) if x in shown or x != "energy" else "energy so far" for x in X_AXES}
    missing: dict[str, str] = refused | {x: ". ".join(parts) + "." for x in shown if (parts := overlay.missing(x))}
    wide = tuple(x for x in shown if x != "round" and is_wide(_ends(overlay, x)))
    said = " ".join(f"Over {labels[x]}, {words}" for x, words in missing.items())
    words = " ".join(filter(None, (caption(overlay), remark)))
    charts = tuple(
        Chart(
            name=f"{prefix}{metric.replace('_', '-')}",
            title=", ".join(filter(None, (_TITLES[metric], title))),
            caption=f"{words} {said}".strip() if metric == COMPARED[0] else words,
            y_label=axis_label(metric),
            curves=tuple(_curve(overlay, at, entry, metric, shown) for at, entry in enumerate(overlay.entries)),
            x_labels=labels,
            log=is_logarithmic(metric),
            log_x=wide,
            fits_bands=False,
        )
        for metric in COMPARED
        if any(np.isfinite(run[metric]).any() for entry in overlay.entries for run in entry.runs)
    )
    return Overlaid(charts, labels, missing)


def _ends(overlay: Overlay, x: XAxis) -> list[Values]:
    return [overlay.curve(entry, COMPARED[0], x).x for entry in overlay.entries]


def _axes(overlay: Overlay) -> tuple[dict[str, str], list[XAxis]]:
    # Axes that show nothing, each with the reason, and the others
    refused: dict[str, str] = {}
    for x in X_AXES:
        try:
            overlay.require(x)
        except InputError as error:
            refused[x] = f"{str(error).removeprefix(f'x: {x}: ')}."
    return refused, [x for x in X_AXES if x not in refused]


def _curve(overlay: Overlay, at: int, entry: Entry, metric: str, axes: Sequence[XAxis]) -> Curve:
    # Means over seeds have other places on each axis: the parts of all axes one after the other, of which each axis
    # finds its own places alone, and infinities below and above them
    parts = [overlay.curve(entry, metric, x) for x in axes]
    several = len(entry.runs) > 1
    return Curve(
        label=entry.name,
        colour=at % len(CYCLE),
        x={x: _places(parts, own) for own, x in enumerate(axes) if len(parts[own].x)},
        y=np.concatenate([part.interval.mean for part in parts]),
        dash=_DASHES[at // len(CYCLE) % len(_DASHES)],
        low=np.concatenate([part.interval.low for part in parts]) if several else None,
        high=np.concatenate([part.interval.high for part in parts]) if several else None,
    )


def _places(parts: Sequence[Drawn], own: int) -> Values:
    around = [np.full(len(part.x), -np.inf if at < own else np.inf) for at, part in enumerate(parts)]
    return np.concatenate([part.x if at == own else around[at] for at, part in enumerate(parts)])


def compared_charts(compared: Sequence[Compared]) -> Overlaid:
    """Charts of several runs and points; of more than a reader can tell apart some at even distances."""
    overlay = overlay_of(compared)
    more = len(compared) > MOST_CURVES
    return overlaid(overlay, "", remark=f"{MOST_CURVES} of {len(compared)}, evenly spaced." if more else "")


def study_charts(points: list[Point]) -> Overlaid:
    """Charts of the points of a study, one of each variable for every combination of all keys but the last."""
    parts = [
        overlaid(
            Overlay(
                tuple(Entry(label, point.columns) for label, point in zip(panel.labels, panel.points, strict=True))
            ),
            f"curves-{at}-",
            panel.title,
            panel.remark,
        )
        for at, panel in enumerate(panels(points))
    ]
    wide = tuple(dict.fromkeys(x for part in parts for chart in part.charts for x in chart.log_x))
    shown = {x for part in parts for chart in part.charts for curve in chart.curves for x in curve.x}
    missing = {x: words for part in parts for x, words in part.missing.items() if x not in shown}
    charts = tuple(replace(chart, log_x=wide) for part in parts for chart in part.charts)
    return Overlaid(charts, parts[0].labels, missing)


def compared_table(compared: Sequence[Compared]) -> SortedTable:
    """Several runs and points after their last rounds."""
    rows = []
    for one in compared:
        name, accuracy = one.entry.name, one.numbers["test_accuracy"]
        cells = (number_cell(one.numbers[key]) for key in TABLE if key != "test_accuracy")
        words = "–" if np.isnan(accuracy) else f"{accuracy:.1%}"
        rows.append([Cell(name, name), Cell(words, accuracy), *cells])
    heads = [head for key, head in TABLE.items() if key != "test_accuracy"]
    return SortedTable("Runs and points after the last round", ("run", "accuracy", *heads), rows)
