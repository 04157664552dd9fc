"""From the record of a round to the blocks of values that go into the datasets of a trace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray

from wirelessfl.errors import precondition
from wirelessfl.trace.layout import Group, SecAggStage
from wirelessfl.trace.records import (
    RoundRecord,
    check_selected,
    columns,
    event_columns,
    gain_columns,
    slot_columns,
)
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
        gain_shape: their lengths.
        secure: whether there is a group of secure aggregation.
    """

    root: Group
    gain_shape: tuple[int, ...]
    secure: bool

    @classmethod
    def of(cls, file: h5py.File) -> Self:
        """Layout of an open trace."""
        axes = gain_axes_of(file)
        return cls(ROOT.over(axes), tuple(len(file[axis]) for axis in axes), SECAGG.path in file)

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
        root_slots = slot_columns(self.root, record.slots, place)
        check_selected(root_slots, place)
        privacy_slots = slot_columns(PRIVACY, record.privacy_slots, place)
        width = len(root_slots["client_id"])
        fits = all(len(column) == width for column in privacy_slots.values())
        precondition(fits, f"{place}: /privacy has another number of slots than client_id")
        events = event_columns(record.events, record.round_index, place) if record.events is not None else {}
        total = behind.events + (len(events["time"]) if events else 0)
        gains = {variable.name for variable in self.root.gains}
        single = {name: value for name, value in record.values.items() if name not in gains}
        values = columns(self.root.of("round"), {**single, "event_count": total}, place)
        privacy = columns(PRIVACY.of("round"), record.privacy, place)
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
        per_round = gain_columns(by_round, record.values, self.gain_shape, place)
        per_slot = gain_columns(by_slot, record.slots, (width, *self.gain_shape), place)
        return [
            *_row_blocks(behind.rounds, ROOT, (room, *self.gain_shape), per_round),
            *_row_blocks(behind.rounds, ROOT, (room, slots, *self.gain_shape), per_slot),
        ]

    def _secagg_blocks(self, record: RoundRecord, room: int, behind: Behind, place: str) -> list[Block]:
        if not self.secure:
            precondition(
                not record.secagg and not record.secagg_stages, f"{place}: the trace was created without {SECAGG.path}"
            )
            return []
        per_round = columns(SECAGG.of("round"), record.secagg, place)
        per_stage = columns(SECAGG.of("round", "stage"), record.secagg_stages, place)
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
    given = columns(variables, {"client": np.arange(count), **client_values}, "clients")
    return [Block(dataset_path(ROOT, v.name), (count,), (0,), given.get(v.name)) for v in variables]
