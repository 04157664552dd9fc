"""Groups of clients that send in the same band at once, formed in the order in which they become ready."""

import math
from collections.abc import Generator
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.radio import Link, Moment, SpatialMultiplexing
from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.cell import ClientTraining, train
from wirelessfl.simulation.medium import END_EVENT, Medium, Report, after_all_else, seconds, ticks
from wirelessfl.simulation.radio_records import LinkRecord
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks.digital.round_links import outcome_of, upload
from wirelessfl.trace import EventKind


class SpatialGroups:
    """The groups of one round.

    A group takes the clients that are ready in the order in which they became so. It begins where a band is free and it
    is full, nobody else can come, or its first client has waited for as long as groups do; a band is free again when
    the last client of its group has ended. What happens at one instant counts as a whole.
    """

    def __init__(
        self,
        medium: Medium,
        sharing: SpatialMultiplexing,
        this: Round,
        positions: NDArray[np.int64],
        share: float,
        bands: int,
    ) -> None:
        """The groups of the clients at ``positions``.

        Args:
            medium: where time passes.
            sharing: channels, and how the receiver tells the clients of a group apart.
            this: the round.
            positions: (n,) who may become ready.
            share: the part of the whole band that each band has.
            bands: in which groups send beside each other.
        """
        self._medium, self._sharing, self._this = medium, sharing, this
        self._share, self._free = share, bands
        self._coming = set(positions.tolist())
        self._queue: dict[int, tuple[int, simpy.Event]] = {}
        self._groups: dict[int, set[int]] = {}
        wait = sharing.group_wait_s
        self._wait_ticks = None if wait is None else ticks(wait)

    def turn(self, position: int) -> simpy.Event:
        """A client is ready; the event fires when its group begins, with its link."""
        self._coming.discard(position)
        event = self._medium.env.event()
        self._queue[position] = (self._medium.now, event)
        self._look()
        if self._wait_ticks:
            self._look(self._wait_ticks)
        return event

    def leave(self, position: int) -> None:
        """A client will not be ready any more, or has stopped waiting."""
        self._coming.discard(position)
        self._queue.pop(position, None)
        self._look()

    def ended(self, position: int) -> None:
        """A client of a group has ended."""
        group = self._groups.pop(position)
        group.discard(position)
        if not group:
            self._free += 1
            self._look()

    def _look(self, delay: int = 0) -> None:
        later = after_all_else(self._medium.env, delay)
        assert later.callbacks is not None, "it has not fired yet"
        later.callbacks.append(self._begin)

    def _begin(self, _: simpy.Event) -> None:
        # All groups that can begin now
        while self._free and self._queue and self._complete():
            group = sorted(list(self._queue)[: self._sharing.streams])
            turns = [self._queue.pop(position)[1] for position in group]
            self._free -= 1
            at_work = set(group)
            for position, event, link in zip(group, turns, self._links(np.array(group)), strict=True):
                self._groups[position] = at_work
                event.succeed(link)

    def _complete(self) -> bool:
        # Whether the next group need not wait for further clients
        if len(self._queue) >= self._sharing.streams or not self._coming:
            return True
        first, _ = next(iter(self._queue.values()))
        return self._wait_ticks is not None and self._medium.now - first >= self._wait_ticks

    def _links(self, group: NDArray[np.int64]) -> list[Link]:
        moment = Moment(self._this.index, seconds(self._medium.now))
        drawn = self._sharing.draw(self._this.clients[group], moment, self._share)
        self._this.links.append(LinkRecord(group, drawn.channels, sinr=drawn.sinr))
        return drawn.links


def spatial_client(
    medium: Medium,
    training: ClientTraining,
    groups: SpatialGroups,
    bits: int,
    air_time: AirTime,
    grant_ticks: int = 0,
) -> Generator[simpy.Event, Any, None]:
    """Train, and upload together with the clients of a group.

    Args:
        medium: carries what the client says.
        training: the client's round.
        groups: of the round.
        bits: size of the upload.
        air_time: notes when the client sent.
        grant_ticks: from the client's request for the band to its grant.
    """
    position = training.position
    try:
        if not (yield from train(medium, training)):
            groups.leave(position)
            return
        if grant_ticks:
            yield medium.env.timeout(grant_ticks)
        link: Link = yield groups.turn(position)
        yield from upload(medium, air_time, position, training.node, link, bits)
    except simpy.Interrupt:
        groups.leave(position)
        medium.note(EventKind.LATE, training.node)
        return
    groups.ended(position)
    outcome = outcome_of(link)
    medium.note(END_EVENT[outcome], training.node, bits if link.delivers else math.nan)
    medium.send(Report(position, outcome))
