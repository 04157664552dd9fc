"""A run of a simulation from its state, round by round."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import simpy

from wirelessfl.learning.cohort import one_torch_thread
from wirelessfl.memory import restore_memories
from wirelessfl.privacy import ENDED_BY_ITS_OUTPUTS, Ledger
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.recorder import FinishedRound
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.server import Deployment, ParameterServer
from wirelessfl.simulation.state import SimulationState
from wirelessfl.trace import EventBatch


@dataclass(frozen=True)
class StopRules:
    """Limits that end a run; the first reached counts.

    None of them reads private data, so that the number of rounds tells nothing beyond what is accounted for: accuracy
    is a function of the released model and of test data that belong to no client, and the others are public; simulated
    time tells who was selected, so that with it a secret selection amplifies nothing (``assembly.amplification``).

    Attributes:
        rounds: M.
        accuracy: test accuracy, or None.
        epsilon: accounted ε, or None.
        sim_time_s: simulated seconds, or None.
        energy_j: joules by public bounds, or None.
        diverged: whether a run ends once its global model or the test loss of it is not finite. Updates that are not
            finite are the clients' private data and end nothing.
    """

    rounds: int
    accuracy: float | None = None
    epsilon: float | None = None
    sim_time_s: float | None = None
    energy_j: float | None = None
    diverged: bool = True

    def reached_publicly(self, this: Round, nominal_energy_j: float) -> bool:
        """Whether the run ends with this round, whatever it has learnt; a value that is NaN reaches nothing."""
        limits = (
            (this.server.epsilon_accounted, self.epsilon),
            (this.server.sim_time_s, self.sim_time_s),
            (nominal_energy_j, self.energy_j),
        )
        return this.index >= self.rounds or any(limit is not None and value >= limit for value, limit in limits)

    def reached_by_release(self, this: Round, state: SimulationState) -> bool:
        """Whether the run ends with this round because of what it has released."""
        accurate = self.accuracy is not None and this.server.test_accuracy >= self.accuracy
        return accurate or (self.diverged and state.diverged_in > 0)


def diverged_in(this: Round, state: SimulationState) -> int:
    """The round since which the released model, or its loss on the test set, is not finite; 0 where both are.

    A function of the released model and of test data that belong to no client: it reads nothing private.
    """
    evaluated = not np.isnan(this.server.test_accuracy)
    finite = bool(np.isfinite(state.parameters).all()) and not (evaluated and not np.isfinite(this.server.test_loss))
    return 0 if finite else state.diverged_in or this.index


def unlearnt_since(this: Round, state: SimulationState) -> int:
    """The round since which no update that was heard was finite; 0 where one was, as before where none was heard."""
    heard = this.server.participants
    if heard == 0:
        return state.unlearnt_since
    return (state.unlearnt_since or this.index) if this.not_finite >= heard else 0


@dataclass
class Simulation:
    """A scenario made ready to run: the fixed parts, the ledger and the state to go on from."""

    deployment: Deployment
    ledger: Ledger
    state: SimulationState
    stop: StopRules
    log_events: bool

    @property
    def slots(self) -> int:
        """Clients to expect in a round; there may be more where their number is random."""
        parts = self.deployment
        return len(parts.selection.select(1, parts.network.streams))

    @property
    def finished(self) -> bool:
        """Whether the last round lies behind the state."""
        return self.state.ended

    @property
    def diverged(self) -> bool:
        """Whether the model is not finite, or nothing has been learnt since updates are not."""
        return self.state.diverged_in > 0 or self.state.unlearnt_since > 0

    def back_to_last_round(self) -> None:
        """Ledger and memories as the last finished round left them: what a round in flight changed is gone."""
        if self.state.round_index > 0:
            self.ledger.restore(self.state.ledger)
            restore_memories(self.deployment.memories, self.state.memories)

    def run(self, on_round: Callable[[FinishedRound, EventBatch], None]) -> None:
        """Run to the end; ``on_round`` is called with every finished round before the next begins."""
        if self.finished:
            return
        env = simpy.Environment(initial_time=self.state.clock)
        medium = Medium(env, log_events=self.log_events)
        started = time.perf_counter() - self.state.wall_time

        def announce(this: Round) -> bool:
            self.state.wall_time = this.wall_time = time.perf_counter() - started
            self.state.diverged_in = diverged_in(this, self.state)
            self.state.unlearnt_since = unlearnt_since(this, self.state)
            early = self.stop.reached_by_release(this, self.state)
            self.state.ended = self.stop.reached_publicly(this, self.state.nominal_energy_j)
            if early and not self.state.ended:
                self.state.ended = True
                self.ledger.remark(ENDED_BY_ITS_OUTPUTS)
                self.state.ledger = self.ledger.state()
            on_round(FinishedRound(this), medium.log.drain())
            return not self.state.ended

        server = ParameterServer(medium, self.deployment, self.ledger, self.state, announce)
        with one_torch_thread():
            env.run(until=env.process(server.run()))
