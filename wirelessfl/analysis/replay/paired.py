"""Two runs under the same conditions, compared round by round."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import NDArray

from wirelessfl.summary.drawing import drawing, legend_inside, log_scale, whole_numbers
from wirelessfl.summary.numbers import last_finite
from wirelessfl.summary.style import BLUE, COLUMN_IN, GREY, ROLES, STYLE, VERMILION
from wirelessfl.trace import axis_label

Series = NDArray[np.float64]


@dataclass(frozen=True)
class Quantity:
    """Quantity of two runs that is compared.

    Attributes:
        name: variable of the trace over rounds, or over rounds and slots, where it is summed over the clients.
        words: how it is called.
        unit: "" where it has none.
        total: one number from its rounds.
    """

    name: str
    words: str
    unit: str
    total: Callable[[Series], float]


def _sum(values: Series) -> float:
    return math.nan if np.isnan(values).all() else float(np.nansum(values))


def _mean(values: Series) -> float:
    return math.nan if np.isnan(values).all() else float(np.nanmean(values))


QUANTITIES = (
    Quantity("test_accuracy", "test accuracy, last round", "", last_finite),
    Quantity("test_loss", "test loss, last round", "nat", last_finite),
    Quantity("train_loss", "training loss, last round", "nat", last_finite),
    Quantity("epsilon_published", "ε published, last round", "", last_finite),
    Quantity("epsilon_accounted", "ε accounted, last round", "", last_finite),
    Quantity("participants", "clients heard, mean", "", _mean),
    Quantity("effective_noise_std", "effective noise σ_m, mean", "", _mean),
    Quantity("tx_energy", "energy of the clients", "normalised", _sum),
    Quantity("jammer_energy", "energy of the jammer", "normalised", _sum),
    Quantity("energy", "energy", "J", lambda values: float(values.sum())),
    Quantity("airtime", "airtime", "s", _sum),
    Quantity("sim_time", "simulated time, last round", "s", last_finite),
)


@dataclass(frozen=True)
class PairedRow:
    """One quantity in both runs.

    Attributes:
        name: variable of the trace.
        words: how it is called.
        unit: "" where it has none.
        recorded: in the recorded run.
        changed: in the counterfactual.
        difference: changed − recorded.
        mean_round_difference: mean over the rounds of changed − recorded.
    """

    name: str
    words: str
    unit: str
    recorded: float
    changed: float
    difference: float
    mean_round_difference: float


def series(trace: xr.Dataset, name: str) -> Series:
    """(rounds,) a variable of the trace; over the clients the sum, NaN where no client has a value."""
    values = np.asarray(trace[name].values, dtype=np.float64)
    if values.ndim == 1:
        return values
    known = ~np.isnan(values)
    return np.where(known.any(axis=1), np.where(known, values, 0.0).sum(axis=1), math.nan)


def paired_rows(recorded: xr.Dataset, changed: xr.Dataset) -> list[PairedRow]:
    """Both runs over the same rounds; quantities that neither run knows are left out.

    Args:
        recorded: rounds of the recorded run.
        changed: the same rounds of the counterfactual.
    """
    rows = []
    for quantity in QUANTITIES:
        before, after = series(recorded, quantity.name), series(changed, quantity.name)
        both = ~np.isnan(before) & ~np.isnan(after)
        if quantity.total is last_finite and both.any():  # of the same round
            before, after = (np.where(both, values, math.nan) for values in (before, after))
        ours, theirs = quantity.total(before), quantity.total(after)
        if not (math.isnan(ours) and math.isnan(theirs)):
            difference = float(_minus(np.array([theirs]), np.array([ours]))[0])
            of_rounds = _mean(_minus(after, before))
            rows.append(PairedRow(quantity.name, quantity.words, quantity.unit, ours, theirs, difference, of_rounds))
    return rows


def _minus(after: Series, before: Series) -> Series:
    both = np.isinf(after) & np.isinf(before)
    return np.where(both, math.nan, np.where(both, 0.0, after) - np.where(both, 0.0, before))


def draw_paired(recorded: xr.Dataset, changed: xr.Dataset, path: Path, title: str, width_in: float = COLUMN_IN) -> None:
    """Figure of accuracy, its difference, ε and energy of both runs over the rounds.

    Args:
        recorded: rounds of the recorded run.
        changed: the same rounds of the counterfactual.
        path: where the figure goes; its suffix is the format.
        title: what was changed.
        width_in: width (inches).
    """
    accuracy = [100 * series(run, "test_accuracy") for run in (recorded, changed)]
    difference = accuracy[1] - accuracy[0]
    joules = np.isfinite(series(recorded, "energy")).all()
    name, words = ("energy", axis_label("energy")) if joules else ("tx_energy", "energy of clients\n(noise = 1)")
    with drawing(path, title, (width_in, 5.2), {**STYLE, "figure.titlesize": 8}) as figure:
        panels, rounds = figure.subplots(4, 1, sharex=True), recorded["round"].values
        _both(panels[0], rounds, accuracy, axis_label("test_accuracy"))
        panels[1].axhline(0.0, color=GREY, linewidth=0.8)
        panels[1].bar(rounds, difference, color=np.where(difference < 0, VERMILION, BLUE).tolist(), width=0.8)
        panels[1].set_ylabel("difference\n(points)")
        epsilons = [series(run, "epsilon_accounted") for run in (recorded, changed)]
        _both(panels[2], rounds, epsilons, axis_label("epsilon_accounted"))
        if _spans_orders(epsilons):
            log_scale(panels[2].yaxis)
        _both(panels[3], rounds, [series(run, name) for run in (recorded, changed)], words)
        legend_inside(panels[0])
        whole_numbers(panels[-1].xaxis)
        panels[-1].set_xlabel(axis_label("round"))


def _spans_orders(found: list[Series]) -> bool:
    # More than a decade between the ends; infinite values are not drawn
    values = np.concatenate(found)
    values = values[np.isfinite(values) & (values > 0)]
    return bool(len(values) and values.max() > 10 * values.min())


def _both(axes: Axes, rounds: NDArray[np.int64], values: list[Series], label: str) -> None:
    marker = "." if len(rounds) < 3 else ""
    styles = {"recorded": (ROLES["recorded"], "-"), "changed": (ROLES["changed"], "--")}
    for found, (words, (colour, line)) in zip(values, styles.items(), strict=True):
        known = np.isfinite(found)
        axes.plot(rounds[known], found[known], color=colour, ls=line, lw=1.3, label=words, marker=marker)
    axes.set_ylabel(label)
