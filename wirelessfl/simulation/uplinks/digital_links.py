"""Digital links: a band of its own for every client, and what its channel carries in a round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import (
    AdaptiveRate,
    FixedRate,
    Links,
    ShortPackets,
    Upload,
    link_snr,
    outage_power,
    shannon_rate,
    snr_of_power,
)
from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.clock import ticks
from wirelessfl.simulation.network import Network
from wirelessfl.simulation.propagation import Moment
from wirelessfl.simulation.round import Round
from wirelessfl.trace import Status


@dataclass(frozen=True)
class Link:
    """One client's digital link in one round.

    Attributes:
        seconds_per_bit: airtime of a bit.
        sends: whether the client sends at all; not in a fade that it knows of.
        delivers: whether what it sends gets through; if it sends and that does not, the link is in outage.
    """

    seconds_per_bit: float
    sends: bool = True
    delivers: bool = True

    @property
    def outcome(self) -> Status:
        """What becomes of a client that has trained and has this link."""
        if self.delivers:
            return Status.PARTICIPATED
        return Status.OUTAGE if self.sends else Status.DEEP_FADE

    def ticks(self, bits: float) -> int:
        """Airtime of a message."""
        return ticks(bits * self.seconds_per_bit)


@dataclass(frozen=True)
class DigitalLinks:
    """Orthogonal bands of equal width for all clients of a round (RADIO.md, digital uplink).

    Attributes:
        network: draws the channels.
        rate: at what rate clients send.
        bandwidth_hz: B of all bands together.
        snr: SNR_i = 2p/(N0 B) of transmit power p.
        transmit_watts: p; NaN where watts are unknown.
        fade_threshold: g, a client with |ĥ|²/E|ĥ|² below it stays silent.
        packets: packets of finite length; None takes Shannon's rate.
    """

    network: Network
    rate: AdaptiveRate | FixedRate
    bandwidth_hz: float
    snr: float
    transmit_watts: float
    fade_threshold: float = 0.0
    packets: ShortPackets | None = None

    @property
    def vary(self) -> bool:
        """Whether a client's link depends on when in a round it transmits."""
        return self.network.clients.varies

    def draw(
        self, this: Round, positions: NDArray[np.int64], share: float | None = None, moment: Moment | None = None
    ) -> list[Link]:
        """The links in this round of the clients at ``positions``; written to the round.

        Args:
            this: the round.
            positions: (n,) who is going to send.
            share: the part B_i/B of the band that each has; by default they divide it among themselves.
            moment: when they begin to send; by default when the round begins.
        """
        if not len(positions):
            return []
        moment = this.moment if moment is None else moment
        links = self.network.links(this.clients[positions], moment)
        this.note_links(positions, links)
        believed = self._believed_power(this.clients[positions], moment, links)
        one_bit = self._one_bit(links, believed, 1.0 / len(positions) if share is None else share)
        silent = links.in_deep_fade(self.fade_threshold)
        sends, delivers = (one_bit.attempts > 0) & ~silent, one_bit.delivered & ~silent
        airtime = np.where(one_bit.attempts > 0, one_bit.airtime, self._longest_bit)
        return [Link(*link) for link in zip(airtime.tolist(), sends.tolist(), delivers.tolist(), strict=True)]

    @property
    def _longest_bit(self) -> float:
        """Airtime of a bit at the least rate."""
        return 1.0 / (self.rate.min_rate_bps if isinstance(self.rate, AdaptiveRate) else self.rate.rate_bps)

    def _believed_power(self, clients: NDArray[np.int64], moment: Moment, links: Links) -> NDArray[np.float64]:
        """(n,) the |h|² that clients count on, of which they know the estimate and the law: its outage quantile."""
        if not isinstance(self.rate, AdaptiveRate) or self.rate.outage is None:
            return np.abs(links.estimate) ** 2
        mean, variance = self.network.channel_given_estimate(clients, moment, links)
        return outage_power(mean, variance, self.rate.outage)

    def _one_bit(self, links: Links, believed_power: NDArray[np.float64], share: float) -> Upload:
        """The upload of a single bit in the band share B_i/B: the block of fading outlasts a transmission.

        An adaptive rate follows the power that is counted on; where it exceeds what the channel carries the upload is
        lost.
        """
        band = share * self.bandwidth_hz
        believed = self._throughput(band, snr_of_power(self.snr, believed_power, share))[:, None]
        carried = self._throughput(band, link_snr(self.snr, links.channel, share))[:, None]
        match self.rate:
            case AdaptiveRate():
                return self.rate.upload(1.0, believed, believed > carried)
            case FixedRate():
                return self.rate.upload(1.0, carried, np.zeros_like(carried, dtype=np.bool_))

    def _throughput(self, bandwidth_hz: float, snr: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) bit/s that channels carry."""
        return shannon_rate(bandwidth_hz, snr) if self.packets is None else self.packets.throughput(bandwidth_hz, snr)

    def joules(self, airtime: NDArray[np.float64]) -> NDArray[np.float64]:
        """What (n,) seconds on the air cost; NaN where watts are unknown."""
        return self.transmit_watts * airtime

    def note_energy(self, this: Round, air_time: AirTime) -> NDArray[np.float64]:
        """Write how long the clients of a round were on the air, and what that cost; returns (n,) joules."""
        senders = air_time.senders()
        airtime = air_time.by_client(len(this.clients))[senders]
        joules = np.zeros(len(this.clients))
        joules[senders] = self.joules(airtime)
        this.put("tx_time", senders, airtime)
        # ‖x‖² in units of N0/2, as over the air: 2 p T/N0.
        this.put("tx_energy", senders, self.snr * self.bandwidth_hz * airtime)
        this.put("tx_energy_j", senders, joules[senders])
        this.put_energy(float(joules.sum()))
        return joules
