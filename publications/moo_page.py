"""Pictures of the page on multi-objective clipping."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import wirelessfl as wfl
from publications.effects import MissingRuns
from publications.figures import (
    AXES_OF,
    COLOURS,
    GREY,
    accuracy_axis,
    draw_curves,
    draw_paper,
    draw_reference,
    legend_below,
    new_figure,
    norm_axis,
    note,
)
from publications.levels import DATASET, DATASETS, Level, Method, draw_levels, levels_of
from publications.moo_methods import (
    EPSILON,
    KEYS,
    METHODS,
    MOO,
    MOO_PRIVATE,
    MOO_STEP,
)
from publications.moo_numbers import EPSILONS, NON_PRIVATE, TABLE_III
from publications.moo_rates import NORM, draw_norms_of_rates, draw_rates
from publications.moo_table import diverged_runs, has_run
from publications.paper import PaperFigure
from publications.tables import Tables
from wirelessfl.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST = "largest_clipping_norm"
MOST_LEVELS = 5
"""Panels of Table III with more levels than that stand one below the other."""


# --- the norm over the rounds ----------------------------------------------------------------------------------------


def mean_norm(scenario: Scenario, trace: Path) -> NDArray[np.float64]:
    """(T,) C of a round, the mean over its clients and their steps."""
    return np.asarray(np.mean(_over_clients(trace), axis=1))


def largest_norm(scenario: Scenario, trace: Path) -> NDArray[np.float64]:
    """(T,) C of the client that has the largest one in a round, the mean over its steps."""
    return np.asarray(np.max(_over_clients(trace), axis=1))


def _over_clients(trace: Path) -> NDArray[np.float64]:
    with wfl.open_trace(trace) as recorded:
        return np.asarray(recorded["clip_norm"].to_numpy(), dtype=np.float64)


CURVES = {NORM: mean_norm, LARGEST: largest_norm}


def draw_norms(tables: Tables) -> Figure:
    """C over the rounds on MNIST: mean over clients, and the largest of them."""
    figure, panels = new_figure(2, share_y=False)
    names = ((MOO, ""), (MOO_STEP, ", once a step"), (MOO_PRIVATE, ", private"))
    for axes, metric, title in zip(panels[0], (NORM, LARGEST), ("mean over clients", "largest client"), strict=True):
        drawn, beyond = 0, []
        for method, words in names:
            table = tables.studies.get(method.study)
            if table is None:
                continue
            lines = [
                (f"ε = {one}{words}", point)
                for one in (EPSILONS[0], EPSILONS[-1])
                if table.curve(point := {DATASET: "mnist", EPSILON: one}, metric)
            ]
            held = [(label, point) for label, point in lines if not diverged_runs(tables, method, point)]
            left = [(label, table.curve(point, metric)) for label, point in lines if (label, point) not in held]
            beyond += [f"{label}: {_power(max(row.mean for row in curve))}" for label, curve in left]
            if held:
                draw_curves(axes, table, held, metric, first_colour=drawn)
            drawn += len(lines)
        if not axes.lines:
            raise MissingRuns("no study has followed the norm")
        axes.set_title(title, fontsize=8)
        norm_axis(axes)
        if beyond:  # above the curves, which begin at the norm that all start from
            axes.set_ylim(top=1.4 * axes.get_ylim()[1])
            told = "\n".join(["diverged, C beyond the axis:", *beyond])
            axes.text(0.98, 0.97, told, transform=axes.transAxes, ha="right", va="top", fontsize=7, color=GREY)
        axes.xaxis.get_major_locator().set_params(integer=True)
    panels[0][0].set_ylabel(AXES_OF[NORM][0], fontsize=8)
    legend_below(figure, panels[0][0], columns=3)
    return figure


def _power(value: float) -> str:
    return f"$10^{{{math.floor(math.log10(value))}}}$"


# --- accuracy --------------------------------------------------------------------------------------------------------


def draw_table_iii(tables: Tables) -> Figure:
    """Table III: ours with intervals, the paper's own numbers as open diamonds."""
    levels = levels_of(tables, MOO, KEYS)
    if len(levels) <= MOST_LEVELS:
        figure, panels = new_figure(2)
    else:
        figure, panels = new_figure(1, 2, stretch=2.0)

    def stated(label: str, level: Level) -> float | None:
        ran = METHODS[label][0].study in tables.studies
        return TABLE_III[label][level[DATASET]][level[EPSILON]] if ran else None

    places = [axes for row in panels for axes in row]
    for at, (axes, title) in enumerate(zip(places, ("at equal published ε", "at equal accounted ε"), strict=True)):
        lines = [(name, methods[at] or Method("")) for name, methods in METHODS.items()]
        if at:
            draw_levels(axes, tables, lines, levels)
        else:
            draw_levels(axes, tables, lines, levels, stated)
        axes.set_ylim(0, 100)
        axes.set_title(title, fontsize=8)
        axes.set_xlabel("ε", fontsize=8)
    for axes in panels[:, 0]:
        accuracy_axis(axes)
    legend_below(figure, places[0], columns=2)
    return figure


def draw_learning(tables: Tables) -> Figure:
    """Test accuracy over the rounds on MNIST, with the line without privacy and the paper's numbers."""
    figure, panels = new_figure(len(EPSILONS))
    for axes, epsilon in zip(panels[0], EPSILONS, strict=True):
        level = {DATASET: "mnist", EPSILON: epsilon}
        drawn = 0
        for at, (name, (published, _)) in enumerate(METHODS.items()):
            table, where = tables.studies.get(published.study), published.at(level)[1]
            if table is None or not (curve := table.curve(where)):
                continue
            draw_curves(axes, table, [(name, where)], first_colour=at)
            drawn = max(drawn, curve[-1].round)
        if not drawn:
            raise MissingRuns(f"no method has run at ε = {epsilon}")
        if "baseline" in tables.studies:
            baseline = tables.study("baseline")
            draw_reference(axes, baseline, "without privacy", {DATASET: "mnist"})
            drawn = max(drawn, baseline.curve({DATASET: "mnist"})[-1].round)
        _draw_stated(axes, tables, drawn, epsilon)
        lost = [name for name, (published, _) in METHODS.items() if diverged_runs(tables, published, level)]
        if lost:
            note(axes, f"diverged: {', '.join(lost)}")
        axes.set_title(f"{DATASETS['mnist']}, ε = {epsilon}", fontsize=8)
        axes.set_ylim(0, 100)
    accuracy_axis(panels[0][0])
    legend_below(figure, panels[0][0], columns=4)
    return figure


def _draw_stated(axes: Axes, tables: Tables, last: int, epsilon: str) -> None:
    """The paper's numbers right of the last round, each in the colour of its method and beside the one before."""
    for at, (name, (published, _)) in enumerate(METHODS.items()):
        if has_run(tables, published):
            place, value = last * (1.04 + 0.025 * at), TABLE_III[name]["mnist"][epsilon]
            draw_paper(axes, [place], [value], label="_")
            axes.lines[-1].set_markeredgecolor(COLOURS[at % len(COLOURS)])
    draw_paper(axes, [last * (1.04 + 0.025 * len(METHODS))], [NON_PRIVATE["mnist"]], label="_")
    axes.lines[-1].set_markeredgecolor(GREY)
    axes.set_xticks([one for one in axes.get_xticks() if 0 < one <= last])
    draw_paper(axes, [], [])  # one entry of the legend for all of them


FIGURES = (
    PaperFigure(
        "table-iii",
        "Table III: test accuracy after the last round with 95 % intervals over seeds, at equal published ε (first "
        "panel) and at equal accounted ε (second); open diamonds: the paper's own numbers after 200 rounds, of methods "
        "that have run, each beside its method. DP-FedAvg's ε is a client's and stands in the first only. 0 % "
        "are runs that diverged; intervals are cut at 0 and 100 %.",
        draw_table_iii,
    ),
    PaperFigure(
        "learning",
        "Test accuracy over the rounds on MNIST at equal published ε, with 95 % bands, cut at 0 and 100 %; dashed: "
        "without privacy; open diamonds: the paper's numbers after its 200 rounds, in the colour of the method. A "
        "method of which a run diverged has no curve there.",
        draw_learning,
    ),
    PaperFigure(
        "norms",
        "The norm C over the rounds on MNIST, at the largest and the least ε: mean over clients (left), and that of "
        "the client where it is largest (right). Where a run diverged there is no curve, and the panel says how large "
        "C became.",
        draw_norms,
    ),
    PaperFigure(
        "rates",
        "MOO over κ and η_C on MNIST at ε = 1.64, a panel for each form that has run in this size: mean accuracy on "
        "validation samples after the last round, with 95 % intervals (cut at 0 and 100 %) where there are several "
        "seeds. 0 % are runs that diverged. A ring is what was chosen or, in sizes that do not choose, the best; the "
        "seeds are those of no other study.",
        draw_rates,
    ),
    PaperFigure(
        "rates-norm",
        "The mean C over the rounds in the same runs, for each κ at the middle η_C. A curve that ends early is of runs "
        "that diverged.",
        draw_norms_of_rates,
    ),
)
