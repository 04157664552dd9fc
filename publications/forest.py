"""The forest plot of a paper's claims: every effect with its 95 % interval, in the colour of its outcome."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from publications.claims import Outcome
from publications.effects import Effect, Scale
from publications.results import Judgement
from wirelessfl.summary.style import ROLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    Outcome.CONFIRMED: ROLES["participated"],
    Outcome.CONTRADICTED: ROLES["crashed"],
    Outcome.UNDECIDED: ROLES["recorded"],
}
_TITLES: dict[Scale, str] = {
    "points": "effect in percentage points",
    "ratio": "quotient that its row names",
    "number": "effect as it is, such as of a loss",
}
_ROW_IN, _LINE_IN, _WIDTH_IN = 0.3, 0.115, 7.6
_LINE, _LINES = 62, 3
"""A label has so many letters a line at most, and so many lines of the claim's text."""
_BETWEEN_IN = 0.1
"""Height between the effects at several values of a setting, which stand in one row."""
_WIDE, _DECADES = 30.0, 1000.0
"""Beyond this quotient of sizes an axis is logarithmic, over so much of it at most and linear around 0."""


def draw_forest(judged: Sequence[Judgement]) -> Figure:
    """The forest plot; claims without an effect are left out.

    Raises:
        ValueError: no claim has an effect.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows: dict[Scale, list[tuple[int, Judgement, Effect]]] = {}
    for at, one in enumerate(judged, start=1):
        if one.verdict.effect is not None:
            rows.setdefault(one.verdict.effect.scale, []).append((at, one, one.verdict.effect))
    if not rows:
        raise ValueError("no claim has an effect")
    panels = [(scale, rows[scale]) for scale in _TITLES if scale in rows]
    heights = [sum(_row_height(*row) for row in some) + 0.55 for _, some in panels]
    figure = Figure(figsize=(_WIDTH_IN, sum(heights) + 0.35), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for axes, (scale, some) in zip(grid[:, 0], panels, strict=True):
        _draw_panel(axes, scale, some)
    _legend(figure)
    return figure


def _draw_panel(axes: Axes, scale: Scale, rows: Sequence[tuple[int, Judgement, Effect]]) -> None:
    factor = 100.0 if scale == "points" else 1.0
    effects = [part for _, _, effect in rows for part in _parts(effect)]
    words = _scale_axis(axes, scale, [[factor * end for end in (one.low, one.value, one.high)] for one in effects])
    heights = [_row_height(*row) for row in rows]
    places = np.cumsum(heights) - np.array(heights) / 2
    for place, (_, one, effect) in zip(places, rows, strict=True):
        parts = _parts(effect)
        full = one.size == "full" or one.claim.everywhere
        for at, part in enumerate(parts):
            height = float(place) + _BETWEEN_IN * (at - (len(parts) - 1) / 2)
            size = 5 if len(parts) == 1 else 3
            _draw_effect(axes, height, part, factor, COLOURS[one.verdict.outcome], size, full=full)
        if effect.threshold != (1.0 if scale == "ratio" else 0.0):
            axes.plot([factor * effect.threshold], [place], marker="|", markersize=9, color=GREY, markeredgewidth=1.4)
    axes.axvline(1.0 if scale == "ratio" else 0.0, color=GREY, linewidth=0.8, linestyle="--")
    for border in np.cumsum(heights)[:-1]:
        axes.axhline(border, color=GREY, linewidth=0.4, alpha=0.4)
    axes.set_yticks(places, [_label(*row) for row in rows], fontsize=6.5)
    axes.set_ylim(sum(heights), 0)
    axes.grid(axis="y", visible=False)
    side = "← as claimed" if scale == "ratio" else "as claimed →"
    axes.set_xlabel(f"{_TITLES[scale]} ({side}){words}", fontsize=7.5)


def _parts(effect: Effect) -> tuple[Effect, ...]:
    """What is drawn in a row: the effects at several values of a setting, or the one that there is."""
    return effect.parts or (effect,)


def _scale_axis(axes: Axes, scale: Scale, ends: Sequence[Sequence[float]]) -> str:
    """Scales the horizontal axis so that the least effects are seen beside the largest; and what to say of it."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    known = [abs(one) for some in ends for one in some if math.isfinite(one) and one != 0]
    if scale == "ratio":
        axes.set_xscale("log")
        axes.set_xlim(min([0.1, *(one / 2 for one in known)]), max([10.0, *(4 * one for one in known)]))
        axes.xaxis.set_minor_formatter(NullFormatter())
        return ""
    sizes = [abs(some[1]) for some in ends if some[1] != 0]
    if not sizes or max(sizes) <= _WIDE * min(sizes):
        return ""
    linear = 10.0 ** math.ceil(math.log10(max(min(sizes), max(known) / _DECADES)))
    axes.set_xscale("symlog", linthresh=linear, linscale=1.0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    return f", logarithmic beyond ±{linear:g}"


def _draw_effect(
    axes: Axes, height: float, effect: Effect, factor: float, colour: str, size: float, *, full: bool
) -> None:
    value = factor * effect.value
    if math.isinf(value):
        far = axes.get_xlim()[1]
        axes.plot([far / 1.3], [height], marker=">", color=colour, clip_on=False)
        axes.annotate("∞", (far / 1.5, height), ha="right", va="center", fontsize=7)
        return
    if math.isfinite(effect.low):
        axes.plot([factor * effect.low, factor * effect.high], [height, height], color=colour, linewidth=1.6)
    axes.plot([value], [height], marker="o", color=colour, markerfacecolor=colour if full else "none", markersize=size)


GREY = ROLES["recorded"]


def _label(at: int, one: Judgement, effect: Effect) -> str:
    words = textwrap.wrap(f"{at}. {one.claim.text}", _LINE)
    if len(words) > _LINES:
        rest = textwrap.shorten(" ".join(words[_LINES - 1 :]), _LINE, placeholder=" …")
        words = [*words[: _LINES - 1], rest]
    if effect.scale == "ratio":
        words.append(f"({effect.name.partition(', ')[2] if effect.parts else effect.name})")
    if effect.parts:
        first, last = (part.name.partition(",")[0] for part in (effect.parts[0], effect.parts[-1]))
        words.append(f"(from {first} above to {last} below)")
    return "\n".join(words)


def _row_height(at: int, one: Judgement, effect: Effect) -> float:
    """Height of a row in inches, for its label and for the effects that stand in it."""
    lines = _label(at, one, effect).count("\n") + 1
    return max(_ROW_IN, _LINE_IN * lines + 0.08, _BETWEEN_IN * (len(_parts(effect)) + 1))


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, marker="o", label=outcome.value) for outcome, colour in COLOURS.items()]
    looks = (("none", "smaller size"), (GREY, "paper's size, or any"))
    handles += [
        Line2D([], [], color=GREY, linestyle="none", marker="o", markerfacecolor=face, label=words)
        for face, words in looks
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=7)
