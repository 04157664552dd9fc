"""Spatial-division multiple access: clients that send in the same band at once, told apart by an array of antennas."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.channel_source import Channels
from wirelessfl.radio.course import Course, Stretch
from wirelessfl.radio.digital_links import DigitalLinks, Link
from wirelessfl.radio.links import SlotLinks
from wirelessfl.radio.propagation import Moment
from wirelessfl.radio.rates import AdaptiveRate, shannon_rate, snr_of_power
from wirelessfl.radio.reception.linear import StreamCombiner, stream_sinr
from wirelessfl.radio.reception.sinr_margin import SinrMargin, margin_rank
from wirelessfl.radio.water_filling import water_filling


@dataclass(frozen=True, eq=False)
class GroupLinks:
    """The links of n clients that begin to send together.

    Attributes:
        links: of each.
        channels: at their beginning, (n, 1, F, A).
        sinr: (n,) behind the combiner, of several groups of subcarriers that of a flat channel of the same rate; NaN
            for those that stay silent.
    """

    links: list[Link]
    channels: SlotLinks
    sinr: NDArray[np.float64]


@dataclass(frozen=True)
class SpatialMultiplexing:
    """Groups of clients that share a band, and a receiver whose combiner is that of the group's beginning.

    Attributes:
        links: network, rate, band, power, coding and deep-fade threshold.
        combiner: the linear receiver, which takes the estimates ĥ for the channels.
        streams: clients of a group at most.
        group_wait_s: how long a group waits for further clients from its first on; None: until it is full.
    """

    links: DigitalLinks
    combiner: StreamCombiner
    streams: int
    group_wait_s: float | None = None

    def __post_init__(self) -> None:
        precondition(self.streams >= 1, f"streams must be at least 1, not {self.streams}")
        precondition(
            self.group_wait_s is None or 0 <= self.group_wait_s < np.inf,
            f"group_wait_s must be finite and not negative, not {self.group_wait_s}",
        )

    def draw(self, clients: NDArray[np.int64], moment: Moment, share: float) -> GroupLinks:
        """The links of a group.

        In a deep fade a client stays silent. Of those whose SINR does not carry the rate at which it would send at
        least, the one with the lowest rate stays silent too, and the combiner is made for the others anew. Pilots are
        sent by all of them, one after the other.

        Args:
            clients: (n,) of the group, n >= 1.
            moment: when they begin to send.
            share: the part B_i/B of the band that the group has.
        """
        links, count = self.links, len(clients)
        found = links.network.clients.channels(clients, moment, share=share)
        margin = self._margin(found, clients, moment, share)
        at, carried, sinr = np.zeros(count), np.zeros(count), np.full(count, np.nan)
        sending = np.flatnonzero(~self._faded(found))
        while len(sending):
            believed, true = self._sinr(found, sending, share, margin)
            expected = self._rate(believed, share)
            sent_at = links.rate.sent_at(expected)
            if sent_at.all():
                at[sending], carried[sending], sinr[sending] = sent_at, self._rate(true, share), _as_flat(true)
                break
            sending = np.delete(sending, expected.argmin())
        per_bit = 1.0 / np.where(at > 0, at, links.rate.least_bps)
        columns = (per_bit.tolist(), (at > 0).tolist(), ((at > 0) & (at <= carried)).tolist())
        pilot_s = links.pilot_s(share)  # one client after the other
        of_all = [
            Link(*one, wait_s=(count - 1) * pilot_s, pilot_s=pilot_s, course=_in_turn(turn, count, pilot_s))
            for turn, one in enumerate(zip(*columns, strict=True))
        ]
        return GroupLinks(of_all, links.network.as_links(clients, found), sinr)

    def _faded(self, found: Channels) -> NDArray[np.bool_]:
        # (n,) whether the mean of |ĥ|² over antennas and groups of subcarriers is below the threshold times its mean
        known = (np.abs(found.estimate[:, 0]) ** 2).mean(axis=(1, 2))
        return np.asarray(known < self.links.fade_threshold * found.mean_estimate_power)

    def _margin(self, found: Channels, clients: NDArray[np.int64], moment: Moment, share: float) -> SinrMargin | None:
        # What is known of channels that are known imperfectly; None where estimates are taken as exact
        rate, source, streams = self.links.rate, self.links.network.clients, self.links.network.streams
        if not isinstance(rate, AdaptiveRate) or rate.outage is None:
            return None
        if not source.impairments.error_std(found.path_gain, share).any():
            return None
        assert found.channel.shape[2] == 1, "the scenario was checked: over several groups channels are known exactly"
        mean, variance = source.channels_given_estimates(clients, moment, found, share)

        def draw(rows: NDArray[np.int64], numbers: int) -> NDArray[np.complex128]:
            return streams.nodes("sinr_margin", moment.round_index, clients[rows]).complex_normal(numbers)

        return SinrMargin(mean[:, 0, 0], variance, draw, *margin_rank(rate.outage))

    def _sinr(
        self, found: Channels, sending: NDArray[np.int64], share: float, margin: SinrMargin | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # SINR (k, F) of those that send: what they count on, and of the channels
        snr = float(snr_of_power(self.links.snr, np.ones(1), share)[0])
        estimate, channel = (np.moveaxis(h[sending, 0], 0, -1) for h in (found.estimate, found.channel))
        weights = self.combiner.weights(estimate, snr)
        believed, true = (stream_sinr(weights, h, snr).T for h in (estimate, channel))
        if margin is not None:
            believed = margin.outage_sinr(sending, weights[0], snr)[:, None]
        if not self.links.fills:
            return believed, true
        shares = water_filling(believed)  # behind zero forcing the power of the others does not matter
        return believed * shares, true * shares

    def _rate(self, sinr: NDArray[np.float64], share: float) -> NDArray[np.float64]:
        # (k,) bit/s over all groups of subcarriers
        band = share * self.links.bandwidth_hz
        if sinr.shape[1] > 1:
            return np.asarray(shannon_rate(band, sinr).mean(axis=1))
        return self.links.throughput(band, sinr[:, 0])


def _in_turn(turn: int, count: int, pilot_s: float) -> Course | None:
    # The pilots of a group, and data behind all of them
    if pilot_s == 0:
        return None
    before, after = Stretch("nothing", turn * pilot_s), Stretch("nothing", (count - 1 - turn) * pilot_s)
    return before, Stretch("pilots", pilot_s), after, Stretch("data", 0.0, 1.0)


def _as_flat(sinr: NDArray[np.float64]) -> NDArray[np.float64]:
    # (k,) the SINR of a flat channel with the rate of one whose groups have (k, F)
    return np.asarray(np.expm1(np.log1p(sinr).mean(axis=1)))
