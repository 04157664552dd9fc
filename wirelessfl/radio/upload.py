"""Digital uploads: which attempts are made, how long they last, and whether the message gets through."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Upload:
    """What came of n uploads.

    Attributes:
        airtime: (n,) seconds on the air, over all attempts.
        attempts: (n,) how often each was sent.
        delivered: (n,) whether one attempt got through.
    """

    airtime: NDArray[np.float64]
    attempts: NDArray[np.int64]
    delivered: NDArray[np.bool_]

    def energy(self, transmit_watts: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Joules p T_i (n,) of transmit power p."""
        return np.asarray(self.airtime * transmit_watts)


@dataclass(frozen=True)
class AdaptiveRate:
    """Every attempt at the rate that its block of fading carries, none below a minimum.

    On Rayleigh fading the mean of 1/rate is infinite, so that the minimum is not an option.

    Attributes:
        min_rate_bps: below it a block is left unused.
        outage: how often a channel that is known imperfectly may carry less than the rate; None takes the estimate for
            the channel, without a margin.
    """

    min_rate_bps: float
    outage: float | None = 0.01

    def __post_init__(self) -> None:
        if not 0 < self.min_rate_bps < np.inf:
            raise ValueError(f"min_rate_bps must be positive and finite, not {self.min_rate_bps}")
        if self.outage is not None and not 0 < self.outage < 1:
            raise ValueError(f"outage must lie between 0 and 1, not {self.outage}")

    def upload(self, bits: float, carried: NDArray[np.float64], lost: NDArray[np.bool_]) -> Upload:
        """Uploads of ``bits`` over ``carried`` (n, blocks) bit/s; ``lost`` (n, blocks) marks packets in error."""
        sends = carried >= self.min_rate_bps
        duration = bits / np.maximum(carried, self.min_rate_bps)
        return _attempt_in_order(sends, sends & ~lost, duration)


@dataclass(frozen=True)
class FixedRate:
    """Every attempt at one rate, without knowledge of the channel: a weaker block is an outage, after full airtime.

    Attributes:
        rate_bps: R.
    """

    rate_bps: float

    def __post_init__(self) -> None:
        if not 0 < self.rate_bps < np.inf:
            raise ValueError(f"rate_bps must be positive and finite, not {self.rate_bps}")

    def upload(self, bits: float, carried: NDArray[np.float64], lost: NDArray[np.bool_]) -> Upload:
        """Uploads of ``bits`` over ``carried`` (n, blocks) bit/s; ``lost`` (n, blocks) marks packets in error."""
        succeeds = (carried >= self.rate_bps) & ~lost
        return _attempt_in_order(np.ones_like(succeeds), succeeds, np.full(carried.shape, bits / self.rate_bps))


def _attempt_in_order(sends: NDArray[np.bool_], succeeds: NDArray[np.bool_], duration: NDArray[np.float64]) -> Upload:
    # Block after block (n, blocks) until the first success
    done_before = np.cumsum(succeeds, axis=1) - succeeds > 0
    used = sends & ~done_before
    airtime = np.where(used, duration, 0.0).sum(axis=1)
    return Upload(airtime, used.sum(axis=1).astype(np.int64), np.asarray(succeeds.any(axis=1)))
