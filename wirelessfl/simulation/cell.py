"""One cell: medium, network and learner, and the steps of server and clients that every uplink has."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.learning import BlockSum, CohortBlock
from wirelessfl.learning.cohort import SummedBlock
from wirelessfl.learning.faults import Faults
from wirelessfl.learning.timing import BITS_PER_PARAMETER, Timing
from wirelessfl.radio import Moment
from wirelessfl.radio.network import Network
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.medium import TICKS_PER_SECOND, Medium, Report, after_all_else, all_ticks, seconds, ticks
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.roles import Roles
from wirelessfl.simulation.state import SimulationState
from wirelessfl.simulation.window import WaitFor
from wirelessfl.trace import SERVER_NODE, EventKind, Role, Status


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
        """Duration of training in ticks: to the end, or until it crashes."""
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


def steps_within(planned: NDArray[np.int64], duration: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """(n,) local steps that are over by a limit, of ``planned`` ones that take ``duration`` together, all in ticks.

    All steps of a client take equally long. At least one is taken where there are any: who cannot finish that by the
    limit has nothing to send, and is late.
    """
    share = np.where(duration <= limit, 1.0, (limit - 1) / np.maximum(duration, 1))  # a tick for rounding
    done = np.floor(planned * share).astype(np.int64)
    return np.minimum(np.maximum(done, 1), planned)


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


@dataclass(frozen=True)
class Cell:
    """The parts of a simulation that an uplink uses.

    Attributes:
        medium: the air and the log.
        network: who is registered, and their channels.
        timing: how long things take.
        wait_for: when the server stops waiting for clients that train.
        faults: what goes wrong with clients.
        learner: trains the clients whose updates are needed.
        state: the global model, and what uplinks remember from round to round.
        roles: of clients that do not follow the protocol; None without any.
        model_sent: whether the selected clients have the model of the round already, of a query.
    """

    medium: Medium
    network: Network
    timing: Timing
    wait_for: WaitFor
    faults: Faults
    learner: Learner
    state: SimulationState
    roles: Roles | None = None
    model_sent: bool = False

    def reach(self, this: Round) -> None:
        """Duration of the broadcast that begins now, and the status of the clients that it does not reach."""
        if self.model_sent:
            this.broadcast_s = 0.0
            return
        dimension = self.learner.broadcast_dimension
        this.broadcast_s = self.timing.downlink_time(dimension)
        if (downlink := self.network.downlink) is None:
            return
        asked = this.with_status(Status.PARTICIPATED)
        moment = Moment(this.index, seconds(self.medium.now))
        sent = downlink.broadcast(this.clients[asked], moment)
        this.broadcast_s = BITS_PER_PARAMETER * dimension / sent.rate_bps
        this.status[asked[~sent.received]] = Status.NO_MODEL

    def broadcast(self, this: Round) -> simpy.Event:
        """Broadcast of the model to all clients; the event fires when it has arrived."""
        if self.model_sent:
            return self.medium.occupy(0.0)
        self.medium.note(EventKind.BROADCAST, SERVER_NODE, BITS_PER_PARAMETER * self.learner.broadcast_dimension)
        self.medium.note(EventKind.NO_MODEL, this.clients[this.with_status(Status.NO_MODEL)])
        return self.medium.occupy(this.broadcast_s)

    def restart_server(self) -> simpy.Event:
        """Restart of the server; the event fires at its return, after all that clients do at that instant."""
        self.medium.note(EventKind.SERVER_RESTART, SERVER_NODE)
        return after_all_else(self.medium.env, ticks(self.faults.downtime_s))

    def training_times(self, this: Round, active: NDArray[np.int64], airtime_s: float = 0.0) -> TrainingTimes:
        """Durations of local training of the clients at the positions ``active``; written to the round.

        With partial work a client that would miss the deadline stops after its last local step before that.

        Args:
            this: the round.
            active: (n,) positions among the clients selected.
            airtime_s: seconds of a slot that has to be over by the deadline.
        """
        streams, clients = self.network.streams, this.clients[active]
        samples = self.learner.samples_processed(self.network.registry.samples[clients])
        compute_time = self.timing.compute_time(samples, clients, this.index, streams)
        if self.roles is not None:
            compute_time = np.where(self.roles.have(clients, Role.FREE_RIDER), 0.0, compute_time)
        crash_after = self.faults.crash_after(clients, this.index, streams)
        this.compute_time[active] = compute_time
        if (limit := self.wait_for.work_ends_after(airtime_s)) is not None:
            planned = self.learner.planned_steps(clients)
            done = steps_within(planned, all_ticks(compute_time), limit)
            this.local_steps = np.zeros(len(this.clients), dtype=np.int64)
            this.local_steps[active] = done
            this.work_share[active] = done / np.maximum(planned, 1)
            compute_time = compute_time * this.work_share[active]
        return TrainingTimes(
            positions=active,
            nodes=clients,
            compute_ticks=all_ticks(compute_time),
            ends=all_ticks(np.minimum(crash_after, compute_time)),
            crashes=crash_after < compute_time,
            worked=this.worked,
        )

    def train(
        self,
        this: Round,
        positions: NDArray[np.int64],
        start: NDArray[np.float32] | None = None,
        round_index: int | None = None,
    ) -> Iterator[CohortBlock]:
        """What the clients at ``positions`` send, in fixed blocks: the outcome of local training, computed now.

        Args:
            this: the round.
            positions: (n,) among the clients selected.
            start: (d,) the model that they start from; None for the global model.
            round_index: the round in which they started; None for this one.
        """
        begin = self.state.parameters if start is None else start
        index, clients = this.index if round_index is None else round_index, this.clients[positions]
        if self.roles is None:
            return self.learner.train(begin, self.state, clients, index, this.steps_of(clients), this.drift)

        def honestly(some: NDArray[np.int64]) -> Iterator[CohortBlock]:
            return self.learner.train(begin, self.state, some, index, this.steps_of(some), this.drift)

        return self.roles.acted(clients, self.learner.upload_dimension, honestly)

    def train_for_sum(
        self, this: Round, positions: NDArray[np.int64], total: BlockSum
    ) -> Iterator[CohortBlock] | Iterator[SummedBlock]:
        """As ``train``, for a server that needs a sum alone, parts of which then come back from those who train."""
        if self.roles is not None or not self.learner.sums_blocks:
            return self.train(this, positions)
        clients = this.clients[positions]
        given = (self.state.parameters, self.state, clients, this.index, this.steps_of(clients))
        return self.learner.train_sums(*given, total)

    def charge_for_computing(self, this: Round) -> None:
        """Joules of training, recorded and taken from the batteries, also of clients that did not finish.

        Nothing of it depends on private data: cycles, speeds and delays are public or random.
        """
        if self.timing.switched_capacitance == 0.0:
            return
        worked = np.flatnonzero(this.worked)
        clients = this.clients[worked]
        samples = self.learner.samples_processed(self.network.registry.samples[clients])
        share = this.worked[worked] / TICKS_PER_SECOND / this.compute_time[worked]
        joules = self.timing.compute_energy(samples, clients, self.network.streams) * np.minimum(share, 1.0)
        this.compute_joules = np.full(len(this.clients), np.nan)
        this.compute_joules[worked] = joules
        this.energy = this.energy.plus(float(joules.sum()))
        self.drain(clients, joules)

    def drain(self, clients: NDArray[np.int64], joules: NDArray[np.float64]) -> None:
        """Removal of (n,) joules from the batteries of (n,) clients, where there are batteries."""
        if self.faults.battery_j is not None:
            self.state.battery_used_j[clients] += joules
