"""Digital uploads: orthogonal multiple access, rates of links, and the division of long messages into pieces."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.errors import precondition
from wirelessfl.radio.slot_schedule import Refresh


class MultipleAccess(ABC):
    """Division of one band among n uploads without interference."""

    def bandwidth_share(self, num_clients: int) -> float:
        """B_i/B of each client: the band is divided evenly among those that send at the same time."""
        return 1.0 / self.at_a_time(num_clients)

    @abstractmethod
    def at_a_time(self, num_clients: int) -> int:
        """Number of clients that may send at the same time."""


@dataclass(frozen=True)
class Tdma(MultipleAccess):
    """Time division: the full band, one after the other; airtimes add."""

    def at_a_time(self, num_clients: int) -> int:
        """1."""
        return 1


@dataclass(frozen=True)
class Ofdma(MultipleAccess):
    """Frequency division: an equal part of the band each, all at once; the longest counts.

    Attributes:
        reallocates: whether those that send divide the whole band, and not each keeps the part of a client.
    """

    reallocates: bool = False

    def at_a_time(self, num_clients: int) -> int:
        """All of them."""
        return max(1, num_clients)


def link_snr(
    snr: NDArray[np.float64] | float, channel: NDArray[np.complex128], bandwidth_share: float = 1.0
) -> NDArray[np.float64]:
    """γ = |h|² p/(N0 B_i) = SNR_i |h|²/(2 B_i/B), signal over complex noise in the client's own band.

    Args:
        snr: SNR_i = 2p/(N0 B), as over the air: against the noise of one real dimension in the full band.
        channel: h (n,).
        bandwidth_share: B_i/B, 1 for TDMA and 1/n for OFDMA.
    """
    return snr_of_power(snr, np.abs(channel) ** 2, bandwidth_share)


def snr_of_power(
    snr: NDArray[np.float64] | float, power: NDArray[np.float64], bandwidth_share: float = 1.0
) -> NDArray[np.float64]:
    """γ of `link_snr` from the power |h|² (n,) of the channel."""
    precondition(0 < bandwidth_share <= 1, f"bandwidth_share must lie in (0, 1], not {bandwidth_share}")
    return np.asarray(snr * power / (2.0 * bandwidth_share))


def shannon_rate(bandwidth_hz: float, snr: NDArray[np.float64]) -> NDArray[np.float64]:
    """Capacity B log2(1 + γ) of complex Gaussian noise, in bit/s."""
    return np.asarray(bandwidth_hz * np.log1p(snr) / math.log(2.0))


def finite_blocklength_rate(
    bandwidth_hz: float, snr: NDArray[np.float64], blocklength: float, error_probability: float
) -> NDArray[np.float64]:
    """The normal approximation for short packets, in bit/s (Polyanskiy, Poor, Verdú, IEEE Trans. IT 2010).

    B [log2(1 + γ) − sqrt(V/n) Q^{-1}(ε) log2 e] with dispersion V = 1 − (1 + γ)^{-2} and at least 0. Good from about a
    hundred channel uses on.

    Args:
        bandwidth_hz: B, one channel use per hertz and second.
        snr: γ (n,).
        blocklength: n, complex channel uses of a packet.
        error_probability: ε in (0, 1/2] of a packet at this rate.

    Raises:
        ValueError: if the block length or the error probability is out of range.
    """
    precondition(
        blocklength >= 1 and 0 < error_probability <= 0.5,
        f"no rate for blocklength={blocklength} and error_probability={error_probability}",
    )
    dispersion = 1.0 - (1.0 + snr) ** -2.0
    backoff = np.sqrt(dispersion / blocklength) * -special.ndtri(error_probability) / math.log(2.0)
    return np.asarray(np.maximum(shannon_rate(bandwidth_hz, snr) - bandwidth_hz * backoff, 0.0))


@dataclass(frozen=True)
class ShortPackets:
    """Packets of a fixed length at the rate of the normal approximation, each repeated until it arrives.

    Attributes:
        blocklength: n, complex channel uses of a packet.
        error_probability: ε, with which a packet is lost.
    """

    blocklength: float
    error_probability: float

    def throughput(self, bandwidth_hz: float, snr: NDArray[np.float64]) -> NDArray[np.float64]:
        """(1 − ε) R bit/s at signal-to-noise ratios (n,): a packet is sent 1/(1 − ε) times on average."""
        rate = finite_blocklength_rate(bandwidth_hz, snr, self.blocklength, self.error_probability)
        return np.asarray((1.0 - self.error_probability) * rate)


@dataclass(frozen=True)
class AdaptiveRate:
    """Transmission at the rate that the block of fading is believed to carry, none below a minimum.

    On Rayleigh fading the mean of 1/rate is infinite, so that the minimum is not an option.

    Attributes:
        min_rate_bps: below it a block is left unused.
        outage: how often a channel that is known imperfectly may carry less than the rate; None takes the estimate for
            the channel, without a margin.
    """

    min_rate_bps: float
    outage: float | None = 0.01

    def __post_init__(self) -> None:
        precondition(
            0 < self.min_rate_bps < np.inf, f"min_rate_bps must be positive and finite, not {self.min_rate_bps}"
        )
        precondition(self.outage is None or 0 < self.outage < 1, f"outage must lie between 0 and 1, not {self.outage}")

    @property
    def least_bps(self) -> float:
        """The minimum."""
        return self.min_rate_bps

    def sent_at(self, believed: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rates that channels are believed to carry, 0 below the minimum."""
        return np.where(believed >= self.min_rate_bps, believed, 0.0)


@dataclass(frozen=True)
class FixedRate:
    """Transmission at one rate, without knowledge of the channel: a weaker block is an outage, after full airtime.

    Attributes:
        rate_bps: R.
    """

    rate_bps: float

    def __post_init__(self) -> None:
        precondition(0 < self.rate_bps < np.inf, f"rate_bps must be positive and finite, not {self.rate_bps}")

    @property
    def least_bps(self) -> float:
        """R."""
        return self.rate_bps

    def sent_at(self, believed: NDArray[np.float64]) -> NDArray[np.float64]:
        """R, whatever channels are believed to carry."""
        return np.full(believed.shape, self.rate_bps)


# The part of a message up to which sums of bits over pieces may be off
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class PiecewiseUpload:
    """Outcome of n uploads.

    Attributes:
        duration: (n,) seconds from the first symbol to the last.
        airtime: (n,) seconds of them in which something was sent.
        ended: (n,) whether the whole message was sent, however much of it was lost; else the pieces were too few.
        delivered: (n,) whether all of the message got through.
        pieces: (n,) in which some of that time lies.
        spent_s: (n, T) seconds of the duration in each piece.
        sending: (n, T) whether something is sent in it.
    """

    duration: NDArray[np.float64]
    airtime: NDArray[np.float64]
    ended: NDArray[np.bool_]
    delivered: NDArray[np.bool_]
    pieces: NDArray[np.int64]
    spent_s: NDArray[np.float64]
    sending: NDArray[np.bool_]


def upload_over_pieces(
    bits: float,
    piece_s: NDArray[np.float64],
    rate: NDArray[np.float64],
    carried: NDArray[np.float64],
    repeats: bool,
) -> PiecewiseUpload:
    """Uploads of a message that is coded piece by piece.

    A piece whose rate exceeds what its channel carries is lost. Without repetition the message is lost with it, and
    nobody knows before its end; with repetition, what was lost is sent again in the pieces that follow.

    Args:
        bits: of each message.
        piece_s: (n,) seconds of a piece; the last one that is needed may end earlier.
        rate: (n, T) or (n, 1) bit/s at which a client sends, 0 where it is silent.
        carried: (n, T) bit/s that channels carry.
        repeats: whether lost pieces are repeated.
    """
    lost = rate > carried
    through = np.broadcast_to(rate, carried.shape) * piece_s[:, None]
    if repeats:
        through = np.where(lost, 0.0, through)
    before = np.cumsum(through, axis=1) - through
    part = np.where(through > 0, np.minimum((bits - before) / np.where(through > 0, through, 1.0), 1.0), 1.0)
    used = np.where(before < bits * (1.0 - _ROUNDING), part, 0.0)
    spent = used * piece_s[:, None]
    ended = before[:, -1] + through[:, -1] >= bits * (1.0 - _ROUNDING)
    failed = np.zeros(len(piece_s), dtype=np.bool_) if repeats else (lost & (used > 0)).any(axis=1)
    airtime = np.where(rate > 0, spent, 0.0).sum(axis=1)
    pieces = np.count_nonzero(used, axis=1)
    sending = np.broadcast_to(rate > 0, spent.shape)
    delivered = np.asarray(ended & ~failed)
    return PiecewiseUpload(spent.sum(axis=1), airtime, np.asarray(ended), delivered, pieces, spent, sending)


PieceRates = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Bit/s in pieces that begin (n, T) seconds after their messages: sent at, (n, T) or (n, 1), and carried (n, T)."""


@dataclass(frozen=True)
class MessageDivision:
    """Division of messages into pieces.

    Attributes:
        doppler_hz: the largest Doppler shift of any client; 0 where channels do not change within a message.
        max_pieces: pieces after which a message that is not through is given up.
        refresh: whether the rate follows the channel of the message's beginning, or of each piece, before which the
            server then also asks for what was lost.
    """

    doppler_hz: float = 0.0
    max_pieces: int = 256
    refresh: Refresh = "slot"

    def uploads(
        self,
        bits: float,
        seconds_per_bit: NDArray[np.float64],
        longest_s: NDArray[np.float64],
        rates: PieceRates,
        repeats: bool,
    ) -> PiecewiseUpload:
        """The uploads of n messages.

        Args:
            bits: of each message.
            seconds_per_bit: (n,) at the rate of its beginning.
            longest_s: (n,) seconds that a piece may last.
            rates: of the pieces.
            repeats: whether what is lost in a piece is sent again.
        """
        needed = np.ceil(bits * seconds_per_bit / longest_s * (1.0 - 1e-12))
        # At one rate and without repetition it is known beforehand how many pieces there are: they are of equal length.
        even = np.logical_and(not repeats, needed <= self.max_pieces)
        piece_s = np.where(even, bits * seconds_per_bit / needed, longest_s)
        pieces = int(min(needed.max(), self.max_pieces))
        while True:
            uploads = upload_over_pieces(bits, piece_s, *rates(piece_s[:, None] * np.arange(float(pieces))), repeats)
            if not repeats or uploads.ended.all() or pieces == self.max_pieces:
                return uploads
            pieces = min(2 * pieces, self.max_pieces)
