"""Figures as inline SVG, which take their colours from the page: they suit light pages, dark pages and print."""

import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from wirelessfl.summary.style import CYCLE

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
