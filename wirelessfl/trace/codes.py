"""Numbers and words that a trace is written in: statuses, kinds of events, stages, nodes."""

from enum import IntEnum
from typing import Literal

FORMAT = "wirelessfl-trace"
VERSION = 1

CLOSING = ("why_different", "release_settings")
"""Root attributes written at the end, lists in JSON; empty lists until then."""

STATUSES = ("running", "complete", "interrupted", "failed", "diverged")
RunStatus = Literal["running", "complete", "interrupted", "failed", "diverged"]

FINISHED = ("complete", "diverged")
"""Of runs that have ended: diverged has a global model, test loss or last updates that are not finite."""

SERVER_NODE = -1
"""The parameter server in ``/events/node``; clients are their ids, 0 and up."""
JAMMER_NODE = -2
"""The cooperative jammer in ``/events/node``, when it is a node of its own."""
GAIN_AXES = ("block", "subcarrier", "antenna")
"""Dimensions of complex gains beside round and slot: pieces of a slot, groups of subcarriers, antennas of the receiver;
a trace has those that are longer than 1."""
EMPTY_CLIENT = -1
"""``client_id`` of a slot that nobody fills."""


class Status(IntEnum):
    """The outcome of a round for the client of a slot."""

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


class EventKind(IntEnum):
    """What happened to a node; the code in ``/events/kind``."""

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


class SecAggStage(IntEnum):
    """Where secure aggregation spends: a set-up once in a run, and the stages of every round."""

    SET_UP = 0
    ADVERTISE_KEYS = 1
    SHARE_KEYS = 2
    MASKED_INPUT = 3
    UNMASK = 4


class SecAggOutcome(IntEnum):
    """How a round of secure aggregation ended."""

    SUMMED = 1
    ABORTED = 2


REASON_LENGTH = 240
"""Letters kept of the reason why a round was given up."""
