"""Charts of the page: curves that the reader may hover, zoom, and draw over another x axis.

`Chart` says what is shown, `chart_data` puts it into the form that the page's scripts read.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.summary.axes import X_AXES

Values = NDArray[np.float64]
Shape = Literal["line", "points", "steps"]
Dash = Literal["solid", "dashed", "dotted"]

MOST_POINTS = 20_000
"""Points of a curve; of longer ones every second, every third, ... is kept, and the last."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Curve of a chart.

    Attributes:
        label: its name in the legend.
        colour: a role of `wirelessfl.summary.style.ROLES`, or the number of a series that has none.
        x: places (m,) of its points by name of the axis; an axis on which it has no place is left out.
        y: values (m,); NaN where there is none.
        shape: a line, points, or steps that hold from each place to the next.
        dash: of a line.
        low: (m,) lower edge of a band around it; None without a band.
        high: (m,) upper edge of the band.
    """

    label: str
    colour: str | int
    x: Mapping[str, Values]
    y: Values
    shape: Shape = "line"
    dash: Dash = "solid"
    low: Values | None = None
    high: Values | None = None


@dataclass(frozen=True, eq=False)
class Chart:
    """Chart of a section of the page.

    Attributes:
        name: its id within the section; letters, digits and hyphens.
        title: above it.
        caption: below it, in words for everybody; read aloud in place of the picture.
        y_label: label of the y axis with its unit.
        curves: in the order of the legend.
        x_labels: label with unit of every axis by name. Charts of a section over `X_AXES` share the axis that the
            reader chooses, its zoom and the cursor; a chart over anything else has that one axis for itself.
        log: whether the y axis is logarithmic.
        log_x: names of the x axes that are; the same in all charts of a section that share them.
        low: lower end of the y axis; None for that of the values.
        high: upper end of the y axis.
        fits_bands: whether the y axis holds bands as a whole; of confidence intervals of few seeds it holds a part.
    """

    name: str
    title: str
    caption: str
    y_label: str
    curves: tuple[Curve, ...]
    x_labels: Mapping[str, str]
    log: bool = False
    log_x: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    fits_bands: bool = True

    @property
    def linked(self) -> bool:
        """Whether it shares axis, zoom and cursor with the other charts of its section."""
        return set(self.x_labels) <= set(X_AXES)


def chart_data(chart: Chart) -> dict[str, Any]:
    """A chart as plain JSON; numbers packed by `packed`."""
    return {
        "name": chart.name,
        "title": chart.title,
        "caption": chart.caption,
        "yLabel": chart.y_label,
        "xLabels": dict(chart.x_labels),
        "linked": chart.linked,
        "log": chart.log,
        "logX": list(chart.log_x),
        "low": chart.low,
        "high": chart.high,
        "fitsBands": chart.fits_bands,
        "curves": [_curve_data(curve) for curve in chart.curves],
    }


def _curve_data(curve: Curve) -> dict[str, Any]:
    kept = thinned(len(curve.y))
    band = {"low": curve.low, "high": curve.high}
    return {
        "label": curve.label,
        "colour": f"cycle-{curve.colour}" if isinstance(curve.colour, int) else curve.colour,
        "shape": curve.shape,
        "dash": curve.dash,
        "x": {name: packed(values[kept]) for name, values in curve.x.items()},
        "y": packed(curve.y[kept]),
        **{name: packed(values[kept]) for name, values in band.items() if values is not None},
    }


def thinned(count: int) -> NDArray[np.int64]:
    """Positions of what is shown of so many rounds: all, or evenly spaced ones with the last."""
    step = -(-count // MOST_POINTS) if count else 1
    kept = np.arange(0, count, step, dtype=np.int64)
    return kept if not count or kept[-1] == count - 1 else np.append(kept, count - 1)


def packed(values: NDArray[Any]) -> str:
    """Numbers as text: little-endian doubles in base 64, NaN and infinities kept."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode("ascii")
