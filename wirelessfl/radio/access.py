"""Orthogonal multiple access: who gets which part of the band, and when each upload is over."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class MultipleAccess(Protocol):
    """How n uploads share one band without interference."""

    def bandwidth_share(self, num_clients: int) -> float:
        """B_i/B of each client."""

    def finish_times(self, airtime: NDArray[np.float64]) -> NDArray[np.float64]:
        """When each upload (n,) ends, in seconds after the first begins; airtimes in the order of the schedule."""

    def at_a_time(self, num_clients: int) -> int:
        """How many of the clients may send at the same time."""


@dataclass(frozen=True)
class Tdma:
    """Time division: the full band, one after the other; airtimes add."""

    def bandwidth_share(self, num_clients: int) -> float:
        """1."""
        return 1.0

    def finish_times(self, airtime: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cumulative sums."""
        return np.cumsum(airtime)

    def at_a_time(self, num_clients: int) -> int:
        """1."""
        return 1


@dataclass(frozen=True)
class Ofdma:
    """Frequency division: an equal part of the band each, all at once; the longest counts."""

    def bandwidth_share(self, num_clients: int) -> float:
        """1/n."""
        return 1.0 / num_clients

    def finish_times(self, airtime: NDArray[np.float64]) -> NDArray[np.float64]:
        """The airtimes themselves."""
        return airtime

    def at_a_time(self, num_clients: int) -> int:
        """All of them."""
        return max(1, num_clients)
