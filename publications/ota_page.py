"""Tables and pictures of the over-the-air paper's page."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from publications.figures import (
    accuracy_axis,
    draw_bands,
    draw_curves,
    draw_reference,
    legend_below,
    new_figure,
    note,
)
from publications.joint_curves import CurveRow
from publications.ota_checks import EARLY, METRIC, power_saving
from publications.ota_points import (
    AFTER,
    ALGORITHMS,
    ALONE,
    CLIPS,
    DRIFT,
    EPSILONS,
    IID,
    JAMMED,
    JAMMED_EPSILONS,
    PAIRS,
    Place,
    alone,
    clipped,
    drift,
    equal,
    iid,
    jammed,
    noiseless,
    step,
)
from publications.tables import Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BASELINE = "baseline [13]"
QUARTERS = {EARLY: "first", METRIC: "last"}


def _without_noise(axes: Axes, tables: Tables, algorithm: str) -> None:
    """The line of an algorithm without noise and without privacy, where it has run."""
    study, where = noiseless(algorithm)
    if study in tables.studies:
        label = f"{ALGORITHMS[algorithm]}, no noise" if algorithm == "fedavg" else "no noise"
        draw_reference(axes, tables.studies[study], label, where)


def draw_without_jammer(tables: Tables) -> Figure:
    """Figures 2 and 4."""
    figure, panels = new_figure(len(PAIRS))
    for axes, pair in zip(panels[0], PAIRS, strict=True):
        lines = [(words, alone(name, pair)[1]) for name, words in ALGORITHMS.items()]
        draw_curves(axes, tables.study(ALONE), [*lines, (BASELINE, alone("fedavg", pair, "privacy_for_free")[1])])
        note(axes, f"ε = {pair[0]}, δ = {pair[1]:g}")
        _without_noise(axes, tables, "fedavg")
    accuracy_axis(panels[0][0])
    legend_below(figure, panels[0][0])
    return figure


def draw_losses(tables: Tables) -> Figure:
    """Figures 3 and 5."""
    figure, panels = new_figure(len(PAIRS))
    for axes, pair in zip(panels[0], PAIRS, strict=True):
        lines = [(words, alone(name, pair)[1]) for name, words in ALGORITHMS.items()]
        lines.append((BASELINE, alone("fedavg", pair, "privacy_for_free")[1]))
        draw_curves(axes, tables.study(ALONE), lines, "train_loss")
        axes.set_title(f"ε = {pair[0]}, δ = {pair[1]:g}", fontsize=8)
        axes.set_yscale("log")
    accuracy_axis(panels[0][0], "train_loss")
    legend_below(figure, panels[0][0])
    return figure


def draw_iid_losses(tables: Tables) -> Figure:
    """Figure 10."""
    figure, panels = new_figure(1)
    axes = panels[0][0]
    lines = [("FedAvg, cross-layer", iid("cross_layer")[1]), (BASELINE, iid("privacy_for_free")[1])]
    draw_curves(axes, tables.study(IID), lines, "train_loss")
    axes.set_yscale("log")
    accuracy_axis(axes, "train_loss")
    legend_below(figure, axes)
    return figure


def draw_clip(tables: Tables) -> Figure:
    """Accuracy over the clip norm, in the first and in the last quarter of the rounds."""
    figure, panels = new_figure(len(QUARTERS), share_y=False)
    for axes, (metric, when) in zip(panels[0], QUARTERS.items(), strict=True):
        lines = [
            (words, [tables.band(*clipped(name, norm), metric=metric) for norm in CLIPS])
            for name, words in ALGORITHMS.items()
        ]
        draw_bands(axes, lines, [f"{norm:g}" for norm in CLIPS])
        axes.set_xlabel("clip norm τ", fontsize=8)
        axes.set_title(f"{when} quarter of the rounds", fontsize=8)
    accuracy_axis(panels[0][0])
    legend_below(figure, panels[0][0])
    return figure


def clip_order_rows(tables: Tables) -> list[dict[str, str]]:
    """What each algorithm is ahead of another by, at each clip norm and at (6.52, 1e-5), paired over seeds."""
    return [
        {
            "clip norm τ": f"{norm:g}",
            "quarter of the rounds": when,
            **{
                f"{ALGORITHMS[one]} − {ALGORITHMS[other]}": tables.difference(
                    clipped(one, norm), clipped(other, norm), metric
                ).text()
                for one, other in itertools.combinations(ALGORITHMS, 2)
            },
        }
        for metric, when in QUARTERS.items()
        for norm in CLIPS
    ]


def draw_drift(tables: Tables) -> Figure:
    """The same with 20 local epochs."""
    figure, panels = new_figure(1)
    axes = panels[0][0]
    lines = [(words, drift(name)[1]) for name, words in ALGORITHMS.items()]
    draw_curves(axes, tables.study(DRIFT), [*lines, (BASELINE, drift("fedavg", "privacy_for_free")[1])])
    accuracy_axis(axes)
    legend_below(figure, axes)
    return figure


def draw_with_jammer(tables: Tables) -> Figure:
    """Figures 6 to 8."""
    figure, panels = new_figure(len(ALGORITHMS))
    for axes, (name, words) in zip(panels[0], ALGORITHMS.items(), strict=True):
        draw_curves(axes, tables.study(JAMMED), [(f"ε = {one}", jammed(name, one)[1]) for one in JAMMED_EPSILONS])
        _without_noise(axes, tables, name)
        axes.set_title(words, fontsize=8)
    accuracy_axis(panels[0][0])
    legend_below(figure, panels[0][0])
    return figure


def draw_iid(tables: Tables) -> Figure:
    """Figure 9."""
    figure, panels = new_figure(1)
    axes = panels[0][0]
    lines = [("FedAvg, cross-layer", iid("cross_layer")[1]), (BASELINE, iid("privacy_for_free")[1])]
    draw_curves(axes, tables.study(IID), lines)
    accuracy_axis(axes)
    legend_below(figure, axes)
    return figure


def _ways() -> dict[str, list[Place | None]]:
    """The ways in which FedAvg meets an ε, each with its place at every ε."""
    published: list[Place | None] = [alone("fedavg", PAIRS[0]), *(jammed("fedavg", one) for one in JAMMED_EPSILONS)]
    return {
        "as published": published,
        "one clipped step, sample": [step(one, "exact") for one in EPSILONS],
        "whole update, sample": [equal("fedavg", one) for one in EPSILONS],
        "whole update, client": [None if one == 0.5 else equal("fedavg", one, "client") for one in EPSILONS],
    }


def draw_cost(tables: Tables) -> Figure:
    """What an ε costs."""
    figure, panels = new_figure(1)
    axes = panels[0][0]
    lines = [
        (words, [tables.band(*place) if place is not None else None for place in places])
        for words, places in _ways().items()
    ]
    draw_bands(axes, lines, [f"{one:g}" for one in EPSILONS])
    axes.set_xlabel("ε", fontsize=8)
    accuracy_axis(axes)
    legend_below(figure, axes, columns=2)
    return figure


def progress_rows(tables: Tables) -> list[dict[str, Any]]:
    """Accuracy after some rounds and after the last one, on receiver noise alone and without noise."""
    lines = {words: alone(name, PAIRS[0]) for name, words in ALGORITHMS.items()}
    lines[BASELINE] = alone("fedavg", PAIRS[0], "privacy_for_free")
    lines |= {f"{words}, no noise": noiseless(name) for name, words in ALGORITHMS.items()}
    tables.study(ALONE)
    curves = {
        words: tables.studies[study].curve(where) for words, (study, where) in lines.items() if study in tables.studies
    }
    there = {row.round for curve in curves.values() for row in curve}
    listed = [at for at in AFTER if at in there]
    return [{"algorithm": words, **_progress(curve, listed)} for words, curve in curves.items()]


def _progress(curve: list[CurveRow], listed: Sequence[int]) -> dict[str, str]:
    told = {row.round: f"{100 * row.mean:.2f} ± {100 * row.half_width:.2f} %" for row in curve}
    after = {f"after {at} rounds": told.get(at, "–") for at in listed}
    return {**after, "after the last": told[max(told)] if told else "–"}


def cost_rows(tables: Tables) -> list[dict[str, Any]]:
    """Accuracy after the last round, a row for each ε."""
    rows = []
    for at, epsilon in enumerate(EPSILONS):
        row = {"ε": f"{epsilon:g}"}
        for words, places in _ways().items():
            place = places[at]
            row[words] = "–" if place is None else tables.band(*place).text(0, percent=True)
        rows.append(row)
    return rows


def calibration_rows(tables: Tables) -> list[dict[str, Any]]:
    """Noise, jamming energy and accuracy of both calibrations, a row for each ε."""
    rows = []
    for epsilon in JAMMED_EPSILONS:
        theorem, exact = step(epsilon, "theorem"), step(epsilon, "exact")
        saved = power_saving(tables, epsilon)
        rows.append(
            {
                "ε": f"{epsilon:g}",
                "σ_m of all noise, theorem": _mean(tables, theorem, "effective_noise_std"),
                "σ_m of all noise, exact": _mean(tables, exact, "effective_noise_std"),
                "energy of the jammer saved": f"{100 * saved.mean:.1f} %",
                "accounted ε, theorem": _mean(tables, theorem, "epsilon_accounted"),
                "accounted ε, exact": _mean(tables, exact, "epsilon_accounted"),
                "accuracy, theorem": tables.band(*theorem).text(0, percent=True),
                "accuracy, exact": tables.band(*exact).text(0, percent=True),
                "difference": tables.difference(exact, theorem).text(),
            }
        )
    return rows


def _mean(tables: Tables, place: Place, metric: str) -> str:
    return f"{float(tables.band(*place, metric=metric).mean[0]):.4g}"
