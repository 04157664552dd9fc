"""One style for every picture: colours by role, sizes of a two-column paper, and the options of figures.

Nothing here draws: `wirelessfl.summary.drawing` does, which brings matplotlib along.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from wirelessfl.errors import InputError, precondition

# Okabe and Ito's palette, told apart by colour-blind readers.
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PINK, GREY, BLACK = "#56B4E9", "#CC79A7", "#7F7F7F", "#000000"

CYCLE = (BLUE, VERMILION, GREEN, ORANGE, SKY, PINK, GREY)
"""Colours of series that have no role, in order; the palette's yellow is left out, too faint for a line on white."""

LINES = ("-", "--", ":", "-.")
"""Kinds of lines, in the order in which they are taken when the colours of the cycle are used up."""

PAPER = "#FFFFFF"
"""Ground, and marks on a dark one."""

INK = "#000000"
"""Text, axes and ticks."""
FAINT = "#BFBFBF"
"""Reference lines and outlines."""

ACTIVITIES: Mapping[str, str] = MappingProxyType(
    {"server": "#999999", "compute": SKY, "wait": "#DCE9F2", "send": BLUE, "jam": "#AA3377"}
)
"""Colours of what nodes do."""

OUTCOMES: Mapping[str, str] = MappingProxyType(
    {
        "empty_slot": "#FFFFFF",
        "participated": GREEN,
        "unavailable": "#BBBBBB",
        "crashed": VERMILION,
        "late": ORANGE,
        "deep_fade": "#EEDD55",
        "jamming": ACTIVITIES["jam"],
        "battery_empty": BLACK,
        "aborted": "#5E4B1C",
        "lost": "#5B4BB5",
        "underway": "#9EC9E8",
        "outage": "#661144",
        "no_model": "#2222CC",
    }
)
"""Colours of the outcomes of a round for a client, by the names of `wirelessfl.trace.Status`."""

QUANTITIES: Mapping[str, str] = MappingProxyType(
    {
        "accuracy": BLUE,
        "loss": ORANGE,
        "train_loss": GREY,
        "published": GREEN,
        "accounted": VERMILION,
        "empirical": GREY,
        "clients": BLUE,
        "backoff": ORANGE,
        "airtime": GREY,
        "recorded": GREY,
        "changed": VERMILION,
        "with_canary": ORANGE,
        "without_canary": BLUE,
    }
)
"""Colours of lines and bars, by quantity; those of a jammer are of what it does, ``jam``."""

ROLES: Mapping[str, str] = MappingProxyType({**QUANTITIES, **ACTIVITIES, **OUTCOMES})
"""Colour of every role: the same one in every picture."""

COLUMN_IN, PAGE_IN = 3.5, 7.16
"""Widths of one column and of the page of a two-column paper (inches)."""
_NARROWEST_IN, _WIDEST_IN = 2.5, 40.0
_ALLOWED_WIDTHS = (
    f"column ({COLUMN_IN:g} in), page ({PAGE_IN:g} in), or a number of inches from {_NARROWEST_IN:g} to {_WIDEST_IN:g}"
)
_WIDTHS = {"column": COLUMN_IN, "page": PAGE_IN}

STYLE: Mapping[str, Any] = MappingProxyType(
    {
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, and has ε, δ, σ and ‖
        "font.size": 8,
        "axes.labelsize": 8,
        "axes.titlesize": 8,
        "figure.titlesize": 9,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "legend.fontsize": 7,
        "legend.title_fontsize": 7,
        "legend.frameon": True,
        "legend.framealpha": 0.85,
        "legend.edgecolor": "none",
        "legend.fancybox": False,
        "legend.borderpad": 0.2,
        "legend.borderaxespad": 0.3,
        "legend.handlelength": 1.4,
        "legend.labelspacing": 0.3,
        "legend.columnspacing": 1.0,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.linewidth": 0.6,
        "grid.alpha": 0.25,
        "grid.linewidth": 0.5,
        "lines.linewidth": 1.2,
        "lines.markersize": 4,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "text.parse_math": False,
        # Type 42 embeds whole outlines, which journals take and editors can change; Type 3 is refused by some.
        "pdf.fonttype": 42,
        # An SVG cannot carry a font: as outlines its text looks the same where this one is missing.
        "svg.fonttype": "path",
        "svg.hashsalt": "wirelessfl",
        "savefig.dpi": 200,
    }
)
"""Sizes of text (pt) and lines at their final size in print, grid, legends, and how fonts are stored."""

FigureFormat = Literal["pdf", "svg", "png", "none"]
FORMATS: tuple[FigureFormat, ...] = get_args(FigureFormat)
SUFFIXES = tuple(f".{form}" for form in FORMATS if form != "none")


@dataclass(frozen=True)
class FigureOptions:
    """Format and width of the figures of a run or a study.

    Attributes:
        format: "pdf", "svg" or "png"; "none" for no figure.
        width_in: width (inches); the height follows from what is shown.

    Raises:
        InputError: another format, or a width on which nothing can be read.
    """

    format: FigureFormat = "png"
    width_in: float = PAGE_IN

    def __post_init__(self) -> None:
        allowed = ", ".join(FORMATS)
        precondition(
            self.format in FORMATS, f"format of figures: found {self.format!r}; allowed: {allowed}", InputError
        )
        precondition(
            math.isfinite(self.width_in) and _NARROWEST_IN <= self.width_in <= _WIDEST_IN,
            f"width of figures: found {self.width_in:g}; allowed: {_ALLOWED_WIDTHS}",
            InputError,
        )

    @property
    def drawn(self) -> bool:
        """Whether there are figures at all."""
        return self.format != "none"

    def file(self, stem: Path) -> Path:
        """File of a figure in this format: its folder and name with the suffix."""
        return stem.with_name(f"{stem.name}.{self.format}")


PNG_OF_A_PAGE = FigureOptions()
"""What is drawn where nothing is asked for."""


def figure_options(figures: FigureOptions | FigureFormat) -> FigureOptions:
    """Options of figures from a format alone, in the width of a page, or as they are.

    Raises:
        InputError: another format.
    """
    return figures if isinstance(figures, FigureOptions) else FigureOptions(figures)


def figure_file(path: str | Path) -> Path:
    """File of a figure whose format is that of its suffix.

    Raises:
        InputError: the suffix is that of no format.
    """
    place = Path(path)
    allowed = f"{path}: found {place.suffix!r} as the suffix of a figure; allowed: {', '.join(SUFFIXES)}"
    precondition(place.suffix in SUFFIXES, allowed, InputError)
    return place


def figure_files(stem: Path) -> tuple[Path, ...]:
    """Files that a figure may have, one for each format."""
    return tuple(stem.with_name(f"{stem.name}{suffix}") for suffix in SUFFIXES)


def read_width(text: str) -> float:
    """Width in inches from ``column``, ``page`` or a number.

    Raises:
        InputError: neither, or a width on which nothing can be read.
    """
    try:
        width = _WIDTHS[text] if text in _WIDTHS else float(text)
    except ValueError:
        raise InputError(f"width of figures: found {text!r}; allowed: {_ALLOWED_WIDTHS}") from None
    return FigureOptions(width_in=width).width_in
