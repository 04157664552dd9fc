"""Messages between nodes: values, which the medium delivers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl import secagg
from wirelessfl.secagg import Stage
from wirelessfl.trace import EventKind, Status

END_EVENT = {
    Status.PARTICIPATED: EventKind.ARRIVE,
    Status.CRASHED: EventKind.CRASH,
    Status.DEEP_FADE: EventKind.DEEP_FADE,
    Status.OUTAGE: EventKind.OUTAGE,
}
"""The event with which a client's part in a round ends, by its outcome."""


@dataclass(frozen=True, slots=True)
class Report:
    """A client's report of how its part in a round ends; a control message without payload.

    Attributes:
        position: of the client among those selected in this round; its number where clients work across rounds.
        outcome: PARTICIPATED where it has trained and asks for the uplink, or its upload has arrived; CRASHED,
            DEEP_FADE or OUTAGE where nothing will come.
    """

    position: int
    outcome: Status = Status.PARTICIPATED


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """The reports of many clients at one instant."""

    ready: NDArray[np.int64]
    """Places of those who have trained and ask for the uplink."""
    crashed: NDArray[np.int64]
    """Places of those with whom contact was lost."""


@dataclass(frozen=True, slots=True)
class SlotGrant:
    """The server's grant of the uplink slot to all who reported in time."""

    silent: NDArray[np.bool_]
    """(n,) over the clients selected: in a deep fade, which a client sees from its own channel."""
    jammer_gain: float
    """α_CJ that the server asks of the cooperative jammer."""


@dataclass(frozen=True, slots=True)
class ProtocolMessage:
    """A client's message in a stage of secure aggregation."""

    position: int
    session: bytes
    """The round, or the attempt at it, that the message belongs to."""
    stage: Stage
    bits: int
    content: secagg.Message | None
    """None for a masked input: its numbers are computed with those of all others that arrived in time."""


Message = Report | ProtocolMessage | Reports
