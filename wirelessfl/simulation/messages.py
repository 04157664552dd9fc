"""What nodes say to each other. A message is a value; when it arrives is the medium's business."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl import secagg
from wirelessfl.secagg import Stage


@dataclass(frozen=True, slots=True)
class Ready:
    """A client has trained and asks for the uplink; a control message without payload."""

    position: int
    """Place of the client among those selected in this round; its number where clients work across rounds."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """Contact with a client was lost while it trained."""

    position: int


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """What many clients say by one instant, each for itself."""

    ready: NDArray[np.int64]
    """Places of those who have trained and ask for the uplink."""
    crashed: NDArray[np.int64]
    """Places of those with whom contact was lost."""


@dataclass(frozen=True, slots=True)
class SlotGrant:
    """The server opens the uplink slot for everyone who reported in time."""

    silent: NDArray[np.bool_]
    """(n,) over the clients selected: in a deep fade, which a client sees from its own channel."""
    jammer_gain: float
    """α_CJ that the server asks of the cooperative jammer."""


@dataclass(frozen=True, slots=True)
class Faded:
    """A client stays silent: its channel does not carry an upload in this round."""

    position: int


@dataclass(frozen=True, slots=True)
class Outage:
    """The upload of a client was sent and lost: its channel carries less than the rate."""

    position: int


@dataclass(frozen=True, slots=True)
class ProtocolMessage:
    """What a client sends in a stage of secure aggregation."""

    position: int
    session: bytes
    """The round, or the attempt at it, that the message belongs to."""
    stage: Stage
    bits: int
    content: secagg.Message | None
    """None for a masked input: its numbers are computed with those of all others that arrived in time."""


Message = Ready | Crashed | Faded | Outage | ProtocolMessage | Reports
