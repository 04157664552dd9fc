"""Elements of a trace: groups of variables over named dimensions, their attributes, and the codes of its values."""

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np

FORMAT = "wirelessfl-trace"
VERSION = 1

CLOSING = ("why_different", "release_settings", "ended_by")
"""Root attributes written at the end, lists in JSON; empty lists until then."""

RunStatus = Literal["running", "complete", "interrupted", "failed", "diverged"]
STATUSES: tuple[RunStatus, ...] = get_args(RunStatus)

FINISHED = ("complete", "diverged")
"""Of runs that have ended: diverged has a global model, test loss or last updates that are not finite."""

SERVER_NODE = -1
"""The parameter server in ``/events/node``; clients are their ids, 0 and up."""
JAMMER_NODE = -2
"""The cooperative jammer in ``/events/node``, when it is a node of its own."""
GAIN_AXES = ("block", "subcarrier", "antenna")
"""Dimensions of complex gains beside round and slot: pieces of a slot, groups of subcarriers, antennas of the receiver;
a trace has those that are longer than 1."""
JAMMER_AXIS = "jammer_antenna"
"""The further dimension of the jammer's gains, the last: its antennas, where there are several."""
EMPTY_CLIENT = -1
"""``client_id`` of an empty slot."""


class Status(IntEnum):
    """Outcome of a round for the client of a slot."""

    EMPTY_SLOT = 0
    PARTICIPATED = 1
    UNAVAILABLE = 2
    CRASHED = 3
    LATE = 4
    DEEP_FADE = 5
    JAMMING = 6
    BATTERY_EMPTY = 7
    ABORTED = 8
    LOST = 9
    UNDERWAY = 10
    OUTAGE = 11
    NO_MODEL = 12


class Role(IntEnum):
    """Behaviour of the client of a slot."""

    HONEST = 0
    LABEL_FLIP = 1
    SIGN_FLIP = 2
    SCALED = 3
    FREE_RIDER = 4
    POWER_CHEAT = 5
    SILENT = 6


class EventKind(IntEnum):
    """Event at a node, the code in ``/events/kind``."""

    BROADCAST = 1
    COMPUTE_START = 2
    COMPUTE_END = 3
    TRANSMIT = 4
    JAM = 5
    SUPERPOSE = 6
    AGGREGATE = 7
    EVALUATE = 8
    UNAVAILABLE = 9
    CRASH = 10
    LATE = 11
    DEEP_FADE = 12
    BATTERY_EMPTY = 13
    ARRIVE = 14
    ADVERTISE_KEYS = 15
    SHARE_KEYS = 16
    MASKED_INPUT = 17
    UNMASK = 18
    REQUEST = 19
    VANISH = 20
    REFUSE = 21
    TIME_OUT = 22
    ABORT = 23
    JAMMER_FAILURE = 24
    SERVER_RESTART = 25
    CLOUD = 26
    OUTAGE = 27
    NO_MODEL = 28
    REPORT_LOSS = 29


class SecAggStage(IntEnum):
    """Stage of secure aggregation: a set-up once in a run, and those of every round."""

    SET_UP = 0
    ADVERTISE_KEYS = 1
    SHARE_KEYS = 2
    MASKED_INPUT = 3
    UNMASK = 4


class SecAggOutcome(IntEnum):
    """End of a round of secure aggregation."""

    SUMMED = 1
    ABORTED = 2


REASON_LENGTH = 240
"""Letters kept of the reason why a round was given up."""


@dataclass(frozen=True)
class Variable:
    """One dataset of the trace.

    Attributes:
        name: Dataset name inside its group.
        units: SI unit, "1" if dimensionless.
        long_name: What it is, in words.
        source: Where the formula stands, or "" where it is no formula of a paper.
        dims: Names of its dimension scales.
        dtype: NumPy dtype on disk.
        flags: Meaning of the integer codes, for enumerations.
        required: Whether every record must carry it; other absent values are NaN.
        gain: Whether it has a value for each block, subcarrier and antenna, in runs that have several of them.
        jammer_gain: Whether it is a gain of the jammer, and has a value for each of its antennas besides.
        label: What it is called on an axis, without its unit; the file does not have it.
        percent: Whether it is a share that is shown in percent.
    """

    name: str
    units: str
    long_name: str
    source: str = ""
    dims: tuple[str, ...] = ()
    dtype: str = "f8"
    flags: type[IntEnum] | None = None
    required: bool = False
    gain: bool = False
    jammer_gain: bool = False
    label: str = ""
    percent: bool = False

    @property
    def fill(self) -> float | int | bytes:
        """Value of what was never written: NaN, −1 for whole numbers, 0 for codes, no letters for texts."""
        fills: dict[str, float | int | bytes] = {"f": float("nan"), "i": -1, "u": 0, "S": b""}
        return fills[np.dtype(self.dtype).kind]

    def attributes(self) -> dict[str, Any]:
        """CF attributes of the dataset."""
        source = {"source": self.source} if self.source else {}
        attributes: dict[str, Any] = {"long_name": self.long_name, "units": self.units, **source}
        if self.flags is not None:
            attributes["flag_values"] = np.array([int(code) for code in self.flags], self.dtype)
            attributes["flag_meanings"] = " ".join(code.name.lower() for code in self.flags)
        return attributes


AttributeKind = Literal[
    "text", "whole number", "positive number", "JSON list of texts", "JSON mapping", "JSON mapping of sources"
]


@dataclass(frozen=True)
class Attribute:
    """One attribute of a group.

    Attributes:
        name: What it is called.
        long_name: What it is, in words.
        required: Whether every trace has it.
        kind: What its value is.
        among: The values of a text that is one of several words.
        later: Whether earlier versions wrote traces without it.
    """

    name: str
    long_name: str
    required: bool = True
    kind: AttributeKind = "text"
    among: tuple[str, ...] = ()
    later: bool = False


@dataclass(frozen=True)
class Group:
    """One HDF5 group.

    Attributes:
        path: Absolute path of the group.
        long_name: What it holds, in words.
        variables: Its datasets.
        coordinates: Dimensions whose positions carry a label; each is a dataset of its own.
        dimensions: Dimensions without labels.
        attributes: What is known about the group as a whole.
        optional: Whether only some traces have it.
    """

    path: str
    long_name: str
    variables: tuple[Variable, ...]
    coordinates: tuple[Variable, ...] = ()
    dimensions: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    optional: bool = False

    def over(self, axes: tuple[str, ...]) -> Self:
        """The same group where gains have these axes besides."""
        of_clients = tuple(axis for axis in axes if axis != JAMMER_AXIS)
        variables = tuple(
            replace(v, dims=(*v.dims, *(axes if v.jammer_gain else of_clients))) if v.gain else v
            for v in self.variables
        )
        changed = any(variable.gain for variable in self.variables)
        return replace(self, variables=variables, dimensions=(*self.dimensions, *axes)) if changed else self

    @property
    def gains(self) -> tuple[Variable, ...]:
        """The variables over axes of gains."""
        return tuple(variable for variable in self.variables if set(variable.dims) & {*GAIN_AXES, JAMMER_AXIS})

    def of(self, *dims: str) -> tuple[Variable, ...]:
        """The variables with exactly these dimensions."""
        return self._by_dims.get(dims, ())

    @cached_property
    def _by_dims(self) -> dict[tuple[str, ...], tuple[Variable, ...]]:
        return {found.dims: tuple(v for v in self.variables if v.dims == found.dims) for found in self.variables}
