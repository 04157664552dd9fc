"""What goes wrong with clients: not there, crashed in training, battery empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.streams import Streams


class AvailabilityModel(Protocol):
    """Extension point: which of the selected clients can be reached in a round."""

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        """(n,) True where the client can be reached."""
        ...


@dataclass(frozen=True)
class BernoulliAvailability:
    """Each client is there with probability ``p``, independently of rounds and of the others."""

    p: float

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        """(n,) True with probability p."""
        return streams.nodes("availability", round_index, clients).uniform()[:, 0] < self.p


@dataclass(frozen=True)
class Faults:
    """The faults of a scenario.

    Attributes:
        availability: who can be reached.
        crash_rate_per_s: hazard rate of a crash while training.
        battery_j: joules of a full battery, or None for mains power.
    """

    availability: AvailabilityModel
    crash_rate_per_s: float
    battery_j: float | None

    def crash_after(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.float64]:
        """(n,) seconds of training after which a client crashes; infinite without a hazard."""
        if self.crash_rate_per_s == 0.0:
            return np.full(len(clients), np.inf)
        return streams.nodes("crash", round_index, clients).exponential()[:, 0] / self.crash_rate_per_s
