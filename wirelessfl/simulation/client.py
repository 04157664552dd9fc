"""The clients' part in one round. A process exists only while its clients take part."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.messages import Crashed, Faded, Outage, Ready, Reports, SlotGrant
from wirelessfl.trace import EventKind

if TYPE_CHECKING:
    from wirelessfl.simulation.errands import Errand
    from wirelessfl.simulation.uplinks.round_links import RoundLinks
    from wirelessfl.simulation.uplinks.secure_aggregation.post import Post
    from wirelessfl.simulation.uplinks.secure_aggregation.run import ProtocolRun

Process = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class Job:
    """What a round has in store for a client.

    Attributes:
        position: place among the clients selected in this round.
        node: the client's number.
        compute_ticks: how long local training takes.
        crash_ticks: when training crashes, counted from its start, or None.
        model_arrives: fires when the broadcast is over.
        worked: (n,) over the clients selected, in which it notes the ticks for which it trains.
    """

    position: int
    node: int
    compute_ticks: int
    crash_ticks: int | None
    model_arrives: simpy.Event
    worked: NDArray[np.int64]

    @property
    def training_ticks(self) -> int:
        """How long it trains: to the end, or until it crashes."""
        return self.compute_ticks if self.crash_ticks is None else self.crash_ticks


@dataclass(frozen=True, eq=False)
class Shift:
    """What a round has in store for n clients.

    Attributes:
        positions: (n,) places among the clients selected in this round, ascending.
        nodes: (n,) the clients' numbers.
        compute_ticks: (n,) how long local training takes.
        ends: (n,) when it is over or crashes, in ticks from its start.
        crashes: (n,) whether it crashes.
        worked: over all clients selected, where the ticks are noted for which each trains.
    """

    positions: NDArray[np.int64]
    nodes: NDArray[np.int64]
    compute_ticks: NDArray[np.int64]
    ends: NDArray[np.int64]
    crashes: NDArray[np.bool_]
    worked: NDArray[np.int64]

    def in_time(self, latest: int | None) -> NDArray[np.bool_]:
        """(n,) who will be ready after so many ticks at most, unless it crashes; None is no limit."""
        return np.full(len(self.nodes), True) if latest is None else self.compute_ticks <= latest

    def enough(self, needed: int, latest: int | None) -> int:
        """Ticks after which so many are ready, or all who could be in time have come to an end."""
        awaited = self.in_time(latest)
        ready = np.sort(self.ends[awaited & ~self.crashes])
        return int(ready[needed - 1]) if 0 < needed <= len(ready) else int(self.ends[awaited].max(initial=0))

    def over(self, worked: int) -> NDArray[np.int64]:
        """Which of the n clients have come to the end after so many ticks, in the order in which they did."""
        order = np.argsort(self.ends, kind="stable")
        return order[self.ends[order] <= worked]

    def jobs(self, model_arrives: simpy.Event) -> list[Job]:
        """The same, client by client."""
        crash_ticks = [end if crash else None for end, crash in zip(self.ends.tolist(), self.crashes, strict=True)]
        columns = (self.positions.tolist(), self.nodes.tolist(), self.compute_ticks.tolist(), crash_ticks)
        return [Job(*row, model_arrives, self.worked) for row in zip(*columns, strict=True)]


def train(medium: Medium, job: Job) -> Generator[simpy.Event, Any, bool]:
    """Wait for the model and train.

    Training takes simulated time only: its numbers are computed with those of the whole cohort once it shows who is
    really heard. The server interrupts clients that are still at work when it stops waiting.

    Returns:
        Whether the client came through; a crash has been reported.

    Raises:
        simpy.Interrupt: the server has stopped waiting.
    """
    yield job.model_arrives
    begin = medium.now
    try:
        yield medium.env.timeout(job.training_ticks)
    finally:
        job.worked[job.position] = medium.now - begin
    if job.crash_ticks is not None:
        medium.note(EventKind.CRASH, job.node)
        medium.send(Crashed(job.position))
        return False
    medium.note(EventKind.COMPUTE_END, job.node)
    return True


def slot_training(
    medium: Medium, shift: Shift, enough: int, model_arrives: simpy.Event
) -> Generator[simpy.Event, Any, NDArray[np.int64]]:
    """Wait for the model, train and report.

    One process plays all clients of a slot, as nothing passes between them. It sleeps until enough have come to the
    end, which nobody asks before, and then logs what each has done at the time at which it did it.

    Args:
        medium: carries what the clients say.
        shift: the clients' round.
        enough: ticks for which they train; who takes longer is late.
        model_arrives: fires when the broadcast is over.

    Returns:
        Which of the n clients are ready, in the order in which they became so.
    """
    yield model_arrives
    begin = medium.now
    yield medium.env.timeout(enough)
    over = shift.over(enough)
    crashes, ends = shift.crashes[over], shift.ends[over].tolist()
    kinds = np.where(crashes, EventKind.CRASH, EventKind.COMPUTE_END).astype(np.uint8)
    medium.note_past([begin + end for end in ends], kinds, shift.nodes[over])
    medium.note(EventKind.LATE, shift.nodes[shift.ends > enough])
    shift.worked[shift.positions] = np.minimum(shift.ends, enough)
    ready = over[~crashes]
    medium.send(Reports(ready=shift.positions[ready], crashed=shift.positions[over[crashes]]))
    return ready


def slot_transmission(medium: Medium, shift: Shift, training: simpy.Process, slot_opens: simpy.Event) -> Process:
    """Those who are ready transmit in the slot that the server opens for all.

    Args:
        medium: carries what the clients say.
        shift: the clients' round.
        training: ends with who is ready.
        slot_opens: fires with the server's ``SlotGrant``.
    """
    ready: NDArray[np.int64] = yield training
    grant: SlotGrant = yield slot_opens
    silent = grant.silent[shift.positions[ready]]
    medium.note_each(np.where(silent, EventKind.DEEP_FADE, EventKind.TRANSMIT).astype(np.uint8), shift.nodes[ready])


def digital_client(
    medium: Medium, job: Job, links: RoundLinks, bits: int, air_time: AirTime, channel: simpy.Resource
) -> Process:
    """Train, and upload as soon as the channel is free.

    Args:
        medium: carries what the client says.
        job: the client's round.
        links: what the clients' channels carry.
        bits: size of the upload.
        air_time: notes when the client sent.
        channel: free for as many clients as may send at the same time, taken in the order in which they are ready.
    """
    try:
        if not (yield from train(medium, job)):
            return
        link = links.foreseen(job.position)
        if link is None or link.sends:
            with channel.request() as turn:
                yield turn
                link = links.at(job.position, medium.now)
                if link.sends:
                    medium.note(EventKind.TRANSMIT, job.node, bits)
                    yield from air_time.send(medium, job.position, link.ticks(bits), active=link.active)
    except simpy.Interrupt:
        medium.note(EventKind.LATE, job.node)
        return
    if link.delivers:
        medium.note(EventKind.ARRIVE, job.node, bits)
        medium.send(Ready(job.position))
    elif link.sends:
        medium.note(EventKind.OUTAGE, job.node)
        medium.send(Outage(job.position))
    else:
        medium.note(EventKind.DEEP_FADE, job.node)
        medium.send(Faded(job.position))


def asynchronous_client(medium: Medium, errand: Errand, since: int) -> Process:
    """Train and upload at the client's own pace; it signs with its number, for rounds come and go meanwhile.

    Args:
        medium: carries what the client says.
        errand: what it is about.
        since: ticks up to which everything has happened already.
    """
    # All timers are set at once, so that who sets out first comes first at one instant, also in a resumed run.
    ahead = [
        (medium.env.timeout(time - medium.now), kind, bits) for time, kind, bits in errand.agenda() if time > since
    ]
    for timer, kind, bits in ahead:
        yield timer
        medium.note(kind, errand.client, bits)
    medium.send(errand.news)


def protocol_client(medium: Medium, job: Job, post: Post, party: ProtocolRun) -> Process:
    """Train, then take part in secure aggregation: answer the server for as long as it asks.

    Args:
        medium: carries reports.
        job: the client's round.
        post: carries the messages of the protocol.
        party: says what the client says.
    """
    busy = True
    try:
        if not (yield from train(medium, job)) or not post.reaches_server(job.position):
            return
        letter = party.opening(job.position)
        if letter is None:
            medium.send(Ready(job.position))
        while letter is None or (yield from post.send(letter)):
            busy = False
            request = yield post.inbox(job.position).get()
            busy = True
            letter = party.answer(job.position, request)
    except simpy.Interrupt:
        if busy:
            medium.note(EventKind.LATE, job.node)
