"""Figures as files: in the style of a paper, of a given width, and of the same bytes whenever they are drawn."""

import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from wirelessfl.summary.style import STYLE
from wirelessfl.summary.texts import power_of_ten

# No date, so that the same run gives the same file.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Title": None},
    ".svg": {"Date": None},
}
# Of meshes of many cells, which are images within a PDF or SVG.
_MESH_DPI = 600
# Width of a letter of DejaVu Sans and height of a line, over the size of the text; most letters are narrower.
_LETTER_EM, _LINE_EM = 0.58, 1.3
_LEGEND_ROOM = 0.25
# Share of its column that a panel fills, and width of a label of a logarithmic axis with the room beside it.
_PANEL_SHARE, _TICK_IN = 0.85, 0.34
_NOTE_PT, _NOTE_MARGIN_IN = 7.0, 0.05
_PLAIN = (1e-3, 1e4)
Room = tuple[float, float, float, float]
"""Left, bottom, width and height as shares of a figure."""


@contextmanager
def drawing(
    path: Path, title: str, size: tuple[float, float], style: Mapping[str, Any] = STYLE, note: str = ""
) -> Iterator[Figure]:
    """Empty figure that becomes a file with a title once it has been drawn on.

    Args:
        path: where the file goes; its suffix is the format.
        title: above all panels; "" for none.
        size: width and height (inches), the latter with one line of title; its further lines and a note add to it.
        style: sizes of text, grid and legends.
        note: in small letters at the foot.
    """
    settings: dict[Any, Any] = dict(style)
    with mpl.rc_context(settings):
        words = broken(title, size[0])
        more = words.count("\n") * _LINE_EM * STYLE["figure.titlesize"] / 72
        foot = foot_lines(note, size[0])
        foot_in = foot_height_in(foot)
        height = size[1] + more + foot_in
        figure = Figure(figsize=(size[0], height))
        room = above_foot(figure, foot)
        yield figure
        if words:
            figure.suptitle(words, parse_math=False)
        if foot:
            write_foot(figure, foot, room)
        save(figure, path)


def foot_lines(note: str, width_in: float) -> str:
    """A note in lines that fit the foot of a figure of a width (inches)."""
    return broken(note, width_in - 2 * _NOTE_MARGIN_IN, _NOTE_PT)


def foot_height_in(foot: str) -> float:
    """Height of the lines at the foot of a figure (inches)."""
    return _LINE_EM * _NOTE_PT * len(foot.splitlines()) / 72 + _NOTE_MARGIN_IN if foot else 0.0


def above_foot(figure: Figure, foot: str) -> Room:
    """The room above the foot of a figure, within which everything else is laid out."""
    share = foot_height_in(foot) / float(figure.get_figheight())
    room = (0.0, share, 1.0, 1.0 - share)
    figure.set_layout_engine("constrained", rect=room)
    return room


def write_foot(figure: Figure, foot: str, room: Room) -> None:
    """Lines at the foot of a figure of which all else has been drawn."""
    # Legends outside of the panels are laid out in the room above the foot, and then put there
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for legend in figure.legends:
        legend.set_bbox_to_anchor(room)
    left, bottom = (_NOTE_MARGIN_IN / size for size in figure.get_size_inches())
    figure.text(left, bottom, foot, fontsize=_NOTE_PT, va="bottom", parse_math=False)


def broken(text: str, width_in: float, size_pt: float = STYLE["figure.titlesize"]) -> str:
    """Text in lines that fit a width (inches); names without a space are broken at hyphens, or anywhere."""
    letters = int(width_in * 72 / (_LETTER_EM * size_pt))
    return "\n".join(textwrap.fill(line, letters) for line in text.splitlines())


def save(figure: Figure, path: Path) -> None:
    """File of a figure in the format of its suffix, in its own size, without a date.

    Args:
        figure: what was drawn under the style.
        path: a .pdf, .svg or .png.
    """
    fonts: dict[Any, Any] = {name: STYLE[name] for name in ("pdf.fonttype", "svg.fonttype", "svg.hashsalt")}
    with mpl.rc_context(fonts):
        dpi = STYLE["savefig.dpi"] if path.suffix == ".png" else _MESH_DPI
        figure.savefig(path, format=path.suffix[1:], dpi=dpi, metadata=_METADATA[path.suffix])


def log_scale(axis: Axis, limits: tuple[float, float] | None = None) -> None:
    """Logarithmic axis with ticks at 1, 3, 10, 30, … over a few decades, and at powers of ten over many.

    Args:
        axis: the axis.
        limits: of what it shows; by default those of the data.
    """
    (axis.axes.set_xscale if axis is axis.axes.xaxis else axis.axes.set_yscale)("log")
    low, high = limits or axis.get_data_interval()
    if low <= 0:  # has no place on it
        low = axis.get_minpos()
    ratio = high / low if 0 < low <= high < np.inf else 10.0
    if ratio < 2:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], min_n_ticks=2))
    elif ratio < 10:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0), numticks=20))
    else:
        across = axis is axis.axes.xaxis
        most = max(2, min(8, int(panel_width_in(axis.axes) / _TICK_IN))) if across else 8
        threes = ratio <= 1e4 and not (across and 2 * np.log10(ratio) > most)
        axis.set_major_locator(LogLocator(subs=(1.0, 3.0) if threes else (1.0,), numticks=most))
    axis.set_minor_locator(NullLocator())
    plain = (0.1, 1e3) if ratio > 1e4 else _PLAIN
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value, plain)))
    axis.set_minor_formatter(NullFormatter())


def show_range(axes: Axes, limits: tuple[float, float], *, logarithmic: bool) -> None:
    """Vertical axis between two ends."""
    if logarithmic:
        log_scale(axes.yaxis, limits)
    axes.set_ylim(*limits)


def plain_number(value: float, plain: tuple[float, float] = _PLAIN) -> str:
    """Number at a tick: 0.001, 3, 1000, and 3·10⁶ where it is not within the range of plain numbers."""
    if value == 0 or plain[0] <= abs(value) < plain[1]:
        return f"{value:g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    power = power_of_ten(int(exponent))
    return power if mantissa == "1" else f"{mantissa}·{power}"


def panel_width_in(axes: Axes) -> float:
    """Width of a panel (inches) beside its like, about."""
    figure, place = axes.get_figure(root=True), axes.get_subplotspec()
    assert figure is not None
    return _PANEL_SHARE * float(figure.get_figwidth()) / (1 if place is None else place.get_gridspec().ncols)


def whole_numbers(axis: Axis, most: int = 6) -> None:
    """Ticks at whole numbers, for rounds."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))


def show_rounds(axes: Axes, rounds: NDArray[np.int64]) -> None:
    """Horizontal axis from the first round to the last, with ticks at rounds that there are."""
    first, last = (int(rounds[0]), int(rounds[-1])) if len(rounds) else (1, 1)
    room = max(0.02 * (last - first), 0.1) if last > first else 0.5
    axes.set_xlim(first - room, last + room)
    whole_numbers(axes.xaxis)


def legend_inside(axes: Axes) -> None:
    """Legend in a row of its own at the top of a panel, above all curves."""
    handles, _ = axes.get_legend_handles_labels()
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log":
        axes.set_ylim(low, high * (high / low) ** _LEGEND_ROOM)
    else:
        axes.set_ylim(low, high + _LEGEND_ROOM * (high - low))
    axes.legend(loc="upper left", ncols=len(handles))
