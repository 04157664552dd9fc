"""Pictures and tables of what was tuned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from publications.figures import COLOURS, MARKERS, legend_below, new_figure, write_both
from publications.paper import Paper
from publications.studies import Size
from publications.sweeps import SWEEPS, find_sweep, sweeps_named
from publications.tables import Tables, matches
from publications.texts import escape, markdown, table_for_people
from publications.tuning import Score, Sweep, Trial, at_the_edge, scores, winner
from publications.tuning_runs import TUNED, read_trials, tuned_point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_PANELS = 3
"""So many panels stand in a row at most."""
_LEAST_GAP = 0.04
"""Part of an axis within which one value of two has a label."""
_LONGEST_LABEL = 6
"""Characters of a label of a value above which labels are turned."""
_APART = 1.08
"""The last method stands right of a value by this factor and the first one left of it, so that all points are seen."""


def draw_sweep(sweep: Sweep, trials: Sequence[Trial]) -> Figure:
    """Mean validation accuracy over each tuned key, every setting as a point.

    A line joins the best setting at each value; the ring is the setting that won.
    """
    found = [scores(sweep, method, trials) for method in sweep.methods]
    keys = list(dict.fromkeys(key for method in sweep.methods for key in method.grid))
    panes = _panes(sweep, keys)
    rows = math.ceil(len(panes) / _PANELS)
    figure, panels = new_figure(math.ceil(len(panes) / rows), rows)
    places = [axes for row in panels for axes in row]
    for axes in places[len(panes) :]:
        axes.set_visible(False)
    for axes, (title, key, labels) in zip(places, panes, strict=False):
        for at, (method, label) in enumerate(labels.items()):
            if key in found[method][0].values:
                _draw(axes, key, found[method], at / max(1, len(labels) - 1), COLOURS[at % len(COLOURS)], label)
        axes.set_title(title, fontsize=8)
        axes.set_xscale("log")
        _mark_values(axes, sorted({one.values[key] for tried in found for one in tried if key in one.values}))
        axes.set_xlabel(sweep.words.get(key, key), fontsize=8)
    for first in panels[:, 0]:
        first.set_ylim(*_limits(found))
        first.set_ylabel("validation accuracy (%)", fontsize=8)
    legend_below(figure, panels[0][0], columns=4 if len(keys) > 1 else 3)
    return figure


def _limits(found: Sequence[Sequence[Score]]) -> tuple[float, float]:
    """Ends of the vertical axis in percent: what won is seen of every method, settings that fail far below are not."""
    accuracies = [100 * one.accuracy for tried in found for one in tried]
    best, least = max(accuracies), 100 * min(winner(tried).accuracy for tried in found)
    spread = max(1.0, best - float(np.median(accuracies)), (best - least) / 1.5)
    return max(0.0, best - 1.6 * spread), best + 0.12 * spread


def _panes(sweep: Sweep, keys: Sequence[str]) -> list[tuple[str, str, dict[int, str]]]:
    """Panels: title, key, and the methods with their labels.

    One a key; where names end in a level, as in ``plain, σ = 1``, one a key and level.
    """
    names = [method.name for method in sweep.methods]
    parts = [name.rpartition(", ") for name in names]
    levels = dict.fromkeys(level for _, _, level in parts)
    if len(levels) == len(names) or not all(" = " in level for level in levels):
        return [("", key, dict(enumerate(names))) for key in keys]
    return [
        (one, key, {at: name for at, (name, _, level) in enumerate(parts) if level == one})
        for key in keys
        for one in levels
    ]


def _draw(axes: Axes, key: str, tried: Sequence[Score], place: float, colour: str, label: str) -> None:
    """One method.

    Args:
        axes: Where.
        key: On the horizontal axis.
        tried: Its settings.
        place: Which of the methods, from 0, left of a value, to 1, right of it.
        colour: Of its points.
        label: In the legend.
    """
    marker = MARKERS[COLOURS.index(colour) % len(MARKERS)]
    beside = _APART ** (2 * place - 1)
    values = sorted({one.values[key] for one in tried})
    best = [winner([one for one in tried if one.values[key] == value]) for value in values]
    axes.plot(
        [one.values[key] * beside for one in tried],
        [100 * one.accuracy for one in tried],
        linestyle="none",
        marker=marker,
        markersize=2.5,
        alpha=0.4,
        color=colour,
    )
    axes.plot(
        [value * beside for value in values],
        [100 * one.accuracy for one in best],
        color=colour,
        linewidth=1.2,
        marker=marker,
        markersize=3.5,
        label=label,
    )
    chosen = winner(tried)
    axes.plot(
        [chosen.values[key] * beside],
        [100 * chosen.accuracy],
        marker="o",
        markersize=9,
        markerfacecolor="none",
        markeredgecolor=colour,
        linestyle="none",
    )


def _mark_values(axes: Axes, values: Sequence[float]) -> None:
    from matplotlib.ticker import NullFormatter, NullLocator

    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    first, last = values[0], values[-1]
    least, labelled = (last / first) ** _LEAST_GAP, [first]
    for value in values[1:-1]:
        if labelled[-1] * least <= value <= last / least:
            labelled.append(value)
    labels = [escape(f"{value:g}") if value in (*labelled, last) else "" for value in values]
    crowded = len(values) > 4 or max(map(len, labels)) > _LONGEST_LABEL
    axes.set_xticks(list(values), labels, rotation=45 if crowded else 0)


def write_sweep_figure(folder: Path, paper: str, sweep: Sweep, trials: Sequence[Trial]) -> None:
    """Write ``tuning-<sweep>`` in both themes, the same bytes for the same numbers."""
    write_both(lambda: draw_sweep(sweep, trials), folder, f"tuning-{sweep.name}", paper)


def choice_rows(sweep: Sweep, trials: Sequence[Trial]) -> list[dict[str, str]]:
    """What was chosen: a row a method, with the accuracy that its untuned setting has."""
    rows = []
    for method in sweep.methods:
        tried = scores(sweep, method, trials)
        chosen = winner(tried)
        edge = at_the_edge(method, chosen.values)
        spread = {"range of the seeds": f"{100 * chosen.low:.2f} to {100 * chosen.high:.2f} %"}
        rows.append(
            {
                "method": method.name,
                "settings × seeds": f"{len(tried)} × {len(sweep.seeds)}",
                "before": f"{_told(sweep, method.start)}: {100 * tried[0].accuracy:.2f} %",
                "chosen": f"{_told(sweep, chosen.values)}: {100 * chosen.accuracy:.2f} %",
                **(spread if len(sweep.seeds) > 1 else {}),
                "at the edge of the grid": ", ".join(sweep.words.get(key, key) for key in edge) or "–",
            }
        )
    return rows


def tuned_rows(paper: Paper, name: str, size: Size, tables: Tables) -> list[dict[str, str]]:
    """The table of a study that tuning has written: each method by its name, for its setting stands in `choice_rows`.

    Args:
        paper: The paper.
        name: Name of the study.
        size: Of the tables.
        tables: What has run in it.
    """
    study, sweep = paper.study(name), find_sweep(paper.name, name.removeprefix(TUNED), size)
    points = {one.name: tuned_point(paper.name, sweep.name, size, one.name) for one in sweep.methods}
    table = tables.study(name)
    varied = {study.words.get(key, key) for key in table.keys}
    rows = []
    for point, row in zip(table.points(), table_for_people(tables, study), strict=True):
        method = next(one for one, where in points.items() if matches(point, where))
        rows.append({"method": method} | {head: text for head, text in row.items() if head not in varied})
    return rows


def _told(sweep: Sweep, values: Mapping[str, Any]) -> str:
    return ", ".join(f"{sweep.words.get(key, key)} {value:g}" for key, value in values.items())


def tuning_lines(paper: str, name: str, folder: Path, size: Size | None = None) -> list[str]:
    """The marker ``{{ tuning NAME }}``: picture and table of a sweep.

    Args:
        paper: Name of the paper.
        name: Name of the sweep.
        folder: The paper's folder of results.
        size: In which size; None for the largest that has run.

    Raises:
        ValueError: the paper has no such sweep.
    """
    sweeps = [find_sweep(paper, name, size)] if size else sweeps_named(paper, name)
    for sweep in reversed(sweeps):
        below = "" if sweep.size == "small" else f"{sweep.size}/"
        trials = read_trials(folder / below, sweep)
        if trials:
            return _shown(sweep, trials, f"{paper}/{below}")
    first = sweeps[0]
    return [f"*Not run yet: `python -m publications tune {paper} --size {first.size}`, {first.runs} runs.*"]


def _shown(sweep: Sweep, trials: Sequence[Trial], place: str) -> list[str]:
    seeds = f"means of {len(sweep.seeds)} seeds" if len(sweep.seeds) > 1 else "of one seed"
    found = [scores(sweep, method, trials) for method in sweep.methods]
    cut = any(100 * one.accuracy < _limits(found)[0] for tried in found for one in tried)
    caption = (
        f"{sweep.title}: validation accuracy over each tuned key. Points are settings, {seeds}; lines join the best at "
        "each value; rings are what was chosen. Methods stand beside each other at a value."
        f"{' Settings far below are cut off.' if cut else ''}"
    )
    file = f"{place}tuning-{sweep.name}"
    pictures = [f"![{caption}]({file}.svg#only-light)", f"![{caption}]({file}-dark.svg#only-dark)"]
    return [*pictures, "", f"*{caption} Size `{sweep.size}`.*", "", *markdown(choice_rows(sweep, trials))]


def tuning_pictures(root: Path) -> dict[str, Path]:
    """The pictures of all sweeps: path below ``docs/papers`` to the file."""
    found = {}
    for paper, sweeps in SWEEPS.items():
        for sweep in sweeps:
            folder = Path(paper) if sweep.size == "small" else Path(paper) / sweep.size
            for end in ("", "-dark"):
                file = root / "papers" / folder / f"tuning-{sweep.name}{end}.svg"
                if file.exists():
                    found[(folder / file.name).as_posix()] = file
    return found
