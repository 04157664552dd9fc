"""What nodes say to each other. A message is a value; when it arrives is the medium's business."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Ready:
    """A client has trained and asks for the uplink; a control message without payload."""

    position: int
    """Place of the client among those selected in this round."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """Contact with a client was lost while it trained."""

    position: int


@dataclass(frozen=True, slots=True)
class SlotGrant:
    """The server opens the uplink slot for everyone who reported in time."""

    silent: NDArray[np.bool_]
    """(n,) over the clients selected: in a deep fade, which a client sees from its own channel."""
    jammer_gain: float
    """α_CJ that the server asks of the cooperative jammer."""


Message = Ready | Crashed
