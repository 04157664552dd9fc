"""Accuracy against a cost: every point with its name or number, and the front of those that no other beats."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray

from wirelessfl.analysis.report.elements import Drawing
from wirelessfl.analysis.report.svg import FAINT, draw_svg
from wirelessfl.summary.drawing import log_scale
from wirelessfl.summary.style import CYCLE

Values = NDArray[np.float64]
Box = tuple[float, float, float, float]
"""Left, bottom, right and top, in pixels."""

MOST_NAMES, MOST_NUMBERS = 8, 60
"""Points that are named in the picture, and that are numbered; of more the front alone is."""
_POINT_PX, _LINE_PX, _TEXT_PT = 5.0, 1.5, 8
# From near to far, and at each distance first to the right, where a front leaves room below it
_WAYS = [(1, 0), (1, -1), (-1, -1), (-1, 1), (1, 1), (-1, 0), (0, -1), (0, 1)]
_DISTANCES = (4.0, 9.0, 16.0, 26.0, 40.0)


def pareto_front(cost: Values, gain: Values) -> NDArray[np.int64]:
    """Positions of the points that no other beats: none has more gain at no more cost, or less cost at no less gain.

    Points that are not finite are on no front. The result is in order of cost.
    """
    known, front, best = np.flatnonzero(np.isfinite(cost) & np.isfinite(gain)), list[int](), -np.inf
    for position in known[np.lexsort((-gain[known], cost[known]))].tolist():
        if gain[position] > best or (front and cost[position] == cost[front[-1]] and gain[position] == best):
            front.append(position)
            best = gain[position]
    return np.array(front, dtype=np.int64)


def pareto_figure(
    name: str, title: str, label: str, cost: Values, accuracy: Values, half_width: Values, labels: Sequence[str]
) -> Drawing:
    """Figure of the points of a study after the last round, with their front.

    Args:
        name: of its ids on the page.
        title: above it.
        label: of the axis of costs.
        cost: (n,) of the points.
        accuracy: (n,) means over the seeds.
        half_width: (n,) of their confidence intervals; NaN with one seed.
        labels: (n,) names of the points.
    """
    positive = np.where(cost > 0, cost, np.nan)
    # Noise is calibrated to a target up to a tolerance: points that aim at one ε cost the same.
    front = pareto_front(np.array([float(f"{value:.2g}") for value in positive]), accuracy)
    shown = np.flatnonzero(np.isfinite(positive) & np.isfinite(accuracy))
    texts, words = _texts(shown, front, labels)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        beaten = np.setdiff1d(shown, front)
        for group, colour, size in ((beaten, CYCLE[0], 4.5), (front, CYCLE[1], 6.5)):
            share = accuracy[group]
            error = 100 * np.minimum(np.nan_to_num(half_width[group]), [share, 1.0 - share])
            axes.errorbar(
                positive[group], 100 * accuracy[group], error, fmt="o", color=colour, markersize=size, elinewidth=0.8
            )
        log_scale(axes.xaxis, _limits(positive[shown]))
        axes.set_xlim(_limits(positive[shown]))
        corners = _draw_front(axes, positive[front], 100 * accuracy[front])
        axes.set(xlabel=label, ylabel="test accuracy (%)")
        place_labels(axes, [(positive[at], 100 * accuracy[at], text) for at, text in texts.items()], corners)

    missing = len(cost) - len(shown)
    left_out = f" {missing} points without a finite positive value are left out." if missing else ""
    caption = (
        "After the last round, mean over the seeds. No point lies above and left of the front, the line through the "
        f"points in its colour.{words}{left_out}"
    )
    best = "; ".join(f"{labels[at]}: {accuracy[at]:.1%} at {positive[at]:.3g}" for at in front.tolist())
    return Drawing(title, draw_svg(name, caption, draw, (5.0, 3.4)), f"{caption} On the front: {best}.")


def _texts(shown: NDArray[np.int64], front: NDArray[np.int64], labels: Sequence[str]) -> tuple[dict[int, str], str]:
    # What stands at each point, and what the caption says of it
    if len(shown) <= MOST_NAMES:
        return {at: labels[at] for at in shown.tolist()}, ""
    numbered = shown if len(shown) <= MOST_NUMBERS else front
    whose = "" if len(shown) <= MOST_NUMBERS else " on the front"
    return {at: str(at + 1) for at in numbered.tolist()}, f" Points{whose} have their numbers in the table of points."


def _limits(cost: Values) -> tuple[float, float]:
    # Room for names beside the outermost points
    low, high = float(cost.min()), float(cost.max())
    room = (high / low) ** 0.15 if high > 1.5 * low else 1.3
    return low / room, high * room


def _draw_front(axes: Axes, cost: Values, gain: Values) -> Values:
    # The edge of what is reached, and its corners: up to the cheapest point, along the front, and on to the right
    (_, right), (bottom, _) = axes.get_xlim(), axes.get_ylim()
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())
    if not len(cost):
        return np.zeros((0, 2))
    places = np.repeat([*cost, right], 2)[:-1]
    values = np.array([bottom, *np.repeat(gain, 2)])
    axes.plot(places, values, color=CYCLE[1], linewidth=1.8, zorder=1.5)
    return np.column_stack([places, values])


def place_labels(axes: Axes, wanted: Sequence[tuple[float, float, str]], corners: Values) -> list[Text]:
    """Texts beside points, none over another text, a point, a line or the edge of the panel where there is room.

    Args:
        axes: the panel, with its limits and scales as they will be.
        wanted: place and text of each point, in the units of the panel.
        corners: (c, 2) corners of the line, upright and level pieces.

    Returns:
        The texts.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    svg = figure.canvas
    renderer: RendererBase = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    figure.draw_without_rendering()  # settles the layout
    figure.set_canvas(svg)
    frame: Box = axes.get_window_extent(renderer).extents
    points = axes.transData.transform([(x, y) for x, y, _ in wanted]) if wanted else np.zeros((0, 2))
    taken: list[Box] = [(x - _POINT_PX, y - _POINT_PX, x + _POINT_PX, y + _POINT_PX) for x, y in points]
    taken += _pieces(axes.transData.transform(corners) if len(corners) else corners)
    drawn = []
    for (px, py), (_, _, words) in zip(points, wanted, strict=True):
        text = axes.text(0, 0, words, fontsize=_TEXT_PT, transform=None, parse_math=False)
        extent = text.get_window_extent(renderer)
        boxes = [_beside(px, py, extent.width, extent.height, way, gap) for gap in _DISTANCES for way in _WAYS]
        free = [box for box in boxes if _inside(box, frame) and not any(_overlap(box, one) for one in taken)]
        box = free[0] if free else boxes[0]
        taken.append(box)
        text.set_transform(axes.transData)
        inverse = axes.transData.inverted()
        left, bottom = inverse.transform((box[0], box[1]))
        text.set_position((float(left), float(bottom)))
        drawn.append(text)
        gap = float(np.hypot(max(box[0] - px, px - box[2], 0), max(box[1] - py, py - box[3], 0)))
        if gap > 2 * _POINT_PX:
            end = inverse.transform((np.clip(px, box[0], box[2]), np.clip(py, box[1], box[3])))
            start = inverse.transform((px, py))
            axes.plot([start[0], end[0]], [start[1], end[1]], color=FAINT, linewidth=0.6, zorder=1)
    return drawn


def _pieces(corners: Values) -> list[Box]:
    # Boxes around the pieces of a line
    low, high = np.minimum(corners[:-1], corners[1:]) - _LINE_PX, np.maximum(corners[:-1], corners[1:]) + _LINE_PX
    return [(*map(float, one), *map(float, other)) for one, other in zip(low, high, strict=True)]  # type: ignore[misc]


def _beside(px: float, py: float, width: float, height: float, way: tuple[int, int], gap: float) -> Box:
    across, up = way
    left = px + across * (gap + _POINT_PX) - (width if across < 0 else 0 if across else width / 2)
    bottom = py + up * (gap + (_POINT_PX if not across else 0)) - (height if up < 0 else 0 if up else height / 2)
    return left, bottom, left + width, bottom + height


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _inside(box: Box, frame: Box) -> bool:
    return bool(box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3])
