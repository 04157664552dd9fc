"""Digital links: one orthogonal band a client, and the rate of its channel."""

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.channel_source import Channels
from wirelessfl.radio.course import Course, Stretch, What, course_of, sent_until
from wirelessfl.radio.csi import outage_power
from wirelessfl.radio.harq import Harq
from wirelessfl.radio.links import SlotLinks
from wirelessfl.radio.mcs import ModulationAndCoding
from wirelessfl.radio.network import Network
from wirelessfl.radio.propagation import Moment
from wirelessfl.radio.rates import (
    AdaptiveRate,
    FixedRate,
    MessageDivision,
    ShortPackets,
    link_snr,
    shannon_rate,
    snr_of_power,
)
from wirelessfl.radio.shared_band import RatesAtShare
from wirelessfl.radio.slot_schedule import AT_ONCE, Instants, longest_piece
from wirelessfl.radio.water_filling import water_filling


@dataclass(frozen=True)
class Link:
    """One client's digital link for one message.

    Attributes:
        seconds_per_bit: duration of a bit; of a message over several pieces, the mean.
        sends: whether the client sends at all; not in a fade that it knows of.
        delivers: whether what it sends gets through; if it sends and that does not, the link is in outage.
        active: the part of the time after ``wait_s`` in which the client sends; it pauses in the rest.
        wait_s: seconds of the message's duration, whatever its length, in which the client waits for feedback, or for
            others who send pilots.
        pilot_s: seconds of it in which the client sends pilots, also where nothing follows them.
        course: what happens when in it; None for pilots, data, and waiting at the end.
    """

    seconds_per_bit: float
    sends: bool = True
    delivers: bool = True
    active: float = 1.0
    wait_s: float = 0.0
    pilot_s: float = 0.0
    course: Course | None = None

    def duration(self, bits: float) -> float:
        """Seconds of a message, or of the pilots where nothing follows them."""
        return self._data_s(bits) + self.wait_s + self.pilot_s

    def on_air(self, bits: float) -> float:
        """The part of a message's duration in which the client sends it."""
        if self.wait_s == self.pilot_s == 0:
            return self.active
        return self.active * self._data_s(bits) / self.duration(bits)

    def piloting(self, bits: float) -> float:
        """The part of a message's duration in which the client sends pilots."""
        return self.pilot_s / self.duration(bits) if self.pilot_s else 0.0

    @property
    def is_even(self) -> bool:
        """Whether every part of a message is like the whole of it."""
        return self.course is None and self.wait_s == self.pilot_s == 0

    def cut_off(self, bits: float, elapsed_s: float) -> tuple[float, float]:
        """The parts of the first seconds of a message in which the client sends it, and in which it sends pilots."""
        if self.is_even:
            return self.active, 0.0
        simple = (Stretch("pilots", self.pilot_s), Stretch("data", 0.0, 1.0))
        data, pilots = sent_until(self.course or simple, self._data_s(bits), elapsed_s)
        return data / elapsed_s, pilots / elapsed_s

    def _data_s(self, bits: float) -> float:
        return bits * self.seconds_per_bit if self.sends else 0.0


@dataclass(frozen=True, eq=False)
class Sent:
    """The links of n clients: the fields of `Link`, an array each."""

    seconds_per_bit: NDArray[np.float64]
    sends: NDArray[np.bool_]
    delivers: NDArray[np.bool_]
    active: NDArray[np.float64]
    wait_s: NDArray[np.float64]
    pilot_s: NDArray[np.float64]
    course: NDArray[np.object_]


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
        coding: packets of finite length, each repeated until it arrives, or the schemes of a table; None takes
            Shannon's rate.
        division: how messages fall into pieces while the channel changes.
        harq: retransmission of lost messages within the round; None: none.
        fills: whether a client divides its power over groups of subcarriers by water-filling, and not evenly.
        pilot_watts: of pilots; NaN where watts are unknown.
        grant_s: seconds from a client's request to the grant of its band, before each message.
    """

    network: Network
    rate: AdaptiveRate | FixedRate
    bandwidth_hz: float
    snr: float
    transmit_watts: float
    fade_threshold: float = 0.0
    coding: ShortPackets | ModulationAndCoding | None = None
    division: MessageDivision = field(default_factory=MessageDivision)
    harq: Harq | None = None
    grant_s: float = 0.0
    fills: bool = False
    pilot_watts: float = math.nan

    @property
    def power_over_noise(self) -> float:
        """2p/N0 in Hz: by how much a second on the air adds to ‖x‖² in units of N0/2."""
        return self.snr * self.bandwidth_hz

    @property
    def vary(self) -> bool:
        """Whether a client's link depends on when in a round it transmits."""
        return self.network.clients.varies

    @property
    def ages(self) -> bool:
        """Whether a channel changes while a message is sent, so that its length matters."""
        return self.division.doppler_hz > 0

    def pilot_s(self, share: float) -> float:
        """Seconds of a client's pilots for one estimate in a part of the band; 0 where estimates cost nothing."""
        pilots = self.network.clients.impairments.pilots
        return 0.0 if pilots is None else pilots.symbols / (share * self.bandwidth_hz)

    def draw(
        self, clients: NDArray[np.int64], moment: Moment, share: float, bits: float | None = None, message: int = 0
    ) -> tuple[list[Link], SlotLinks | None]:
        """Links of n clients, and their channels at the beginning; None for nobody's.

        Args:
            clients: (n,) who is going to send.
            moment: when they begin to send.
            share: the part B_i/B of the band that each has.
            bits: of the message of each; None for links that are looked at, or of messages that fit into one piece.
            message: how many each has sent before in the round; retransmissions over new channels are drawn for each.
        """
        if not len(clients):
            return [], None
        found = self.network.clients.channels(clients, moment, share=share)
        slot = self.network.as_links(clients, found)
        (believed, carried) = (rate[:, 0] for rate in self._rates(clients, moment, found, AT_ONCE, share))
        at = self.rate.sent_at(believed)
        sends = (at > 0) & ~self._faded(found)
        per_bit, always, never = 1.0 / np.where(at > 0, at, self.rate.least_bps), np.ones(len(at)), np.zeros(len(at))
        pilots = np.full(len(at), self.pilot_s(share))
        simple = np.full(len(at), None, dtype=np.object_)
        sent = Sent(per_bit, sends, sends & (at <= carried), always, never, pilots, simple)
        if self.harq is not None:
            first, this = np.abs(found.narrowband[0][:, 0]) ** 2, replace(moment, transmission=message)
            self._again(self.harq, sent, at, first, clients, this, share)
        if bits is not None and self.ages:
            self._over_pieces(sent, clients, moment, share, bits)
        columns = (column.tolist() for column in vars(sent).values())
        return [Link(*link) for link in zip(*columns, strict=True)], slot

    def _rates(
        self, clients: NDArray[np.int64], moment: Moment, found: Channels, instants: Instants, share: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # Bit/s that clients count on (n, R), by their estimates, and that their channels carry (n, T)
        band = share * self.bandwidth_hz
        if found.channel.shape[2] > 1:  # known perfectly, and the same for the whole message
            snr = snr_of_power(self.snr, np.abs(found.channel[..., 0]) ** 2, share)
            over_groups = shannon_rate(band, snr * water_filling(snr) if self.fills else snr).mean(axis=2)
            return over_groups, over_groups
        power = self._believed_power(clients, moment, found, instants, share)
        believed = self.throughput(band, snr_of_power(self.snr, power, share))
        return believed, self.throughput(band, link_snr(self.snr, found.narrowband[0], share))

    def rates_at_share(self, clients: NDArray[np.int64], moment: Moment) -> RatesAtShare:
        """Bit/s at which n clients send that begin at a moment, as a function of the share B_i/B that each has."""
        found = self.network.clients.channels(clients, moment)

        def rates(share: float) -> NDArray[np.float64]:
            return self._rates(clients, moment, found, AT_ONCE, share)[0][:, 0]

        return rates

    def _faded(self, found: Channels) -> NDArray[np.bool_]:
        # (n,) whether |ĥ|², of several groups the mean, is below the threshold times its mean
        known = (np.abs(found.estimate[:, 0, :, 0]) ** 2).mean(axis=1)
        return np.asarray(known < self.fade_threshold * found.mean_estimate_power)

    def _believed_power(
        self, clients: NDArray[np.int64], moment: Moment, found: Channels, instants: Instants, share: float
    ) -> NDArray[np.float64]:
        # (n, R) the |h|² that clients count on, of which they know the estimate and the law: its outage quantile
        if not isinstance(self.rate, AdaptiveRate) or self.rate.outage is None:
            return np.abs(found.narrowband[1]) ** 2
        mean, variance = self.network.clients.channel_given_estimate(clients, moment, found, instants, share)
        return outage_power(mean, variance, self.rate.outage)

    def _again(
        self,
        harq: Harq,
        sent: Sent,
        at: NDArray[np.float64],
        power: NDArray[np.float64],
        clients: NDArray[np.int64],
        moment: Moment,
        share: float,
    ) -> None:
        # Further transmissions of messages that are lost; written to ``sent``
        powers = harq.powers(power, self.network.clients, self.network.streams, clients, moment)
        carried = partial(self.throughput, share * self.bandwidth_hz)
        count, arrived = harq.transmissions(at, snr_of_power(self.snr, powers, share), carried)
        for row in np.flatnonzero((count > 1) & sent.sends).tolist():
            sent.course[row] = harq.course(int(count[row]), float(sent.pilot_s[row]))
        sent.delivers[:] = sent.sends & arrived
        sent.seconds_per_bit[:] *= count
        sent.pilot_s[:] *= count
        sent.wait_s[:] = (count - 1) * harq.feedback_s

    def _over_pieces(self, sent: Sent, clients: NDArray[np.int64], moment: Moment, share: float, bits: float) -> None:
        # What becomes of messages during which the channel changes; written to ``sent``
        shift = self.network.clients.fading.shift_hz(clients, moment)
        piece_s = longest_piece(shift)
        repeats = isinstance(self.coding, ShortPackets) or self.division.refresh == "piece"
        longer = (bits * sent.seconds_per_bit + sent.pilot_s > piece_s) | (repeats & ~sent.delivers & (shift > 0))
        rows = np.flatnonzero(longer & sent.sends)
        if not len(rows):
            return
        own = replace(moment, time_s=np.broadcast_to(moment.time_s, (len(clients),))[rows])
        rates = partial(self._each_piece, clients[rows], own, share)
        uploads = self.division.uploads(bits, sent.seconds_per_bit[rows], piece_s[rows], rates, repeats)
        sent.seconds_per_bit[rows] = uploads.duration / bits
        sent.delivers[rows] = uploads.delivered
        sent.active[rows] = uploads.airtime / uploads.duration
        if self.division.refresh == "piece":
            for row, spent, sending in zip(rows.tolist(), uploads.spent_s, uploads.sending, strict=True):
                pilots = float(sent.pilot_s[row])
                parts: list[tuple[What, float]] = [
                    part
                    for seconds, sends in zip(spent[spent > 0].tolist(), sending[spent > 0].tolist(), strict=True)
                    for part in (("pilots", pilots), ("data" if sends else "nothing", seconds))
                ]
                sent.course[row] = course_of(parts, float(spent.sum()))
            sent.pilot_s[rows] *= uploads.pieces

    def _each_piece(
        self, clients: NDArray[np.int64], moment: Moment, share: float, begins: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # Bit/s in pieces that begin (n, T) seconds after the message: sent at, and what the channels carry
        instants = self._instants(begins, self.pilot_s(share))
        found = self.network.clients.channels(clients, moment, instants, share)
        believed, carried = self._rates(clients, moment, found, instants, share)
        faded = np.abs(found.narrowband[1]) ** 2 < self.fade_threshold * found.mean_estimate_power[:, None]
        return np.where(faded, 0.0, self.rate.sent_at(believed)), carried

    def _instants(self, begins: NDArray[np.float64], pilot_s: float) -> Instants:
        # Of pieces whose data begin (n, T) seconds after each other, behind pilots before the first or before each
        if self.division.refresh == "slot":
            return Instants(begins[:, :1], begins + pilot_s)
        estimates = begins + pilot_s * np.arange(begins.shape[1])
        return Instants(estimates, estimates + pilot_s)

    def throughput(self, bandwidth_hz: float, snr: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bit/s (n,) that channels of an SNR (n,) carry."""
        return shannon_rate(bandwidth_hz, snr) if self.coding is None else self.coding.throughput(bandwidth_hz, snr)

    def mean_rate(self, path_gain: float, share: float) -> float:
        """Bit/s on a link with |h|² = β, at least the minimum."""
        snr = snr_of_power(self.snr, np.array([path_gain]), share)
        return float(self.rate.sent_at(self.throughput(share * self.bandwidth_hz, snr))[0]) or self.rate.least_bps

    def joules(self, airtime: NDArray[np.float64]) -> NDArray[np.float64]:
        """Energy (n,) of seconds on the air, without pilots; NaN where watts are unknown."""
        return self.transmit_watts * airtime

    def pilot_joules(self, pilot_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Energy (n,) of seconds of pilots; NaN where watts are unknown."""
        return self.pilot_watts * pilot_s
