"""One cell: medium, network and learner, and the steps of server and clients that every uplink has."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.learning.faults import Faults
from wirelessfl.learning.timing import BITS_PER_PARAMETER, Timing
from wirelessfl.radio.network import Network
from wirelessfl.simulation.client import TrainingTimes
from wirelessfl.simulation.clock import TICKS_PER_SECOND, all_ticks
from wirelessfl.simulation.learner import Training
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.state import SimulationState
from wirelessfl.simulation.window import WaitFor
from wirelessfl.trace import SERVER_NODE, EventKind


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
    """

    medium: Medium
    network: Network
    timing: Timing
    wait_for: WaitFor
    faults: Faults
    learner: Training
    state: SimulationState

    def broadcast(self) -> simpy.Event:
        """Broadcast of the model to all clients; the event fires when it has arrived."""
        self.medium.note(EventKind.BROADCAST, SERVER_NODE, BITS_PER_PARAMETER * self.learner.broadcast_dimension)
        return self.medium.occupy(self.broadcast_s)

    @property
    def broadcast_s(self) -> float:
        """Duration of a broadcast in seconds."""
        return self.timing.downlink_time(self.learner.broadcast_dimension)

    def training_times(self, this: Round, active: NDArray[np.int64]) -> TrainingTimes:
        """Durations of local training of the clients at the positions ``active``; written to the round."""
        streams, clients = self.network.streams, this.clients[active]
        samples = self.learner.samples_processed(self.network.registry.samples[clients])
        compute_time = self.timing.compute_time(samples, clients, this.index, streams)
        crash_after = self.faults.crash_after(clients, this.index, streams)
        this.compute_time[active] = compute_time
        return TrainingTimes(
            positions=active,
            nodes=clients,
            compute_ticks=all_ticks(compute_time),
            ends=all_ticks(np.minimum(crash_after, compute_time)),
            crashes=crash_after < compute_time,
            worked=this.worked,
        )

    def train(
        self, this: Round, positions: NDArray[np.int64], start: NDArray[np.float32] | None = None
    ) -> Iterator[CohortBlock]:
        """The local training of the clients at ``positions``, computed now, in fixed blocks.

        Args:
            this: the round.
            positions: (n,) among the clients selected.
            start: (d,) the model that they start from; None for the global model.
        """
        begin = self.state.parameters if start is None else start
        return self.learner.train(begin, self.state, this.clients[positions], this.index)

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
