"""Pictures of the documentation in the colours of its light and of its dark theme.

Not a hook by itself: hooks draw with it. The theme shows a picture whose address ends in ``#only-light`` or
``#only-dark`` in that scheme alone.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import matplotlib as mpl
from matplotlib.figure import Figure

from wirelessfl.summary.style import FAINT, INK, STYLE

THEMES: Mapping[str, Mapping[str, str]] = {
    "light": {"ink": INK, "faint": FAINT},
    "dark": {"ink": "#D5D8E0", "faint": "#6B7080"},
}
"""Colours of text and axes, and of reference lines, on the page of each theme."""

Draw = Callable[[Figure, str], None]
"""Draws on an empty figure; takes the colour of reference lines."""


def in_both_themes(draw: Draw, size: tuple[float, float]) -> dict[str, bytes]:
    """SVG of a picture by theme, on a transparent ground.

    Args:
        draw: what draws it.
        size: width and height (inches).
    """
    return {theme: _svg(draw, size, **colours) for theme, colours in THEMES.items()}


def _svg(draw: Draw, size: tuple[float, float], ink: str, faint: str) -> bytes:
    inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    grounds = {"grid.color": faint, "legend.facecolor": "none", "legend.framealpha": 0.0}
    with mpl.rc_context({**STYLE, **dict.fromkeys(inked, ink), **grounds}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure, faint)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()


def shown(name: str, caption: str) -> str:
    """Markdown of a picture in both themes, by the start of its file's name."""
    return "\n".join(f"![{caption}]({name}-{theme}.svg#only-{theme})" for theme in THEMES)
