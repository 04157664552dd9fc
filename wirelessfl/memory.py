"""State across rounds: a table with one row for each node that was ever used."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Model = TypeVar("Model")


@runtime_checkable
class Memory(Protocol):
    """A part of the simulation with state across rounds, held by the checkpoint."""

    def state(self) -> dict[str, Any]:
        """All that is remembered, as arrays, numbers and mappings."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """State set anew; the inverse of ``state``."""


def memories_among(**parts: object) -> dict[str, Memory]:
    """Parts with state across rounds among the named ones."""
    return {name: part for name, part in parts.items() if isinstance(part, Memory)}


def restore_memories(memories: Mapping[str, Memory], states: Mapping[str, Any]) -> None:
    """State of every part, set anew.

    Raises:
        ValueError: there is a state too many or too few.
    """
    if memories.keys() != states.keys():
        raise ValueError(f"memories of {', '.join(states) or 'nothing'}; expected: {', '.join(memories) or 'none'}")
    for name, memory in memories.items():
        memory.restore(states[name])


@contextmanager
def forgotten(memories: Mapping[str, Memory]) -> Iterator[None]:
    """A context in which changes of the memories are undone at its end."""
    before = {name: memory.state() for name, memory in memories.items()}
    try:
        yield
    finally:
        for name, memory in memories.items():
            memory.restore(before[name])


def resumed_copy(model: Model, fresh: Model) -> Model:
    """The model as in a resumed run: made anew, with the state of the checkpoint."""
    if not isinstance(model, Memory):
        return model
    again = deepcopy(fresh)
    assert isinstance(again, Memory), "a copy of one that remembers"
    again.restore(model.state())
    return again


class NodeMemory:
    """Columns of numbers about nodes.

    Reading and writing take as many steps as nodes are named, the state as many as were ever written; registered
    nodes that never took part have no row.
    """

    def __init__(self, **unknown: Any) -> None:
        """An empty table; ``unknown`` gives, by column, what stands for a node that was never written."""
        self._unknown = {name: np.asarray(value) for name, value in unknown.items()}
        self._row_of: dict[int, int] = {}
        self._columns = {name: value[None].copy() for name, value in self._unknown.items()}

    def recall(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.bool_], dict[str, NDArray[Any]]]:
        """Mask (n,) of the known nodes, and the columns (n, ...) of all of them."""
        rows = np.array([self._row_of.get(node, -1) for node in nodes.tolist()], dtype=np.int64)
        known = rows >= 0
        columns = {name: column[rows] for name, column in self._columns.items()}
        for name, values in columns.items():
            values[~known] = self._unknown[name]
        return known, columns

    def write(self, nodes: NDArray[np.int64], **columns: NDArray[Any]) -> None:
        """Write of (n, ...) values into the rows of nodes, for every column."""
        rows = np.array([self._row_of.setdefault(node, len(self._row_of)) for node in nodes.tolist()], dtype=np.int64)
        for name, values in columns.items():
            column = self._columns[name]
            if len(self._row_of) > len(column):
                more = max(len(self._row_of), 2 * len(column)) - len(column)
                column = np.concatenate([column, np.repeat(self._unknown[name][None], more, axis=0)])
                self._columns[name] = column
            column[rows] = values

    def state(self) -> dict[str, Any]:
        """The nodes in the order of their first appearance, and their rows."""
        size = len(self._row_of)
        nodes = np.fromiter(self._row_of, dtype=np.int64, count=size)
        return {"nodes": nodes, **{name: column[:size].copy() for name, column in self._columns.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Table as a state has it, with the same columns.

        Raises:
            ValueError: it has other columns, or rows of another shape.
        """
        nodes = np.asarray(state["nodes"])
        shapes = {"nodes": nodes.shape[:1], **{name: (len(nodes), *one.shape) for name, one in self._unknown.items()}}
        found = {name: np.shape(values) for name, values in state.items()}
        if found != shapes or nodes.dtype.kind != "i" or len(np.unique(nodes)) < len(nodes):
            raise ValueError(f"a table of nodes with columns {found}, expected {shapes}")
        self._row_of = {node: row for row, node in enumerate(nodes.tolist())}
        self._columns = {
            name: np.concatenate([np.asarray(state[name], value.dtype), value[None]])
            for name, value in self._unknown.items()
        }


class OrderedMemory:
    """Columns of numbers about nodes, in the order of the nodes.

    Reading a column costs nothing; writing takes as many steps as nodes are named, and where one is new as many as were
    ever written. Registered nodes that never took part have no row.
    """

    def __init__(self, **unknown: float) -> None:
        """An empty table; ``unknown`` gives, by column, what stands for a number that was never written."""
        self._unknown = unknown
        self._nodes = np.zeros(0, dtype=np.int64)
        self._columns = {name: np.zeros(0) for name in unknown}

    @property
    def nodes(self) -> NDArray[np.int64]:
        """(n,) ascending numbers of the nodes that were ever written; read only."""
        return _read_only(self._nodes)

    def column(self, name: str) -> NDArray[np.float64]:
        """(n,) numbers of these nodes; read only."""
        return _read_only(self._columns[name])

    def write(self, nodes: NDArray[np.int64], **columns: NDArray[np.float64]) -> None:
        """Write of (m,) values into the rows of ascending nodes, for some columns."""
        rows = np.searchsorted(self._nodes, nodes)
        new = np.append(self._nodes, -1)[rows] != nodes
        if new.any():
            at = rows[new]
            self._nodes = np.insert(self._nodes, at, nodes[new])
            self._columns = {name: np.insert(column, at, self._unknown[name]) for name, column in self._columns.items()}
            rows = np.searchsorted(self._nodes, nodes)
        for name, values in columns.items():
            self._columns[name][rows] = values

    def state(self) -> dict[str, Any]:
        """The nodes that were ever written, ascending, and their rows."""
        return {"nodes": self._nodes.copy(), **{name: column.copy() for name, column in self._columns.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Table as a state has it, with the same columns.

        Raises:
            ValueError: it has other columns, or rows of another length.
        """
        nodes = np.asarray(state["nodes"])
        found, wanted = set(state) - {"nodes"}, set(self._unknown)
        lengths = {len(np.atleast_1d(values)) for values in state.values()}
        ascending = nodes.ndim == 1 and bool(np.all(np.diff(nodes, prepend=-1) > 0))
        if found != wanted or lengths != {len(nodes)} or nodes.dtype.kind != "i" or not ascending:
            raise ValueError(f"a table of nodes with columns {sorted(found)}, expected {sorted(wanted)}")
        self._nodes = nodes.astype(np.int64)
        self._columns = {name: np.array(state[name], dtype=np.float64) for name in self._unknown}


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


class RemembersNodes:
    """A part whose state is one table of nodes.

    Attributes:
        nodes: what it remembers of each node that it was ever asked for.
    """

    nodes: NodeMemory

    def state(self) -> dict[str, Any]:
        """The table."""
        return self.nodes.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Table as a state has it."""
        self.nodes.restore(state)
