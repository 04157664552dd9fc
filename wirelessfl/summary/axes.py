"""What curves are drawn over: rounds, simulated seconds, energy, or the accounted ε; values and label of each.

All four are cumulative at the end of a round. Runs are given by their columns by round, of a trace or of the table of a
study.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, assert_never, cast, get_args

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import InputError, precondition
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.uplink import Ideal, transmits_in_watts

if TYPE_CHECKING:
    import xarray as xr

    from wirelessfl.trace import AnyRoot

XAxis = Literal["round", "sim_time", "energy", "epsilon"]
X_AXES: tuple[XAxis, ...] = get_args(XAxis)
"""Names of all axes."""

Columns = Mapping[str, NDArray[np.float64]]
"""By name: values (m,) of one run, by round."""

EnergyUnit = Literal["J", "noise"]
"""Unit of an axis of energy: joules, or N0/2, the noise of a real symbol."""

COLUMNS = ("round", "sim_time", "energy", "jammer_energy", "epsilon_accounted")
"""Columns that axes are made of, beside ``tx_energy`` summed over the clients."""

JOULES = "uplink.tx_power_dbm (instead of uplink.snr_db), and timing.switched_capacitance for computing"
"""Keys of the scenario by which joules are known."""

_WIDE = 30.0
_MOST_GRID_POINTS = 500


def x_axis(name: str) -> XAxis:
    """An axis by its name.

    Raises:
        InputError: there is none of that name.
    """
    precondition(name in X_AXES, f"x: found {name!r}; allowed: {', '.join(X_AXES)}", InputError)
    return cast("XAxis", name)


def columns_of(trace: xr.Dataset) -> dict[str, NDArray[np.float64]]:
    """Columns of an opened trace that axes are made of; NaN where an earlier version did not record one."""
    unknown = np.full(trace.sizes["round"], np.nan)
    columns = {name: trace[name].values.astype(np.float64) if name in trace else unknown for name in COLUMNS}
    return columns | {"tx_energy": transmit_energy(trace)}


def transmit_energy(trace: AnyRoot) -> NDArray[np.float64]:
    """Energy (m,) that the clients sent in each round, in units of the noise; NaN in a run that counts none."""
    sent = np.asarray(trace["tx_energy"].values, dtype=np.float64)
    known = bool(np.isfinite(sent).any())
    return np.nansum(sent, axis=1) if known else np.full(len(sent), np.nan)


def energy_unit(columns: Columns) -> EnergyUnit | None:
    """Unit in which the energy of a run is known; None where it is not known at all, as of an ideal uplink."""
    if len(columns["energy"]) and np.isfinite(columns["energy"]).all():
        return "J"
    return "noise" if np.isfinite(columns["tx_energy"]).any() else None


def common_energy_unit(runs: Mapping[str, Columns]) -> EnergyUnit | None:
    """Unit of the energies of several runs, by name; None where no run has any. Where nothing was spent, any unit fits.

    Raises:
        InputError: some are known in joules and others in units of the noise, which no axis has in common.
    """
    spending = {name: columns for name, columns in runs.items() if columns["energy"].any()} or runs  # NaN counts
    units = {name: unit for name, columns in spending.items() if (unit := energy_unit(columns)) is not None}
    without = [name for name, unit in units.items() if unit == "noise"]
    precondition(
        len(set(units.values())) < 2,
        f"x: energy: found runs whose energy is known in joules, and others in units of the noise "
        f"({'; '.join(without)}); allowed: runs of one unit. Joules are known with {JOULES}",
        InputError,
    )
    return next(iter(units.values()), None)


def without_joules(scenarios: Sequence[Scenario]) -> list[int]:
    """Positions of those scenarios whose energy will be known in units of the noise, beside others in joules.

    Scenarios whose uplink counts no energy at all are beside the point.
    """
    counted = [at for at, one in enumerate(scenarios) if not isinstance(one.uplink, Ideal)]
    without = [at for at in counted if not transmits_in_watts(scenarios[at].uplink)]
    return without if len(without) < len(counted) else []


@dataclass(frozen=True, eq=False)
class AxisValues:
    """Places of the rounds of one run on an axis.

    Attributes:
        values: (m,) at the end of each round, never descending; NaN for rounds that have no place on it.
        missing: what is drawn of the run, and why not all; "" where all rounds have a place.
    """

    values: NDArray[np.float64]
    missing: str = ""


def axis_values(x: XAxis, columns: Columns, unit: EnergyUnit | None = None) -> AxisValues:
    """Places of the rounds of a run on an axis.

    Args:
        x: the axis.
        columns: of the run.
        unit: of the axis of energy; by default the one in which the energy of this run is known.
    """
    match x:
        case "round" | "sim_time":
            return AxisValues(columns[x].astype(np.float64))
        case "energy":
            return _energy(columns, unit or energy_unit(columns))
        case "epsilon":
            return _epsilon(columns)
        case _:
            assert_never(x)


def _energy(columns: Columns, unit: EnergyUnit | None) -> AxisValues:
    match unit if energy_unit(columns) is not None else None:
        case "J":
            return AxisValues(np.cumsum(columns["energy"]))
        case "noise":
            jammed = np.nan_to_num(columns["jammer_energy"], nan=0.0)
            return AxisValues(np.cumsum(np.nan_to_num(columns["tx_energy"], nan=0.0) + jammed))
        case None:
            return AxisValues(np.full(len(columns["energy"]), np.nan), "not drawn, no energy is counted")
        case other:
            assert_never(other)


def _epsilon(columns: Columns) -> AxisValues:
    epsilon = columns["epsilon_accounted"]
    finite = np.isfinite(epsilon)
    if finite.all():
        return AxisValues(epsilon.astype(np.float64))
    words = "not drawn, the accounted ε is ∞"
    if finite.any():
        begin = int(columns["round"][~finite][0])
        words = f"drawn up to round {begin - 1}, the accounted ε is ∞ from then on"
    return AxisValues(np.where(finite, epsilon, np.nan), words)


def x_label(x: XAxis, unit: EnergyUnit | None = None) -> str:
    """Label of an axis with its unit.

    Args:
        x: the axis.
        unit: of an axis of energy.
    """
    match x:
        case "round":
            return "round"
        case "sim_time":
            return "simulated time (s)"
        case "energy":
            return "energy so far (J)" if unit == "J" else "energy sent so far (noise = 1)"
        case "epsilon":
            return "ε accounted so far"
        case _:
            assert_never(x)


def is_wide(curves: Iterable[NDArray[np.float64]]) -> bool:
    """Whether the ends of curves lie so far apart on an axis that only a logarithmic one shows them all."""
    ends = np.array([np.nanmax(values) for values in curves if np.isfinite(values).any()])
    return bool(len(ends) and ends.min() > 0 and ends.max() > _WIDE * ends.min())


def step_onto(grid: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (g,) at the places of a grid of what holds from each ``x`` (m,) on: the last ``y`` known by then.

    NaN before the first place and beyond the last: no curve goes beyond its data. Points without a place or a value
    are left out.
    """
    known = np.isfinite(x) & ~np.isnan(y)
    x, y = x[known], y[known]
    if not len(x):
        return np.full(len(grid), np.nan)
    at = np.searchsorted(x, grid, side="right") - 1
    inside = (at >= 0) & (grid <= x[-1])
    return np.where(inside, y[np.maximum(at, 0)], np.nan)


def common_grid(axes: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Places (g,) from where all of several runs have begun to where the first of them ends, ascending.

    They are those of all runs together, or 500 of them. Empty where one run has ended before another begins, or
    has no place at all.
    """
    known = [values[np.isfinite(values)] for values in axes]
    if not known or not all(len(values) for values in known):
        return np.zeros(0)
    low, high = max(float(values[0]) for values in known), min(float(values[-1]) for values in known)
    places = np.unique(np.concatenate(known))
    places = places[(places >= low) & (places <= high)]
    chosen = np.linspace(0, len(places) - 1, min(len(places), _MOST_GRID_POINTS)).round().astype(np.int64)
    return np.asarray(places[chosen], dtype=np.float64)
