"""Two traces of one scenario: every object, every attribute and every number, bit by bit."""

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from wirelessfl.analysis.replay.comparison import (
    FREE_DATASETS,
    OTHER_LAYOUT,
    OUTSIDE,
    TOTALS,
    Comparison,
    Difference,
    Rules,
)
from wirelessfl.analysis.replay.trace_tree import (
    Axes,
    Node,
    attribute_value,
    dtype_words,
    nodes_of,
    paths_by_address,
)
from wirelessfl.plugins import Sources
from wirelessfl.trace import FINISHED, axes_of, opened_trace


def compare_traces(found: Path, expected: Path, first: int, last: int) -> Comparison:
    """Comparison of all that two traces hold, or of what they hold of some rounds.

    NaN equals NaN where its bits do. What may differ is listed in ``comparison``.

    Args:
        found: the recorded trace.
        expected: the trace of the repeated run, which ends with round ``last`` or after it.
        first: first round to compare.
        last: last round to compare.

    Raises:
        TraceError: one of them cannot be read.
    """
    with opened_trace(found) as ours, opened_trace(expected) as theirs:
        return _Comparing(ours, theirs, first, last).compare()


_Values = tuple[NDArray[Any], NDArray[Any]]


class _Pair(NamedTuple):
    # A dataset that both traces hold, and the names of its axes.
    path: str
    ours: h5py.Dataset
    theirs: h5py.Dataset
    dims: tuple[str, ...]

    def both(self, rows: slice) -> _Values | None:
        # The same rows of both, slots filled up to one width; None where type or shape keep them apart.
        _, ours, theirs, dims = self
        apart = len(ours.shape) != len(theirs.shape) or ours.dtype != theirs.dtype or len(dims) != len(theirs.shape)
        if apart or (ours.shape and ours.shape[0] < (rows.stop or 0)):
            return None
        slots = "slot" in dims[1:]
        sizes = zip(dims[1:], ours.shape[1:], theirs.shape[1:], strict=True)
        if any(found != expected for dim, found, expected in sizes if dim != "slot") or (
            slots and ours.shape[1] > 2 * theirs.shape[1] + Axes.FURTHER_SLOTS
        ):
            return None
        pair = (ours[rows], theirs[rows]) if ours.shape else (ours[()][None], theirs[()][None])
        if slots and ours.shape[1] != theirs.shape[1]:
            width = max(ours.shape[1], theirs.shape[1])
            pair = _widened(pair[0], width, theirs.fillvalue), _widened(pair[1], width, theirs.fillvalue)
        return pair


class _Comparing:
    def __init__(self, ours: h5py.File, theirs: h5py.File, first: int, last: int) -> None:
        self.ours, self.theirs = nodes_of(ours), nodes_of(theirs)
        self.our_paths, self.their_paths = paths_by_address(self.ours), paths_by_address(self.theirs)
        self.first, self.last = first, last
        self.recorded, self.repeated = Axes.of(ours), Axes.of(theirs)
        self.partial = last < self.recorded.rounds
        self.dims = axes_of(theirs)
        before, after = ours.attrs, theirs.attrs
        stopped = before.get("status") == "failed" and after.get("status") == "interrupted"
        other_version = before.get("package_version") != after.get("package_version")
        self.rules = Rules(
            other_version, stopped, self.partial, _other_packages(before, after), "sources" not in before
        )
        self.status, self.result = ours.attrs.get("status"), Comparison()

    def compare(self) -> Comparison:
        # The first difference in the order in which it says most: rounds, then totals and layout, then attributes.
        self.result.of_numbers = sum(self._size(path) for path in self.ours)
        self.result.of_attributes = sum(len(node.attrs) for node in self.ours.values())
        ended = self.theirs["/"].attrs.get("status") in FINISHED
        found, expected = self.recorded.rounds, self.repeated.rounds
        if expected < self.last or (found != expected and (ended or not self.partial)):
            self.result.difference = Difference("number of rounds", "", found, expected)
            return self.result
        before, after = (nodes["/"].attrs for nodes in (self.ours, self.theirs))
        for name, by, what in (
            ("package_version", "with", "wirelessfl "),
            ("torch_version", "with", "torch "),
            ("processor", "on", ""),
        ):
            if before.get(name) != after.get(name):
                found = before.get(name, "an unknown one")
                self.result.notes.append(f"recorded {by} {what}{found}, repeated {by} {after.get(name)}")
        self.result.notes += _kernel_notes(before, after)
        self.result.difference = self._earliest_round() or next(
            chain(self._missing(), self._totals(), self._layout(), self._attributes()), None
        )
        return self.result

    def _pairs(self) -> Iterator[_Pair]:
        for path, theirs in self.theirs.items():
            ours = self.ours.get(path)
            if isinstance(ours, h5py.Dataset) and isinstance(theirs, h5py.Dataset):
                yield _Pair(path, ours, theirs, self._dims(path))

    def _size(self, path: str) -> int:
        # How many numbers of a dataset belong to committed rounds; a dimension without labels holds none.
        node = self.ours[path]
        if not isinstance(node, h5py.Dataset) or (self._dims(path) == (path.rpartition("/")[2],) and path in self.dims):
            return 0
        return self.recorded.size(node, self._dims(path))

    def _dims(self, path: str) -> tuple[str, ...]:
        # Names of a dataset's axes; labels of an axis are named like it.
        group, _, name = path.rpartition("/")
        return self.dims.get(path, (name if not group or name == "stage" else "",))

    def _missing(self) -> Iterator[Difference]:
        # Objects that one of the traces has and the other has not, or of another kind.
        for path in dict.fromkeys([*self.theirs, *self.ours]):
            kinds = [_kind(nodes.get(path)) for nodes in (self.ours, self.theirs)]
            if kinds[0] != kinds[1] and not (self.rules.other_version and None in kinds):
                yield Difference(_name(path), "", kinds[0] or "nothing", kinds[1] or "nothing")
            elif kinds[0] != kinds[1] and path in self.ours:
                self.result.leave_out(_name(path), OTHER_LAYOUT, self._size(path))

    def _unequal(self, of_rounds: bool) -> Iterator[tuple[_Pair, slice, _Values, int]]:
        # Datasets over rounds, or all others, with different numbers: the rows compared, and the first that differs.
        for pair in (pair for pair in self._pairs() if (pair.dims[0] in Axes.OF_ROUNDS) == of_rounds):
            dim, whole = pair.dims[0], slice(0, len(pair.theirs) if pair.theirs.shape else None)
            excuse = FREE_DATASETS.get(pair.path, TOTALS if dim == "client" and self.partial else None)
            if excuse is not None:
                self.result.leave_out(_name(pair.path), excuse, self._size(pair.path))
                continue
            rows = self.repeated.rows(dim, self.first, self.last, self.recorded) if of_rounds else whole
            values = pair.both(rows)
            if values is None:
                continue
            size, compared = self._size(pair.path), values[0].size
            self.result.numbers += min(compared, size)
            if compared < size:
                self.result.leave_out(_name(pair.path), TOTALS if dim == "snapshot" else OUTSIDE, size - compared)
            differing = _differing(*values)
            if differing.any():
                yield pair, rows, values, int(np.argmax(differing))

    def _earliest_round(self) -> Difference | None:
        # Numbers of rounds; the earliest round wins, within a round the order of the file.
        earliest: tuple[int, Difference] | None = None
        for pair, rows, values, row in self._unequal(of_rounds=True):
            label, group = int(self.repeated.labels(pair.dims[0])[rows][row]), pair.theirs.parent
            if earliest is None or label < earliest[0]:
                named = "slot" in pair.dims and "client_id" in group
                clients = group["client_id"][rows][row] if named else None
                earliest = label, _describe(pair.path, f" in round {label}", values, row, clients)
        return None if earliest is None else earliest[1]

    def _totals(self) -> Iterator[Difference]:
        for pair, _, values, row in self._unequal(of_rounds=False):
            clients = self.theirs["/client"]
            client = pair.dims[0] == "client" and isinstance(clients, h5py.Dataset)
            place = f" of client {int(clients[row])}" if client else f", number {row}"
            yield _describe(pair.path, place, values, row, None)

    def _layout(self) -> Iterator[Difference]:
        for pair in self._pairs():
            kinds = [dtype_words(one.dtype) for one in (pair.ours, pair.theirs)]
            if kinds[0] != kinds[1]:
                yield Difference(f"type of {_name(pair.path)}", "", *kinds)
            found, expected = pair.ours.shape, pair.theirs.shape
            if len(found) == len(expected) == len(pair.dims):
                expected = tuple(self._wanted_size(*axis) for axis in zip(pair.dims, found, expected, strict=True))
            if found != expected:
                yield Difference(f"shape of {_name(pair.path)}", "", found, expected)

    def _wanted_size(self, dim: str, found: int, expected: int) -> int:
        # The length that an axis should have.
        #
        # Rows after the last committed round are no part of a trace that nobody closed; a slot more is there where a
        # round that was taken back had one client more.
        if self.partial and dim in (*Axes.OF_ROUNDS, "client"):
            return found
        open_end = dim in Axes.OF_ROUNDS and self.status == "running"
        wider = dim == "slot" and (self.partial or self.status not in FINISHED)
        return max(found, expected) if open_end or wider else expected

    def _attributes(self) -> Iterator[Difference]:
        for path in [path for path in self.theirs if path in self.ours]:
            ours, theirs = self.ours[path], self.theirs[path]
            for name in dict.fromkeys([*theirs.attrs, *ours.attrs]):
                missing = name not in ours.attrs or name not in theirs.attrs
                reason = self.rules.of_attribute(path, name, missing=missing)
                words = f"attribute {name}" if path == "/" else f"attribute {name} of {path}"
                found = attribute_value(ours, name, self.our_paths)
                expected = attribute_value(theirs, name, self.their_paths)
                if not missing and found == expected and (reason is None or path != "/"):
                    self.result.attributes += 1
                elif reason is not None:
                    self.result.leave_out(words, reason)
                else:
                    yield Difference(words, "", found.words, expected.words)


def _other_packages(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    found, expected = (Sources.of_text(one["sources"]) if "sources" in one else None for one in (before, after))
    return found is not None and expected is not None and found.files == expected.files and found != expected


def _kernel_notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    # Earlier versions recorded traces without the names of kernels
    if "kernels" not in before:
        return []
    found, expected = (set(json.loads(one["kernels"])) for one in (before, after))
    sides = {"recorded alone": found - expected, "repeated alone": expected - found}
    return [f"compiled kernels of the run {side}: {', '.join(sorted(names))}" for side, names in sides.items() if names]


def _describe(path: str, place: str, values: _Values, row: int, clients: NDArray[np.int64] | None) -> Difference:
    # The first difference of a row; ``clients`` are those of its slots.
    found, expected = values[0][row], values[1][row]
    while np.ndim(found):
        at = int(np.argmax(_differing(found, expected)))
        known = clients is not None and at < len(clients)
        place += f" of client {int(clients[at])}" if clients is not None and known else f", number {at}"
        clients = None if known else clients
        found, expected = found[at], expected[at]
    return Difference(_name(path), place, found.item(), expected.item())


def _kind(node: Node | None) -> str | None:
    if node is None:
        return None
    return "a dataset" if isinstance(node, h5py.Dataset) else "a group" if isinstance(node, h5py.Group) else "a type"


def _name(path: str) -> str:
    return path.removeprefix("/") if path.count("/") == 1 else path


def _differing(found: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    # (rows,) whether any bit of a row differs.
    if not found.size:
        return np.zeros(len(found), dtype=np.bool_)
    both = [np.ascontiguousarray(values).reshape(len(values), -1) for values in (found, expected)]
    size = found.dtype.itemsize
    bits = np.dtype(f"u{size}") if size in (1, 2, 4, 8) else np.dtype("u1")
    return np.asarray((both[0].view(bits) != both[1].view(bits)).any(axis=1))


def _widened(values: NDArray[Any], width: int, fill: Any) -> NDArray[Any]:
    # (rounds, width, ...) with empty slots at the end; the more rounds a trace holds, the more slots it may have.
    wide = np.full((len(values), width, *values.shape[2:]), fill, dtype=values.dtype)
    wide[:, : values.shape[1]] = values
    return wide
