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
    "ratio": "quotient, as accounted over published ε",
    "number": "effect as it is, such as of a loss",
}
_ROW_IN, _WIDTH_IN, _LINE = 0.3, 7.6, 62


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
    heights = [_ROW_IN * len(some) + 0.55 for _, some in panels]
    figure = Figure(figsize=(_WIDTH_IN, sum(heights) + 0.35), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for axes, (scale, some) in zip(grid[:, 0], panels, strict=True):
        _draw_panel(axes, scale, some)
    _legend(figure)
    return figure


def _draw_panel(axes: Axes, scale: Scale, rows: Sequence[tuple[int, Judgement, Effect]]) -> None:
    factor = 100.0 if scale == "points" else 1.0
    values = [factor * one for _, _, effect in rows for one in (effect.value, effect.low, effect.high)]
    known = [one for one in values if math.isfinite(one) and (one > 0 or scale != "ratio")]
    if scale == "ratio":
        axes.set_xscale("log")
        axes.set_xlim(min([0.5, *(one / 2 for one in known)]), 4 * max([2.0, *known]))
    for place, (_, one, effect) in enumerate(rows):
        colour = COLOURS[one.verdict.outcome]
        far = axes.get_xlim()[1]
        value = factor * effect.value
        if math.isinf(value):
            axes.plot([far / 1.3], [place], marker=">", color=colour, clip_on=False)
            axes.annotate("∞", (far / 1.5, place), ha="right", va="center", fontsize=7)
            continue
        if math.isfinite(effect.low):
            axes.plot([factor * effect.low, factor * effect.high], [place, place], color=colour, linewidth=1.6)
        full = one.size == "full" or one.claim.everywhere
        axes.plot([value], [place], marker="o", color=colour, markerfacecolor=colour if full else "none", markersize=5)
        if effect.threshold != (1.0 if scale == "ratio" else 0.0):
            axes.plot([factor * effect.threshold], [place], marker="|", markersize=9, color=GREY, markeredgewidth=1.4)
    axes.axvline(1.0 if scale == "ratio" else 0.0, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_yticks(np.arange(len(rows)), [_label(at, one) for at, one, _ in rows], fontsize=6.5)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    side = "← as claimed" if scale == "ratio" else "as claimed →"
    axes.set_xlabel(f"{_TITLES[scale]} ({side})", fontsize=7.5)


GREY = ROLES["recorded"]


def _label(at: int, one: Judgement) -> str:
    words = textwrap.wrap(f"{at}. {one.claim.text}", _LINE)
    rest = [textwrap.shorten(" ".join(words[1:]), _LINE, placeholder=" …")] if len(words) > 1 else []
    return "\n".join([*words[:1], *rest])


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, marker="o", label=outcome.value) for outcome, colour in COLOURS.items()]
    looks = (("none", "smaller size"), (GREY, "paper's size, or any"))
    handles += [
        Line2D([], [], color=GREY, linestyle="none", marker="o", markerfacecolor=face, label=words)
        for face, words in looks
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=7)
