"""Figures as files: in the style of a paper, of a given width, and of the same bytes whenever they are drawn."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from wirelessfl.summary.style import STYLE

# No date, so that the same run gives the same file.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Title": None},
    ".svg": {"Date": None},
}
_SHORT_RANGE = 30.0


@contextmanager
def drawing(path: Path, title: str, size: tuple[float, float], style: Mapping[str, Any] = STYLE) -> Iterator[Figure]:
    """Empty figure that becomes a file with a title once it has been drawn on.

    Args:
        path: where the file goes; its suffix is the format.
        title: above all panels; "" for none.
        size: width and height (inches).
        style: sizes of text, grid and legends.
    """
    settings: dict[Any, Any] = dict(style)
    with mpl.rc_context(settings):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        if title:
            figure.suptitle(title, wrap=True, parse_math=False)
        save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """File of a figure in the format of its suffix, in its own size, without a date.

    Args:
        figure: what was drawn under the style.
        path: a .pdf, .svg or .png.
    """
    fonts: dict[Any, Any] = {name: STYLE[name] for name in ("pdf.fonttype", "svg.fonttype", "svg.hashsalt")}
    with mpl.rc_context(fonts):
        figure.savefig(path, format=path.suffix[1:], dpi=STYLE["savefig.dpi"], metadata=_METADATA[path.suffix])


def log_scale(axis: Axis) -> None:
    """Logarithmic axis with ticks at 1, 3, 10, 30, … over a few decades, and at powers of ten over many."""
    (axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale)("log")
    low, high = axis.get_data_interval()
    positive = 0 < low <= high < np.inf
    decades = np.log10(high / low) if positive else 1.0
    if positive and high < 2 * low:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], min_n_ticks=2))
    elif positive and high < _SHORT_RANGE / 3 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0), numticks=20))
    else:
        axis.set_major_locator(LogLocator(subs=(1.0, 3.0) if decades <= 4 else (1.0,), numticks=8))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
    axis.set_minor_formatter(NullFormatter())


def plain_number(value: float) -> str:
    """Number at a tick: 1, 3, 10, 0.001; 1e-05 and 1e+06 beyond."""
    return f"{value:g}"


def whole_numbers(axis: Axis, most: int = 6) -> None:
    """Ticks at whole numbers: there is no round 2.5."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))
