"""κ and η_C of multi-objective clipping: the sweeps on validation samples, and what they choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from publications.effects import MissingRuns
from publications.figures import (
    AXES_OF,
    COLOURS,
    accuracy_axis,
    cut_errors,
    draw_curves,
    legend_below,
    new_figure,
    norm_axis,
)
from publications.moo_methods import KAPPA, NORM_RATE
from publications.studies import Size
from publications.tables import StudyTable, Tables
from publications.texts import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NORM = "clipping_norm"
"""The mean C over the rounds, as a curve of a study."""

JUDGED = "validation_accuracy"
"""By what κ and η_C are chosen."""

RATES: Mapping[str, tuple[str, str]] = {
    "rates": ("moo", "as published"),
    "rates-step": ("moo-step", "as published, once a step"),
    "rates-private": ("moo-private", "private feedback"),
}
"""By the name of a sweep: the study that takes what it chooses, and its form of MOO in words."""


SETTINGS = 9
"""Three κ and three η_C in each sweep."""


CHOOSING: Size = "small"
"""The size whose sweeps choose: larger ones take the same κ, and an η_C that moves C as far in a run."""


def best_rates(sweep: StudyTable) -> list[dict[str, str]]:
    """κ and η_C with the largest mean validation accuracy, several if they are equal.

    Raises:
        MissingRuns: the sweep has not ended.
    """
    points = sweep.points()
    if len(points) < SETTINGS:
        raise MissingRuns(f"the sweep {sweep.name} has not ended")
    means = [float(sweep.band(JUDGED, point).mean[0]) for point in points]
    return [point for point, mean in zip(points, means, strict=True) if mean == max(means)]


def marked_rates(tables: Tables, sweep: StudyTable) -> tuple[str, list[dict[str, str]]]:
    """What is said of some κ and η_C of a sweep: the first of the best ones where it chooses, else all of these."""
    best = best_rates(sweep)
    return ("chosen", best[:1]) if tables.about["size"] == CHOOSING else ("best", best)


def rates_rows(tables: Tables) -> list[dict[str, Any]]:
    """``chosen-rates.csv``: mean validation accuracy at every κ and η_C of the sweeps that have ended."""
    rows = []
    for name, (_, words) in RATES.items():
        if name not in tables.studies:
            continue
        sweep = tables.studies[name]
        word, marked = marked_rates(tables, sweep)
        for point in sweep.points():
            found = sweep.band(JUDGED, point)
            rows.append(
                {
                    "MOO": words,
                    "κ": point[KAPPA],
                    "η_C": point[NORM_RATE],
                    "validation accuracy": percent(float(found.mean[0]), float(found.half_width[0])),
                    "": word if point in marked else "",
                }
            )
    return rows


def draw_rates(tables: Tables) -> Figure:
    """Validation accuracy after the last round over κ and η_C, a panel for each form of MOO."""
    sweeps = _ended(tables)
    figure, panels = new_figure(len(sweeps))
    for axes, sweep in zip(panels[0], sweeps, strict=True):
        _draw_accuracy(axes, sweep, marked_rates(tables, sweep)[1])
        axes.set_title(RATES[sweep.name][1], fontsize=8)
    accuracy_axis(panels[0][0])
    panels[0][0].set_ylim(0, 100)
    panels[0][0].set_ylabel("validation accuracy (%)", fontsize=8)
    legend_below(figure, panels[0][0])
    return figure


def draw_norms_of_rates(tables: Tables) -> Figure:
    """The mean C over the rounds at each κ and the middle η_C, a panel for each form of MOO."""
    sweeps = _ended(tables)
    figure, panels = new_figure(len(sweeps))
    for axes, sweep in zip(panels[0], sweeps, strict=True):
        rates = sweep.levels(NORM_RATE)
        middle = float(rates[len(rates) // 2])
        lines = [(f"κ = {kappa}", {KAPPA: float(kappa), NORM_RATE: middle}) for kappa in sweep.levels(KAPPA)]
        draw_curves(axes, sweep, lines, NORM)
        axes.set_title(f"{RATES[sweep.name][1]}, η_C = {middle:g}", fontsize=8)
        norm_axis(axes)
        axes.xaxis.get_major_locator().set_params(integer=True)
    panels[0][0].set_ylabel(AXES_OF[NORM][0], fontsize=8)
    legend_below(figure, panels[0][0])
    return figure


def _ended(tables: Tables) -> list[StudyTable]:
    found = [tables.studies[name] for name in RATES if name in tables.studies]
    if not found:
        raise MissingRuns("no sweep of κ and η_C has run")
    for sweep in found:
        best_rates(sweep)
    return found


def _draw_accuracy(axes: Axes, sweep: StudyTable, marked: Sequence[Mapping[str, str]]) -> None:
    rates = sweep.levels(NORM_RATE)
    for at, kappa in enumerate(sweep.levels(KAPPA)):
        bands = [sweep.band(JUDGED, {KAPPA: float(kappa), NORM_RATE: float(rate)}) for rate in rates]
        places = [float(rate) * 1.06 ** (at - 1) for rate in rates]
        means, halves = ([100 * float(getattr(band, name)[0]) for band in bands] for name in ("mean", "half_width"))
        axes.errorbar(
            places,
            means,
            yerr=cut_errors(means, halves),
            clip_on=False,
            capsize=2,
            color=COLOURS[at % len(COLOURS)],
            marker="osD"[at % 3],
            markersize=4,
            linewidth=1.0,
            label=f"κ = {kappa}",
        )
        for point in marked:
            if kappa == point[KAPPA]:
                best = rates.index(point[NORM_RATE])
                height = 100 * float(bands[best].mean[0])
                ring: Any = {"marker": "o", "markersize": 11, "markerfacecolor": "none", "color": "0.5"}
                axes.plot([places[best]], [height], clip_on=False, **ring)
    axes.set_xscale("log")
    axes.set_xlabel("η_C", fontsize=8)
