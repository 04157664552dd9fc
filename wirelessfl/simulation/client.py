"""Local training of the clients in one round: its duration, and the process that waits for it."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.messages import Report
from wirelessfl.trace import EventKind, Status


@dataclass(frozen=True)
class ClientTraining:
    """Local training of one client in a round.

    Attributes:
        position: place among the clients selected in this round.
        node: the client's number.
        compute_ticks: how long local training takes.
        crash_ticks: when training crashes, counted from its start, or None.
        model_arrives: fires when the broadcast is over.
        worked: (n,) over the clients selected, ticks for which each has trained; this client's are written at its end.
    """

    position: int
    node: int
    compute_ticks: int
    crash_ticks: int | None
    model_arrives: simpy.Event
    worked: NDArray[np.int64]

    @property
    def ticks(self) -> int:
        """How long it trains: to the end, or until it crashes."""
        return self.compute_ticks if self.crash_ticks is None else self.crash_ticks


@dataclass(frozen=True, eq=False)
class TrainingTimes:
    """Durations of the local training of n clients in a round, in ticks.

    Attributes:
        positions: (n,) places among the clients selected in this round, ascending.
        nodes: (n,) the clients' numbers.
        compute_ticks: (n,) how long local training takes.
        ends: (n,) when it is over or crashes, in ticks from its start.
        crashes: (n,) whether it crashes.
        worked: over all clients selected, ticks for which each has trained; written at their end.
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

    def by_client(self, model_arrives: simpy.Event) -> list[ClientTraining]:
        """The training of each client."""
        crash_ticks = [end if crash else None for end, crash in zip(self.ends.tolist(), self.crashes, strict=True)]
        columns = (self.positions.tolist(), self.nodes.tolist(), self.compute_ticks.tolist(), crash_ticks)
        return [ClientTraining(*row, model_arrives, self.worked) for row in zip(*columns, strict=True)]


def train(medium: Medium, training: ClientTraining) -> Generator[simpy.Event, Any, bool]:
    """Reception of the model, and training.

    Training takes simulated time only: its numbers are computed with those of the whole cohort once it shows who is
    really heard. The server interrupts clients that are still at work when it stops waiting.

    Returns:
        Whether the client came through; a crash has been reported.

    Raises:
        simpy.Interrupt: the server has stopped waiting.
    """
    yield training.model_arrives
    begin = medium.now
    try:
        yield medium.env.timeout(training.ticks)
    finally:
        training.worked[training.position] = medium.now - begin
    if training.crash_ticks is not None:
        medium.note(EventKind.CRASH, training.node)
        medium.send(Report(training.position, Status.CRASHED))
        return False
    medium.note(EventKind.COMPUTE_END, training.node)
    return True
