"""Hybrid ARQ with Chase combining: a message that is lost is sent again, and the receiver adds up what it has heard."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.channel_source import ChannelSource
from wirelessfl.radio.course import Course, Stretch
from wirelessfl.radio.propagation import Moment
from wirelessfl.streams import Streams


@dataclass(frozen=True)
class Harq:
    """Chase combining: after n transmissions of one message the SNR is γ_1 + ... + γ_n.

    Attributes:
        most: transmissions of a message, the first included.
        feedback_s: seconds from the end of a transmission that is lost to the beginning of the next.
        independent: whether each further transmission has a new draw of the fading; else the channel of the
            first: the block of fading outlasts the round.
    """

    most: int
    feedback_s: float = 0.0
    independent: bool = False

    def __post_init__(self) -> None:
        precondition(self.most >= 1, f"most must be at least 1, not {self.most}")
        precondition(
            0 <= self.feedback_s < np.inf, f"feedback_s must be finite and not negative, not {self.feedback_s}"
        )

    def course(self, count: int, pilot_s: float) -> Course:
        """So many transmissions, each behind pilots of its own, with feedback between them."""
        one = (Stretch("pilots", pilot_s), Stretch("data", 0.0, 1.0 / count))
        return (*((*one, Stretch("nothing", self.feedback_s)) * (count - 1)), *one)

    def powers(
        self,
        first: NDArray[np.float64],
        source: ChannelSource,
        streams: Streams,
        clients: NDArray[np.int64],
        moment: Moment,
    ) -> NDArray[np.float64]:
        """(n, most) |h|² of each transmission of the message at a moment, the first as given (n,)."""
        powers = np.repeat(first[:, None], self.most, axis=1)
        if not self.independent:
            return powers
        large = source.large_scale.gains(clients, moment)
        message = f"/{moment.transmission}" if moment.transmission else ""
        for again in range(1, self.most):
            stream = streams.nodes(f"harq/{again}{message}", moment.round_index, clients)
            gains = source.fading.law_of(False).draw(stream)
            if large.line_of_sight.any():
                gains = np.where(large.line_of_sight, source.fading.law_of(True).draw(stream), gains)
            powers[:, again] = large.path_gain * np.abs(gains) ** 2
        return powers

    def transmissions(
        self,
        at: NDArray[np.float64],
        snr: NDArray[np.float64],
        throughput: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """How often n messages are sent, and whether they arrive: as soon as the sum of SNRs carries their rate.

        Args:
            at: (n,) bit/s of each.
            snr: (n, most) γ of each transmission.
            throughput: bit/s that a channel carries.
        """
        decoded = at[:, None] <= throughput(np.cumsum(snr, axis=1))
        arrived = np.asarray(decoded.any(axis=1))
        return np.where(arrived, decoded.argmax(axis=1) + 1, self.most), arrived
