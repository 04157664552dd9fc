"""Faults: availability, crashes, batteries, and restarts of the server."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning.selection.availability import AvailabilityModel
from wirelessfl.streams import Streams

_ONE = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class Faults:
    """The faults of a scenario.

    Attributes:
        availability: who can be reached.
        crash_rate_per_s: hazard rate of a crash while training.
        battery_j: joules of a full battery, or None for mains power.
        restart_probability: how often in a round the server goes down with what it has just received.
        downtime_s: seconds until it is back.
    """

    availability: AvailabilityModel
    crash_rate_per_s: float
    battery_j: float | None
    restart_probability: float = 0.0
    downtime_s: float = 0.0

    def crash_after(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.float64]:
        """(n,) seconds of training after which a client crashes; infinite without a hazard."""
        if self.crash_rate_per_s == 0.0:
            return np.full(len(clients), np.inf)
        return streams.nodes("crash", round_index, clients).exponential()[:, 0] / self.crash_rate_per_s

    def server_restarts(self, round_index: int, streams: Streams) -> bool:
        """Whether the server goes down in a round."""
        if self.restart_probability == 0.0:
            return False
        drawn = streams.nodes("server_restart", round_index, _ONE).uniform()[0, 0]
        return bool(drawn < self.restart_probability)
