"""From the record of a round to the blocks of values that go into the datasets of a trace."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple, Self

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from wirelessfl.errors import precondition
from wirelessfl.trace.layout import JAMMER_AXIS, Group, SecAggStage, Status, Variable
from wirelessfl.trace.records import EventBatch, RoundRecord
from wirelessfl.trace.schema import EVENTS, PRIVACY, ROOT, SECAGG
from wirelessfl.trace.storage import dataset_path, gain_axes_of


class Block(NamedTuple):
    """Values for one dataset.

    Attributes:
        path: the dataset.
        extent: the shape that it must have.
        offset: where the values begin.
        values: the values; None where only the extent changes.
    """

    path: str
    extent: tuple[int, ...]
    offset: tuple[int, ...]
    values: NDArray[np.generic] | None


class Behind(NamedTuple):
    """Rounds, slots and events that a trace has."""

    rounds: int
    slots: int
    events: int


@dataclass(frozen=True)
class RoundLayout:
    """The datasets of a trace that grow round by round.

    Attributes:
        root: the root group, over the axes of gains that the trace has.
        gain_shape: lengths of those of clients.
        jammer_shape: lengths of those of the jammer.
        secure: whether there is a group of secure aggregation.
    """

    root: Group
    gain_shape: tuple[int, ...]
    jammer_shape: tuple[int, ...]
    secure: bool

    @classmethod
    def of(cls, file: h5py.File) -> Self:
        """Layout of an open trace."""
        axes = gain_axes_of(file)
        jammer_shape = tuple(len(file[axis]) for axis in axes)
        gain_shape = jammer_shape[:-1] if JAMMER_AXIS in axes else jammer_shape
        return cls(ROOT.over(axes), gain_shape, jammer_shape, SECAGG.path in file)

    def blocks(self, record: RoundRecord, room: int, behind: Behind, place: str) -> tuple[list[Block], int, int]:
        """The blocks of a round, and the numbers of slots and events after it.

        Args:
            record: the round.
            room: the rows that datasets over rounds have.
            behind: the lengths before it.
            place: where it stands, for messages.

        Raises:
            ValueError: the record does not fit the schema.
        """
        root_slots = _slot_columns(self.root, record.slots, place)
        _check_selected(root_slots, place)
        privacy_slots = _slot_columns(PRIVACY, record.privacy_slots, place)
        width = len(root_slots["client_id"])
        fits = all(len(column) == width for column in privacy_slots.values())
        precondition(fits, f"{place}: /privacy has another number of slots than client_id")
        events = _event_columns(record.events, record.round_index, place) if record.events is not None else {}
        total = behind.events + (len(events["time"]) if events else 0)
        gains = {variable.name for variable in self.root.gains}
        single = {name: value for name, value in record.values.items() if name not in gains}
        values = _columns(self.root.of("round"), {**single, "event_count": total}, place)
        privacy = _columns(PRIVACY.of("round"), record.privacy, place)
        single_numbers = not any(column.ndim for column in (*values.values(), *privacy.values()))
        precondition(single_numbers, f"{place}: values per round must be single numbers")
        slots = max(behind.slots, width)
        blocks = [
            Block(dataset_path(EVENTS, name), (total,), (behind.events,), column) for name, column in events.items()
        ]
        blocks.append(Block("/events/event", (total,), (0,), None))
        if slots > behind.slots:
            blocks.append(Block("/slot", (slots,), (behind.slots,), np.arange(behind.slots, slots, dtype=np.int64)))
        blocks += self._gain_blocks(record, room, slots, width, behind, place)
        for group, per_round, per_slot in ((ROOT, values, root_slots), (PRIVACY, privacy, privacy_slots)):
            blocks += _row_blocks(behind.rounds, group, (room,), per_round)
            blocks += _row_blocks(behind.rounds, group, (room, slots), per_slot)
        blocks += self._secagg_blocks(record, room, behind, place)
        return blocks, slots, total

    def _gain_blocks(
        self, record: RoundRecord, room: int, slots: int, width: int, behind: Behind, place: str
    ) -> list[Block]:
        by_slot = [variable for variable in self.root.gains if "slot" in variable.dims]
        by_round = [variable for variable in self.root.gains if "slot" not in variable.dims]
        per_round = _gain_columns(by_round, record.values, self.jammer_shape, place)
        per_slot = _gain_columns(by_slot, record.slots, (width, *self.gain_shape), place)
        return [
            *_row_blocks(behind.rounds, ROOT, (room, *self.jammer_shape), per_round),
            *_row_blocks(behind.rounds, ROOT, (room, slots, *self.gain_shape), per_slot),
        ]

    def _secagg_blocks(self, record: RoundRecord, room: int, behind: Behind, place: str) -> list[Block]:
        if not self.secure:
            precondition(
                not record.secagg and not record.secagg_stages, f"{place}: the trace was created without {SECAGG.path}"
            )
            return []
        per_round = _columns(SECAGG.of("round"), record.secagg, place)
        per_stage = _columns(SECAGG.of("round", "stage"), record.secagg_stages, place)
        stages = len(SecAggStage)
        fits = all(array.shape == (stages,) for array in per_stage.values())
        precondition(fits, f"{place}: values per stage must be {stages} numbers")
        return [
            *_row_blocks(behind.rounds, SECAGG, (room,), per_round),
            *_row_blocks(behind.rounds, SECAGG, (room, stages), per_stage),
        ]


def _row_blocks(
    row: int, group: Group, extent: tuple[int, ...], given: Mapping[str, NDArray[np.generic]]
) -> list[Block]:
    # The next row of each variable given; the others keep their fill value.
    offset = (row, *(0 for _ in extent[1:]))
    return [Block(dataset_path(group, name), extent, offset, values) for name, values in given.items()]


def client_blocks(client_values: Mapping[str, ArrayLike]) -> list[Block]:
    """The blocks of values known at the end of a run, one a client."""
    variables = (*(v for v in ROOT.coordinates if v.name == "client"), *ROOT.of("client"))
    count = len(np.asarray(next(iter(client_values.values()), ())))
    given = _columns(variables, {"client": np.arange(count), **client_values}, "clients")
    return [Block(dataset_path(ROOT, v.name), (count,), (0,), given.get(v.name)) for v in variables]


def _columns(
    variables: Iterable[Variable], given: Mapping[str, ArrayLike], place: str
) -> dict[str, NDArray[np.generic]]:
    # One C-contiguous array of the schema's dtype for each given name, in the order of the schema; unknown and missing
    # names, unequal shapes and values that the dtype cannot hold are refused. ``place`` is for messages.
    known = {variable.name: variable for variable in variables}
    unknown = sorted(set(given) - set(known))
    precondition(not unknown, f"{place}: not in the trace schema: {', '.join(unknown)}")
    missing = [name for name, variable in known.items() if variable.required and name not in given]
    precondition(not missing, f"{place}: missing {', '.join(missing)}")
    result = {name: _cast(variable, given[name], place) for name, variable in known.items() if name in given}
    if len({array.shape for array in result.values()}) > 1:
        raise ValueError(f"{place}: unequal shapes {', '.join(f'{name} {a.shape}' for name, a in result.items())}")
    return result


def _cast(variable: Variable, value: ArrayLike, place: str) -> NDArray[np.generic]:
    array, wanted = np.asarray(value), np.dtype(variable.dtype)
    if array.dtype != wanted:
        array = _converted(array, wanted, f"{place}: {variable.name}")
    known = variable.flags is None or _known_codes(variable.flags)[array].all()
    precondition(known, f"{place}: {variable.name} holds a code that the trace schema does not know")
    return np.asarray(array, order="C")


@cache
def _known_codes(flags: type[IntEnum]) -> NDArray[np.bool_]:
    known = np.zeros(256, dtype=np.bool_)
    known[list(flags)] = True
    return known


def _converted(array: NDArray[Any], wanted: np.dtype[np.generic], place: str) -> NDArray[np.generic]:
    kinds, words = ("S", "bytes") if wanted.kind == "S" else ("iufb", "real numbers")
    precondition(array.dtype.kind in kinds, f"{place} must be {words}, found dtype {array.dtype}")
    with np.errstate(invalid="ignore"):
        result = array.astype(wanted)
    exact = wanted.kind not in "iu" or np.array_equal(result, array)
    precondition(exact, f"{place} must hold whole numbers that fit {wanted}")
    return result


def _slot_columns(group: Group, given: Mapping[str, ArrayLike], place: str) -> dict[str, NDArray[np.generic]]:
    # Over the selected clients, each (n,)
    gains = {variable.name for variable in group.gains}
    result = _columns(group.of("round", "slot"), {n: v for n, v in given.items() if n not in gains}, place)
    precondition(all(array.ndim == 1 for array in result.values()), f"{place}: values per slot must be one-dimensional")
    return result


def _gain_columns(
    variables: Iterable[Variable], given: Mapping[str, ArrayLike], shape: tuple[int, ...], place: str
) -> dict[str, NDArray[np.generic]]:
    # Over the axes of gains, each of one shape: those axes, behind the selected clients or alone
    names = {variable.name for variable in variables}
    result = _columns(variables, {name: value for name, value in given.items() if name in names}, place)
    for name, array in result.items():
        precondition(array.shape == shape, f"{place}: {name} must have the shape {shape}, found {array.shape}")
    return result


def _check_selected(slots: Mapping[str, NDArray[np.generic]], place: str) -> None:
    # Slots hold distinct clients in ascending order, each with a status.
    ids = np.asarray(slots["client_id"], dtype=np.int64)
    ascending = (ids[:1] >= 0).all() and (ids[1:] > ids[:-1]).all()
    precondition(ascending, f"{place}: client_id must be ascending, distinct and not negative")
    named = (slots["status"] != Status.EMPTY_SLOT).all()
    precondition(named, f"{place}: a selected client cannot have the status of an empty slot")


def _event_columns(events: EventBatch, round_index: int, place: str) -> dict[str, NDArray[np.generic]]:
    # Rows of ``/events`` for one round, each (n,)
    time = np.asarray(events.time)
    given = {"time": time, "node": events.node, "kind": events.kind, "bits": events.bits}
    result = _columns(EVENTS.variables, {**given, "round": np.full(time.shape, round_index)}, place)
    precondition(time.ndim == 1, f"{place}: events must be one-dimensional")
    return result
