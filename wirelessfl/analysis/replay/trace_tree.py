"""A trace as a tree of HDF5 objects: its nodes, its growing axes, and attributes as values that can be compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import h5py
import numpy as np
from h5py import h5o, h5r
from numpy.typing import NDArray

from wirelessfl.trace import committed_rounds

Node = Any
"""A group, a dataset or a named type of h5py, which has no types of its own."""


def nodes_of(file: h5py.File) -> dict[str, Node]:
    """Every object of a file by its path, the root first. A group is entered once, so that links in a circle end."""
    nodes: dict[str, Node] = {"/": file["/"]}
    entered, waiting = {h5o.get_info(file.id).addr}, [""]
    while waiting:
        path = waiting.pop()
        group = nodes[path or "/"]
        for name in group:
            node = nodes[f"{path}/{name}"] = group[name]
            place = h5o.get_info(node.id).addr
            if isinstance(node, h5py.Group) and place not in entered:
                entered.add(place)
                waiting.append(f"{path}/{name}")
    return nodes


def paths_by_address(nodes: Mapping[str, Node]) -> dict[int, str]:
    """The path of every object by its address, which is what references hold."""
    return {h5o.get_info(node.id).addr: path for path, node in nodes.items()}


@dataclass(frozen=True)
class Axes:
    """The axes of a trace that grow with its rounds.

    Attributes:
        round_labels: (M,) of the committed rounds.
        event_counts: (M,) cumulative number of events.
        event_rounds: (E,) the round of each committed event.
        snapshot_rounds: (S,) the round of each stored model.
    """

    OF_ROUNDS: ClassVar[tuple[str, ...]] = ("round", "event", "snapshot")
    FURTHER_SLOTS: ClassVar[int] = 1 << 20
    """So many slots more than expected are looked at for clients; with more a trace has another shape."""

    round_labels: NDArray[np.int64]
    event_counts: NDArray[np.int64]
    event_rounds: NDArray[np.int64]
    snapshot_rounds: NDArray[np.int64]

    @classmethod
    def of(cls, file: h5py.File) -> Self:
        """The axes of an open trace."""
        rounds = committed_rounds(file)
        counts = file["event_count"][:rounds]
        events = max(int(counts[-1]), 0) if rounds else 0
        return cls(file["round"][:rounds], counts, file["events/round"][:events], file["model/round"][()])

    @property
    def rounds(self) -> int:
        """Number of committed rounds."""
        return len(self.round_labels)

    def labels(self, dim: str) -> NDArray[np.int64]:
        """The round that each row of an axis belongs to."""
        return {"round": self.round_labels, "event": self.event_rounds, "snapshot": self.snapshot_rounds}[dim]

    def rows(self, dim: str, first: int, last: int, other: Self) -> slice:
        """The rows of an axis that belong to rounds ``first`` to ``last``.

        Events end before the first round that has more or fewer of them in the other trace: from there on rows do not
        belong together, and ``event_count`` says so.
        """
        if dim == "round":
            return slice(first - 1, last)
        if dim == "event":
            counts = [axes.event_counts[:last] for axes in (self, other)]
            same = int(np.argmin(np.append(counts[0] == counts[1], False)))
            begin = int(self.event_counts[first - 2]) if first > 1 else 0
            return slice(begin, max(begin, int(self.event_counts[same - 1]) if same else 0))
        begin, end = np.searchsorted(self.snapshot_rounds, [first, last + 1])
        return slice(int(begin), int(end))

    def size(self, dataset: h5py.Dataset, dims: tuple[str, ...]) -> int:
        """Count of the numbers of a dataset that belong to committed rounds."""
        if not dataset.shape:
            return int(dataset.size or 0)
        last = self.round_labels[-1] if self.rounds else -1
        snapshots = int(np.count_nonzero((self.snapshot_rounds >= 0) & (self.snapshot_rounds <= last)))
        committed = {"round": self.rounds, "event": len(self.event_rounds), "snapshot": snapshots}
        length = min(dataset.shape[0], committed.get(dims[0], dataset.shape[0]))
        return int(length) * int(np.prod(dataset.shape[1:], dtype=np.int64))


@dataclass(frozen=True)
class AttributeValue:
    """An attribute with its type and shape; equal where these and the content are.

    Attributes:
        kind: its type in words; "absent" where there is none.
        shape: its shape.
        content: its bits, or the texts and names that it holds.
        words: what a message shows of it.
    """

    kind: str
    shape: tuple[int, ...] | None
    content: Any
    words: Any = field(compare=False)


def attribute_value(node: Node, name: str, paths: Mapping[int, str]) -> AttributeValue:
    """An attribute of a node; references stand for the paths of what they lead to."""
    if name not in node.attrs:
        return AttributeValue("absent", None, None, "nothing")
    stored, value = node.attrs.get_id(name), node.attrs[name]
    content = words = value
    if not isinstance(value, str | bytes):
        array = np.asarray(value)
        plain = _plain(value, node.file, paths) if array.dtype.hasobject else array.tolist()
        content, words = plain if array.dtype.hasobject else array.tobytes(), plain
    return AttributeValue(dtype_words(stored.dtype), stored.shape, content, words)


def dtype_words(dtype: np.dtype[Any]) -> str:
    """A type in words: NumPy's, and for texts, references and rows of them what NumPy does not tell."""
    string, row, reference = h5py.check_string_dtype(dtype), h5py.check_vlen_dtype(dtype), h5py.check_ref_dtype(dtype)
    if dtype.kind == "O" and string is not None:
        return f"text ({string.encoding})"
    if reference is not None:
        return f"reference ({reference.__name__})"
    if row is not None:
        return f"rows of {dtype_words(np.dtype(row))}"
    if dtype.names is not None:
        return ", ".join(f"{name}: {dtype_words(dtype[name])}" for name in dtype.names)
    return str(dtype.str)


def _plain(value: Any, file: h5py.File, paths: Mapping[int, str]) -> Any:
    # Nested lists with paths in place of references.
    if isinstance(value, h5py.Reference):
        return _path_of(value, file, paths) if value else "nothing"
    if isinstance(value, np.void):
        value = value.item()
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(item, file, paths) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _path_of(reference: h5py.Reference, file: h5py.File, paths: Mapping[int, str]) -> str:
    # What was deleted leaves its references behind, whose place is free or is taken by another kind of block.
    try:
        target = h5r.dereference(reference, file.id)
    except (KeyError, ValueError, OSError, RuntimeError):
        target = None
    return "nothing" if target is None else paths.get(h5o.get_info(target).addr, "an object without a name")
