"""The rounds of a run in numbers, from one pass over a trace that need not fit into memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from wirelessfl.summary.axes import COLUMNS, X_AXES, EnergyUnit, axis_values, energy_unit, x_label
from wirelessfl.trace import Status, at_slot_start
from wirelessfl.trace.schema import ROOT

Values = NDArray[np.float64]

_MOST_VALUES = 100_000
"""Values of one variable that are held at once."""
QUANTILES = (0.1, 0.5, 0.9, 1.0)
USED_EDGES = np.geomspace(1e-15, 1e2, 171)
"""Edges of the shares of the power budget that are counted."""


def blocks(trace: xr.Dataset, names: Sequence[str]) -> Iterator[tuple[slice, dict[str, Values]]]:
    """Values (r, s) of variables over rounds and slots, so many rounds at once as memory should hold.

    Args:
        trace: the opened trace, its values not read yet.
        names: variables; those that the trace lacks are left out. Gains are those of the beginning of slots.
    """
    there = [name for name in names if name in trace]
    step = max(1, _MOST_VALUES // max(1, trace.sizes["slot"]))
    for begin in range(0, trace.sizes["round"], step):
        rounds = slice(begin, min(begin + step, trace.sizes["round"]))
        part = trace[there].isel(round=rounds)
        yield rounds, {name: at_slot_start(part[name]) for name in there}


def power_db(real: Values, imaginary: Values) -> Values:
    """|h|² in dB; NaN where there is no channel or none of it is left."""
    power = np.asarray(real**2 + imaginary**2, dtype=np.float64)
    return np.asarray(10.0 * np.log10(power, out=np.full(power.shape, np.nan), where=power > 0))


def quantiles(values: Values) -> Values:
    """Quantiles (r, 4) of the finite values (r, s) of each round, by nearest rank; NaN where there are none."""
    known = np.isfinite(values)
    ordered, count = np.sort(np.where(known, values, np.inf), axis=1), known.sum(axis=1)
    places = np.rint(np.outer(np.maximum(count - 1, 0), QUANTILES)).astype(np.int64)
    found = np.take_along_axis(ordered, places, axis=1) if values.shape[1] else np.full(places.shape, np.nan)
    return np.where(count[:, None] > 0, found, np.nan)


def _sums(values: Values | None, rounds: int) -> Values:
    # Sums of what is known in each round; NaN where nothing is
    if values is None:
        return np.full(rounds, np.nan)
    return np.where(np.isfinite(values).any(axis=1), np.nansum(values, axis=1), np.nan)


@dataclass(frozen=True, eq=False)
class Rounds:
    """Numbers of m rounds.

    Attributes:
        columns: (m,) by name: the variables of the trace by round, and sums over the clients of what they sent and
            spent.
        gain_db: (m, 4) quantiles of |h|² over the clients, dB.
        backoff: (m, 4) quantiles of the back-off over the clients.
        outcomes: (m, statuses) clients by outcome.
        used: how many transmissions used which share of the power budget, by `USED_EDGES`.
    """

    columns: dict[str, Values]
    gain_db: Values
    backoff: Values
    outcomes: NDArray[np.int64]
    used: NDArray[np.int64]

    @property
    def unit(self) -> EnergyUnit | None:
        """Unit in which the energy of the run is known."""
        return energy_unit(self.columns)

    @property
    def places(self) -> dict[str, Values]:
        """Places (m,) of the rounds on every axis on which some have one."""
        found = {axis: axis_values(axis, self.columns).values for axis in X_AXES}
        return {axis: values for axis, values in found.items() if np.isfinite(values).any()}

    @property
    def labels(self) -> dict[str, str]:
        """Labels of all axes."""
        return {axis: x_label(axis, self.unit) for axis in X_AXES}

    @property
    def missing(self) -> dict[str, str]:
        """Why rounds have no place on an axis, by axis; only of those that have rounds without one."""
        reasons = {axis: axis_values(axis, self.columns).missing for axis in X_AXES}
        return {axis: f"This run {words}." for axis, words in reasons.items() if words}


_SUMMED = ("tx_energy", "tx_energy_j", "compute_energy_j")


def read_rounds(trace: xr.Dataset) -> Rounds:
    """Numbers of all rounds of an opened trace; NaN for what an earlier version did not record."""
    count = trace.sizes["round"]
    unknown = np.full(count, np.nan)
    by_round = [str(name) for name, variable in trace.variables.items() if variable.dims == ("round",)]
    known = dict.fromkeys((*COLUMNS, *(variable.name for variable in ROOT.of("round"))), unknown)
    columns = known | {name: trace[name].values.astype(np.float64) for name in by_round}
    budget = float(trace["power_budget"].values[0]) if "power_budget" in trace and trace.sizes["client"] else np.nan
    sums = {name: unknown.copy() for name in _SUMMED}
    gain, backoff = np.full((count, len(QUANTILES)), np.nan), np.full((count, len(QUANTILES)), np.nan)
    outcomes = np.zeros((count, len(Status)), dtype=np.int64)
    used = np.zeros(len(USED_EDGES) - 1, dtype=np.int64)
    for rounds, part in blocks(trace, ("channel_re", "channel_im", "backoff", "status", *_SUMMED)):
        for name in _SUMMED:
            sums[name][rounds] = _sums(part.get(name), rounds.stop - rounds.start)
        if "channel_re" in part:
            gain[rounds] = quantiles(power_db(part["channel_re"], part["channel_im"]))
        if "backoff" in part:
            backoff[rounds] = quantiles(part["backoff"])
        for code in Status:
            outcomes[rounds, code] = np.count_nonzero(part["status"] == code, axis=1)
        if "tx_energy" in part and 0 < budget < np.inf:
            shares = part["tx_energy"][np.nan_to_num(part["tx_energy"]) > 0] / budget
            used += np.histogram(np.clip(shares, USED_EDGES[0], USED_EDGES[-1]), USED_EDGES)[0]
    return Rounds(columns | sums, gain, backoff, outcomes, used)
