"""The settings of secure aggregation that do not depend on its protocol."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.digital_links import DigitalLinks
from wirelessfl.secagg import HEADER_BITS, SumEncoding
from wirelessfl.simulation.round import Round
from wirelessfl.streams import Streams


@dataclass(frozen=True, kw_only=True)
class SecureUploads:
    """Links, encoding and losses of the clients' protocol messages.

    Attributes:
        links: what the clients' channels carry.
        encoding: how updates become elements of the ring.
        stage_timeout_s: how long the server waits for answers; None where it notices who is lost.
        vanish_probability: that a client vanishes while it sends its first, second, ... message of a round.
    """

    links: DigitalLinks
    encoding: SumEncoding
    stage_timeout_s: float | None
    vanish_probability: tuple[float, ...]

    @property
    def payload_bits(self) -> int:
        """Size of a masked input."""
        return HEADER_BITS + self.encoding.ring.bits * self.encoding.length

    def vanishing(self, this: Round, streams: Streams) -> NDArray[np.float64]:
        """(n, messages) share of each message of a round that a client sends before it vanishes; NaN where it stays."""
        probability = np.array(self.vanish_probability)
        drawn = streams.nodes("vanish", this.index, this.clients).uniform(2 * len(probability))
        decides, moment = np.split(drawn, 2, axis=1)
        return np.where(decides < probability, moment, np.nan)
