"""Broadcast of the global model over fading downlinks: its rate, and the clients that it reaches."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.memory import Memory
from wirelessfl.radio.channel_source import ChannelSource
from wirelessfl.radio.propagation import Moment
from wirelessfl.radio.rates import shannon_rate, snr_of_power


class BroadcastRate(Protocol):
    """The rate of a broadcast from what the clients' channels carry."""

    def of(self, carried: NDArray[np.float64]) -> float:
        """Bit/s for channels that carry (n,) bit/s."""


@dataclass(frozen=True)
class FixedBroadcast:
    """One rate, whatever the channels: a client whose channel carries less misses the broadcast.

    Attributes:
        rate_bps: R.
    """

    rate_bps: float

    def __post_init__(self) -> None:
        precondition(0 < self.rate_bps < np.inf, f"rate_bps must be positive and finite, not {self.rate_bps}")

    def of(self, carried: NDArray[np.float64]) -> float:
        """R."""
        return self.rate_bps


@dataclass(frozen=True)
class MulticastToWeakest:
    """The rate of the weakest channel, none below a floor: the capacity of multicast (Jindal and Luo, ISIT 2006).

    A client whose channel carries less than the floor misses the broadcast; if that is everybody, it is sent at the
    floor.

    Attributes:
        floor_bps: the floor.
    """

    floor_bps: float

    def __post_init__(self) -> None:
        precondition(0 < self.floor_bps < np.inf, f"floor_bps must be positive and finite, not {self.floor_bps}")

    def of(self, carried: NDArray[np.float64]) -> float:
        """The least of the rates that are not below the floor."""
        enough = carried[carried >= self.floor_bps]
        return float(enough.min()) if len(enough) else self.floor_bps


@dataclass(frozen=True, eq=False)
class Broadcast:
    """A broadcast to n clients.

    Attributes:
        rate_bps: at which it is sent.
        received: (n,) whether a client's channel carries that rate.
    """

    rate_bps: float
    received: NDArray[np.bool_]


@dataclass(frozen=True)
class FadingDownlink:
    """Downlinks that fade, each constant during a broadcast: client i receives it if R ≤ B log2(1 + γ_i).

    Attributes:
        source: channels of the clients.
        rate: R.
        bandwidth_hz: B.
        snr: 2p/(N0 B) of the base station's power p, as of uplinks; γ_i = snr |h_i|²/2.
    """

    source: ChannelSource
    rate: BroadcastRate
    bandwidth_hz: float
    snr: float

    def carried(self, clients: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n,) bit/s that the channels of n clients carry, over several groups of subcarriers the mean."""
        power = np.abs(self.source.channels(clients, moment).channel[:, 0, :, 0]) ** 2
        return np.asarray(shannon_rate(self.bandwidth_hz, snr_of_power(self.snr, power)).mean(axis=1))

    def broadcast(self, clients: NDArray[np.int64], moment: Moment) -> Broadcast:
        """A broadcast that begins at a moment."""
        carried = self.carried(clients, moment) if len(clients) else np.zeros(0)
        rate = self.rate.of(carried)
        return Broadcast(rate, carried >= rate)

    def memories(self) -> dict[str, Memory]:
        """The parts of the fading that remember, by name; what it shares with the uplink is remembered there."""
        own = self.source.memories()
        return {name: memory for name, memory in own.items() if not name.endswith(("placement", "large_scale"))}


def rayleigh_broadcast_outage(
    rate_bps: float, bandwidth_hz: float, mean_snr: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Pr(B log2(1 + γ) < R) = 1 − exp(−(2^{R/B} − 1)/γ̄) (n,) of Rayleigh fading (Tse and Viswanath 2005, 5.4.1).

    Args:
        rate_bps: R.
        bandwidth_hz: B.
        mean_snr: γ̄ (n,).
    """
    return np.asarray(-np.expm1(-np.expm1(rate_bps / bandwidth_hz * np.log(2.0)) / mean_snr))


def rate_of_outage(outage: float, bandwidth_hz: float, mean_snr: NDArray[np.float64]) -> float:
    """The rate in bit/s at which the mean of `rayleigh_broadcast_outage` over the links is ``outage``.

    Raises:
        ValueError: if ``outage`` is not between 0 and 1.
    """
    precondition(0 < outage < 1, f"outage must lie between 0 and 1, not {outage}")
    thresholds = -np.log1p(-outage) * mean_snr  # of each link by itself: the common one lies between them
    least, most = float(thresholds.min()), float(thresholds.max())
    if least == most:
        threshold = least
    else:
        from scipy.optimize import brentq  # takes a sixth of a second, and most runs have no outages

        def excess(exponent: float) -> float:
            return float(-np.expm1(-np.exp(exponent) / mean_snr).mean()) - outage

        threshold = float(np.exp(brentq(excess, np.log(least), np.log(most), xtol=1e-13)))
    return float(shannon_rate(bandwidth_hz, np.array([threshold]))[0])
