"""Two traces of one scenario, number by number and bit by bit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.trace import Variable, has_group, open_trace, read_group
from wirelessfl.trace.failures import trace_errors
from wirelessfl.trace.schema import EVENTS, GROUPS, MODEL, ROOT, Group

if TYPE_CHECKING:
    import xarray as xr

OF_THE_CLOCK = "wall_time"
"""The one variable that a repeated run need not repeat."""

_TEXTS = ("delta", "dimension", "total_samples", "release_settings", "why_different")
"""Attributes of the root that follow from the scenario; the others say when and where the run was made."""


@dataclass(frozen=True)
class Difference:
    """A recorded value that the repeated run does not give.

    Attributes:
        variable: its name, with its group where that is not the root.
        place: round, client or event that it belongs to, in words.
        found: what the trace holds.
        expected: what the repeated run gives.
    """

    variable: str
    place: str
    found: Any
    expected: Any

    def __str__(self) -> str:
        """In words, with every digit."""
        return f"{self.variable}{self.place}: found {self.found!r} in the trace, expected {self.expected!r}"


@dataclass(frozen=True)
class Comparison:
    """What came of a comparison.

    Attributes:
        numbers: how many were compared.
        difference: the first in the order of rounds, then of the schema; None where all are equal.
    """

    numbers: int
    difference: Difference | None


@dataclass(frozen=True, eq=False)
class _Column:
    """One variable of both traces, cut to what is compared: row r belongs to round ``rounds[r]``."""

    name: str
    rounds: NDArray[np.int64]
    found: NDArray[Any]
    expected: NDArray[Any]
    clients: NDArray[np.int64] | None = None


def compare_traces(found: Path, expected: Path, first: int, last: int) -> Comparison:
    """Compare all that two traces hold of some rounds, and the totals where these are all rounds of both.

    NaN equals NaN where its bits do. ``wall_time`` is left out.

    Args:
        found: the recorded trace.
        expected: the trace of the repeated run.
        first: first round to compare.
        last: last round to compare.

    Raises:
        TraceError: one of them cannot be read.
    """
    ours, theirs = _loaded(found), _loaded(expected)
    if theirs.sizes["round"] == 0 or theirs["round"].values[-1] < last:
        return Comparison(1, Difference("number of rounds", "", ours.sizes["round"], theirs.sizes["round"]))
    columns = _per_round(ROOT, ours, theirs, first, last)
    for group in GROUPS:
        if group not in (ROOT, EVENTS, MODEL) and has_group(found, group.path):
            columns += _per_round(group, read_group(found, group.path), read_group(expected, group.path), first, last)
    columns += _events(found, expected, ours, theirs, first, last)
    columns += _models(found, expected, first, last)
    numbers = sum(column.found.size for column in columns)
    difference = _first_of(columns)
    covered = ours["round"].values.tolist() == list(range(first, last + 1))
    if difference is None and covered and ours.attrs["status"] == theirs.attrs["status"]:
        numbers += sum(ours[variable.name].size for variable in _client_variables())
        difference = _of_clients(ours, theirs) or _of_attributes(ours, theirs)
    return Comparison(numbers, difference)


def _loaded(path: Path) -> xr.Dataset:
    with open_trace(path) as trace, trace_errors(path):
        return trace.load()


def _first_of(columns: list[_Column]) -> Difference | None:
    """The earliest round wins; within a round the order of the columns."""
    earliest: tuple[int, int] | None = None
    for index, column in enumerate(columns):
        differing = _differing(column.found, column.expected)
        if differing.any():
            round_index = int(column.rounds[int(np.argmax(differing))])
            if earliest is None or round_index < earliest[0]:
                earliest = (round_index, index)
    return None if earliest is None else _describe(columns[earliest[1]])


def _describe(column: _Column) -> Difference:
    row = int(np.argmax(_differing(column.found, column.expected)))
    place = f" in round {int(column.rounds[row])}"
    found, expected, clients = column.found[row], column.expected[row], column.clients
    while found.ndim:
        at = int(np.argmax(_differing(found, expected)))
        if clients is not None:
            place += f" of client {int(clients[row, at])}"
            clients = None
        else:
            place += f", number {at}"
        found, expected = found[at], expected[at]
    return Difference(column.name, place, found.item(), expected.item())


def _differing(found: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    """(rows,) whether any bit of a row differs."""
    if found.dtype.kind in "SO":
        unequal = np.asarray(found != expected)
    else:
        bits = np.dtype(f"u{found.dtype.itemsize}")
        unequal = np.ascontiguousarray(found).view(bits) != np.ascontiguousarray(expected).view(bits)
    return np.asarray(unequal.any(axis=tuple(range(1, unequal.ndim))))


def _per_round(group: Group, ours: xr.Dataset, theirs: xr.Dataset, first: int, last: int) -> list[_Column]:
    """Every variable of one group that has a row a round; wall time is left out."""
    rounds = np.arange(first, last + 1)
    ours, theirs = ours.sel(round=rounds), theirs.sel(round=rounds)
    width = max(ours.sizes.get("slot", 0), theirs.sizes.get("slot", 0))
    clients = _widened(ours["client_id"].values, width, -1) if "client_id" in ours else None
    columns = []
    for variable in group.variables:
        if variable.dims[0] != "round" or variable.name == OF_THE_CLOCK or variable.name not in ours:
            continue  # the clock's, a total, or none of the version that recorded the run
        found, expected = ours[variable.name].values, theirs[variable.name].values
        if variable.dims == ("round", "slot"):
            pair = [_widened(values, width, variable.fill) for values in (found, expected)]
            columns.append(_Column(_named(group, variable), rounds, pair[0], pair[1], clients))
        else:
            columns.append(_Column(_named(group, variable), rounds, found, expected))
    return columns


def _named(group: Group, variable: Variable) -> str:
    return variable.name if group.path == ROOT.path else f"{group.path}/{variable.name}"


def _widened(values: NDArray[Any], width: int, fill: float | bytes) -> NDArray[Any]:
    """(rounds, width, ...) with empty slots at the end; the more rounds a trace holds, the more slots it may have."""
    wide = np.full((len(values), width, *values.shape[2:]), fill, dtype=values.dtype)
    wide[:, : values.shape[1]] = values
    return wide


def _events(found: Path, expected: Path, ours: xr.Dataset, theirs: xr.Dataset, first: int, last: int) -> list[_Column]:
    """The events of the rounds before the first that has more or fewer of them, which ``event_count`` tells."""
    rounds = np.arange(first, last + 1)
    counts = [side["event_count"].sel(round=rounds).values for side in (ours, theirs)]
    same = int(np.argmin(np.append(counts[0] == counts[1], False)))
    events = [read_group(path, "events") for path in (found, expected)]
    taken = [(side["round"].values >= first) & (side["round"].values < first + same) for side in events]
    if not same or taken[0].sum() != taken[1].sum():
        return []
    label = events[0]["round"].values[taken[0]]
    return [
        _Column(
            f"{EVENTS.path}/{name}", label, *(side[name].values[mask] for side, mask in zip(events, taken, strict=True))
        )
        for name in ("time", "node", "kind", "bits")
    ]


def _models(found: Path, expected: Path, first: int, last: int) -> list[_Column]:
    """The models that the recorded trace keeps; a run that was stopped keeps no final one."""
    ours, theirs = (read_group(path, "model") for path in (found, expected))
    labels = ours["round"].values
    kept = (labels >= first) & (labels <= last) & np.isin(labels, theirs["round"].values)
    rows = np.searchsorted(theirs["round"].values, labels[kept])
    return [
        _Column(f"{MODEL.path}/weights", labels[kept], ours["weights"].values[kept], theirs["weights"].values[rows])
    ]


def _client_variables() -> tuple[Variable, ...]:
    return (*(one for one in ROOT.coordinates if one.name == "client"), *ROOT.of("client"))


def _of_clients(ours: xr.Dataset, theirs: xr.Dataset) -> Difference | None:
    """The first client whose totals differ."""
    for variable in _client_variables():
        found, expected = ours[variable.name].values, theirs[variable.name].values
        if len(found) != len(expected):
            return Difference(f"number of clients in {variable.name}", "", len(found), len(expected))
        differing = _differing(found, expected)
        if differing.any():
            at = int(np.argmax(differing))
            place = f" of client {int(ours['client'].values[at])}"
            return Difference(variable.name, place, found[at].item(), expected[at].item())
    return None


def _of_attributes(ours: xr.Dataset, theirs: xr.Dataset) -> Difference | None:
    for name in _TEXTS:
        found, expected = ours.attrs.get(name), theirs.attrs.get(name)
        if found != expected:
            return Difference(f"attribute {name}", "", found, expected)
    return None
