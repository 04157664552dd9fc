"""Figures as a reader meets them: what is drawn, where its texts are, and whether one hides another."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def figures_of(draw: Any, *modules: str) -> list[Figure]:
    """Figures that a function draws, in place of their files.

    Args:
        draw: called without arguments.
        modules: those that save figures.
    """
    kept: list[Figure] = []

    def keep(figure: Figure, _: Path) -> None:
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        kept.append(figure)

    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(f"{module}.save", keep)
        draw()
    return kept


def texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """Texts that are seen, with their places (pixels)."""
    hidden = _ticks_outside(figure)
    return [
        (text.get_text(), text.get_window_extent())
        for text in figure.findobj(Text)
        if isinstance(text, Text) and text.get_visible() and text.get_text().strip() and id(text) not in hidden
    ]


def _ticks_outside(figure: Figure) -> set[int]:
    # Labels of ticks that matplotlib keeps for later, or that lie beyond the axis: it does not draw them
    hidden: set[int] = set()
    for axes in figure.findobj(Axes):
        assert isinstance(axes, Axes)
        for axis, limits in ((axes.xaxis, sorted(axes.get_xlim())), (axes.yaxis, sorted(axes.get_ylim()))):
            room = 1e-9 * (limits[1] - limits[0])
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not limits[0] - room <= tick.get_loc() <= limits[1] + room:
                    hidden |= {id(tick.label1), id(tick.label2)}
    return hidden


def slanted(figure: Figure) -> set[str]:
    """Texts at an angle, whose bounding boxes reach farther than they do."""
    return {text.get_text() for text in figure.findobj(Text) if isinstance(text, Text) and text.get_rotation() % 90}


def assert_readable(figure: Figure) -> None:
    """No text is cut off by the edge of the figure, and none lies upon another."""
    seen = texts(figure)
    whole = figure.bbox.padded(1.0)
    for words, place in seen:
        assert whole.containsx(place.x0) and whole.containsx(place.x1), f"{words!r} is cut off"
        assert whole.containsy(place.y0) and whole.containsy(place.y1), f"{words!r} is cut off"
    upright = [(words, place) for words, place in seen if words not in slanted(figure)]
    for (one, here), (other, there) in itertools.combinations(upright, 2):
        width = min(here.x1, there.x1) - max(here.x0, there.x0)
        height = min(here.y1, there.y1) - max(here.y0, there.y0)
        assert width < 2 or height < 2, f"{one!r} and {other!r} lie upon each other"


def labels(figure: Figure) -> list[str]:
    """Labels of the vertical axes."""
    return [axes.get_ylabel() for axes in figure.axes]
