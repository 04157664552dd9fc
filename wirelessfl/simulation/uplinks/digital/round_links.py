"""The digital links of one round, each as it is when its client begins to transmit, and what is sent over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.radio import DigitalLinks, Link, Moment, UploadLinks
from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.cell import TrainingTimes
from wirelessfl.simulation.medium import LATEST_TICK, Medium, all_seconds, seconds, ticks
from wirelessfl.simulation.radio_records import LinkRecord, PilotRecord, UploadRecord
from wirelessfl.simulation.records import Energy, Round
from wirelessfl.trace import EventKind, Status


def draw_links(
    links: UploadLinks,
    this: Round,
    positions: NDArray[np.int64],
    share: float,
    moment: Moment,
    bits: float | None = None,
) -> list[Link]:
    """Links of the clients at ``positions``, as ``UploadLinks.draw``; their channels are written to the round."""
    drawn, channels = links.draw(this.clients[positions], moment, share, bits)
    if channels is not None:
        this.links.append(LinkRecord(positions, channels))
    return drawn


def outcome_of(link: Link) -> Status:
    """The outcome of a client that has trained and has this link."""
    if link.delivers:
        return Status.PARTICIPATED
    return Status.OUTAGE if link.sends else Status.DEEP_FADE


def upload(
    medium: Medium, air_time: AirTime, position: int, node: int, link: Link, bits: int
) -> Generator[simpy.Event, Any, None]:
    """Pilots and upload of a client that has a link, or its pilots alone where it then stays silent."""
    if link.sends:
        medium.note(EventKind.TRANSMIT, node, bits)
    if link.sends or link.pilot_s > 0:
        yield from air_time.send(medium, position, link, bits)


def energy_on_air(links: UploadLinks, air_time: AirTime, count: int, label: int | None = None) -> NDArray[np.float64]:
    """(count,) joules of what each client has sent, and of its pilots, under one label or under all."""
    pilots = links.pilot_joules(air_time.pilots_by_client(count, label)) if air_time.has_pilots else 0.0
    return links.joules(air_time.by_client(count, label)) + pilots


def record_uploads(links: UploadLinks, this: Round, air_time: AirTime, payload_bits: int) -> NDArray[np.float64]:
    """Record of size, time on the air and energy of the uploads of a round, and of pilots; returns (n,) joules."""
    count, senders = len(this.clients), air_time.senders()
    airtime, pilot_s = air_time.by_client(count)[senders], air_time.pilots_by_client(count)
    joules = np.zeros(count)
    joules[senders] = links.joules(airtime)
    # ‖x‖² in units of N0/2, as over the air: 2 p T/N0.
    energy = links.power_over_noise * airtime
    this.uploads = UploadRecord(senders, airtime + pilot_s[senders], energy, joules[senders], payload_bits)
    piloted = np.flatnonzero(pilot_s)
    if len(piloted):
        this.pilots = PilotRecord(piloted, links.pilot_joules(pilot_s[piloted]))
        joules[piloted] += this.pilots.joules
    this.energy = Energy().plus(float(joules.sum()))
    return joules


@dataclass(frozen=True, eq=False)
class Uploads:
    """The uploads of a round in which each client begins as soon as it has trained.

    Attributes:
        positions: (n,) of the clients that come through training by the deadline, in the order in which they begin.
        begins: (n,) when, in ticks from the arrival of the model, ascending.
        model_arrives: when the model arrives, in ticks.
        needed: so many arrivals end the round.
        bits: size of an upload.
    """

    positions: NDArray[np.int64]
    begins: NDArray[np.int64]
    model_arrives: int
    needed: int
    bits: int

    @classmethod
    def after(
        cls, times: TrainingTimes, model_arrives: int, latest: int | None, needed: int, bits: int, grant: int = 0
    ) -> Uploads:
        """Uploads ``grant`` ticks after trainings that begin at ``model_arrives`` ticks and end in time."""
        comes_through = np.flatnonzero(~times.crashes & times.in_time(None if latest is None else latest - grant))
        in_order = comes_through[np.argsort(times.ends[comes_through], kind="stable")]
        return cls(times.positions[in_order], times.ends[in_order] + grant, model_arrives, needed, bits)


class RoundLinks:
    """The links of the clients of a round.

    Where a channel stays as it is through a round all links are drawn at once; where it does not, each is that of the
    instant at which its client begins to transmit, anew for each transmission. Of those that are sure to begin many are
    drawn at once.
    """

    def __init__(
        self,
        links: UploadLinks,
        this: Round,
        positions: NDArray[np.int64],
        share: float | None = None,
        bits: int | None = None,
        uploads: Uploads | None = None,
    ) -> None:
        """The links of the clients at ``positions``.

        Args:
            links: what channels carry.
            this: the round.
            positions: (n,) who may send.
            share: the part B_i/B of the band that each has; by default they divide it among themselves.
            bits: of every message; None where messages differ, and are named when they are sent.
            uploads: what is known of the first transmissions; None where nothing is.
        """
        self._links = links
        self._this = this
        self._share = 1.0 / max(1, len(positions)) if share is None else share
        self._bits = bits
        self._uploads = uploads
        self._drawn = 0
        self._arrivals: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._settled: dict[int, Link] | None = None
        self._latest: dict[int, tuple[int, int, float | None, Link]] = {}
        hops = isinstance(links, DigitalLinks) and links.harq is not None and links.harq.independent
        self._messages: Counter[int] | None = Counter() if hops and bits is None else None
        if not links.vary and not (links.ages and bits is None):
            drawn = draw_links(links, this, positions, self._share, this.moment, bits)
            self._settled = dict(zip(positions.tolist(), drawn, strict=True))

    def foreseen(self, position: int) -> Link | None:
        """The link of a client before it transmits; None where that is not known yet."""
        return None if self._settled is None else self._settled[position]

    def at(self, position: int, now: int, bits: int | None = None) -> Link:
        """The link of a client that begins to transmit at ``now`` ticks; asked twice at one instant, the same.

        Of messages that differ and are sent again over new channels (HARQ) each is asked for once.

        Args:
            position: the client.
            now: in ticks.
            bits: of the message; None asks for the link at that instant alone, or for the message of the round.
        """
        if self._settled is not None:
            return self._settled[position] if self._messages is None or bits is None else self._next(position, bits)
        if self._uploads is not None and position not in self._latest:
            self._draw_ahead(self._uploads, now)
        begun, bits = 0, self._bits if bits is None else bits
        if position in self._latest:
            last, begun, known, link = self._latest[position]
            if last == now and bits in (None, known):
                return link
            begun += last != now
        moment = Moment(self._this.index, seconds(now), begun)
        (link,) = draw_links(self._links, self._this, np.array([position]), self._share, moment, bits)
        self._latest[position] = (now, begun, bits, link)
        return link

    def _next(self, position: int, bits: int) -> Link:
        # The link of a client's next message, whose retransmissions have channels of their own
        assert self._messages is not None and isinstance(self._links, DigitalLinks), "they are counted"
        earlier, client = self._messages[position], self._this.clients[[position]]
        self._messages[position] += 1
        (link,), _ = self._links.draw(client, self._this.moment, self._share, bits, earlier)
        return link

    def _draw_ahead(self, uploads: Uploads, now: int) -> None:
        """Links of the clients that begin now, and of the next ones that begin before the round can be over.

        Who has not begun yet does not arrive before it begins. A client is sure to begin where fewer than are needed
        can have arrived by then, even if all who begin before it arrived at once.
        """
        positions, begins = uploads.positions[self._drawn :], uploads.begins[self._drawn :]
        at_most = np.searchsorted(self._arrivals, begins) + np.arange(len(begins))
        sure = int(np.count_nonzero((at_most < uploads.needed) | (begins <= now - uploads.model_arrives)))
        positions, begins = positions[:sure], begins[:sure]
        starts = [uploads.model_arrives + begin for begin in begins.tolist()]
        moment = Moment(self._this.index, all_seconds(starts))
        drawn = draw_links(self._links, self._this, positions, self._share, moment, uploads.bits)
        arrivals = []
        for position, begin, start, link in zip(positions.tolist(), begins.tolist(), starts, drawn, strict=True):
            self._latest[position] = (start, 0, uploads.bits, link)
            if link.delivers:
                arrivals.append(min(begin + ticks(link.duration(uploads.bits)), LATEST_TICK))
        self._arrivals = np.sort(np.concatenate([self._arrivals, np.array(arrivals, dtype=np.int64)]))
        self._drawn += sure
