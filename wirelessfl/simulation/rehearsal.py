"""A rehearsal: the whole protocol over all rounds, with everything but the training.

Time, channels, power, jamming and privacy do not depend on what the clients learn (as long as the power control scales
by public bounds), so that a rehearsal says exactly what the run with this seed will cost.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import InfeasibleError
from wirelessfl.learning import CohortBlock
from wirelessfl.learning.drift import ClientDrift
from wirelessfl.learning.selection import LossReports
from wirelessfl.privacy import DpSgdRelease, ServerNoiseRelease
from wirelessfl.simulation.assessment import Assessment
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.radio_records import SlotRecord
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.run import Simulation
from wirelessfl.simulation.state import SimulationState
from wirelessfl.trace import Status

# Resident memory of Python with torch and the other libraries loaded, as measured on Linux
_LIBRARIES_BYTES = 350 * 2**20
# Stacked (chunk, d) matrices alive in a training step: parameters, gradients, optimizer state, temporaries
_COPIES = 5
MOST_REHEARSED = 100_000
"""Rounds; they take some minutes."""


@dataclass(frozen=True)
class Rehearser(Learner):
    """A substitute for the learner: updates of norm τ without data."""

    @property
    @override
    def sums_blocks(self) -> bool:
        """Nobody trains."""
        return False

    @override
    def calibrate(self, state: SimulationState, round_index: int) -> None:
        """No norm of public data is needed."""

    @override
    def train(
        self,
        start: NDArray[np.float32],
        state: SimulationState,
        clients: NDArray[np.int64],
        round_index: int,
        steps: NDArray[np.int64] | None = None,
        drift: ClientDrift | None = None,
    ) -> Iterator[CohortBlock]:
        """One block of zero updates, reported at the norm τ that bounds them (NaN without clipping)."""
        clip = self.training.clip
        norm = np.full(len(clients), math.nan if clip is None else clip)
        unknown = np.full(len(clients), math.nan)
        updates = torch.zeros(1, self.upload_dimension).expand(len(clients), -1)
        yield CohortBlock(np.arange(len(clients)), updates, unknown, norm, unknown)

    @override
    def reported(
        self, parameters: NDArray[np.float32], clients: NDArray[np.int64], round_index: int, reports: LossReports
    ) -> NDArray[np.float64]:
        """Nothing is known of losses."""
        return np.full(len(clients), math.nan)

    @override
    def update(
        self,
        state: SimulationState,
        aggregate: NDArray[np.floating[Any]],
        round_index: int,
        arrived: NDArray[np.int64],
        weights: NDArray[np.float64],
        steps: NDArray[np.int64] | None = None,
        unheard: NDArray[np.bool_] | None = None,
        hidden_share: float | None = None,
    ) -> None:
        """The model stays as it is."""

    @override
    def evaluate(self, parameters: NDArray[np.float32], round_index: int, *, last: bool) -> Assessment:
        """No accuracy or loss."""
        return Assessment()


@dataclass(frozen=True)
class Forecast:
    """The expected cost of a run.

    Attributes:
        rounds: rounds rehearsed; fewer than asked for where a stop rule on ε, time or energy ends the run.
        participants_mean: clients heard in a round.
        missed_mean: clients in a round that miss the broadcast of the model; NaN where it reaches everybody.
        broadcast_mean: mean seconds of a broadcast.
        airtime: largest airtime of a round in seconds.
        airtime_mean: mean airtime of a round in seconds.
        round_time: mean simulated seconds of a round.
        sim_time: simulated seconds in all.
        server_gain: mean α_u.
        jammer_gain: mean α_CJ.
        effective_noise_std: mean σ_m, before ``rescale``.
        aggregate_noise_std: mean noise per coordinate of the mean update: σ_m rescaled and renormalised.
        energy: joules in all; NaN where watts are unknown.
        noise_multiplier: of local or central noise in the first round; NaN without any.
        noise_multiplier_last: of that in the last round.
        epsilon_published: at the end, worst client.
        epsilon_accounted: at the end, worst client.
        why_different: the ledger's reasons.
        memory_bytes: an estimate of the peak.
    """

    rounds: int
    participants_mean: float
    missed_mean: float
    broadcast_mean: float
    airtime: float
    airtime_mean: float
    round_time: float
    sim_time: float
    server_gain: float
    jammer_gain: float
    effective_noise_std: float
    aggregate_noise_std: float
    energy: float
    noise_multiplier: float
    noise_multiplier_last: float
    epsilon_published: float
    epsilon_accounted: float
    why_different: list[str]
    memory_bytes: int


def without_training(simulation: Simulation) -> Learner:
    """The learner of a simulation, which from now on rehearses.

    Raises:
        TypeError: it does so already.
    """
    learner = simulation.deployment.learner
    if isinstance(learner, Rehearser):
        raise TypeError("a rehearsal needs the simulation as it was built")
    rehearser = Rehearser(**{item.name: getattr(learner, item.name) for item in fields(Learner)})
    simulation.deployment = replace(simulation.deployment, learner=rehearser, personal=None)
    return learner


def rehearse(simulation: Simulation) -> Forecast:
    """Rehearsal of all rounds without training; the simulation is used up by it.

    Raises:
        InfeasibleError: there are more of them than anybody waits for.
    """
    learner = without_training(simulation)
    if simulation.stop.rounds > MOST_REHEARSED:
        raise InfeasibleError(
            f"rounds: found {simulation.stop.rounds:,}, too many for the forecast, which computes each; allowed: at "
            "most "
            f"{MOST_REHEARSED:,}; simulate takes more"
        )
    rounds: list[Round] = []
    simulation.run(lambda finished, _: rounds.append(finished.round))
    end, slots = rounds[-1].server, [this.slot or SlotRecord() for this in rounds]
    fades = simulation.deployment.network.downlink is not None
    return Forecast(
        rounds=len(rounds),
        participants_mean=_mean([float(this.server.participants) for this in rounds]),
        missed_mean=_mean([float(len(this.with_status(Status.NO_MODEL))) for this in rounds]) if fades else math.nan,
        broadcast_mean=_mean([this.broadcast_s for this in rounds]),
        airtime=max(this.server.airtime_s for this in rounds),
        airtime_mean=_mean([this.server.airtime_s for this in rounds]),
        round_time=end.sim_time_s / len(rounds),
        sim_time=end.sim_time_s,
        server_gain=_mean([slot.server_gain for slot in slots]),
        jammer_gain=_mean([slot.jammer_gain for slot in slots]),
        effective_noise_std=_mean([slot.effective_noise_std for slot in slots]),
        aggregate_noise_std=_mean([slot.aggregate_noise_std for slot in slots]),
        energy=simulation.state.energy_j,
        noise_multiplier=_multiplier(rounds[0]),
        noise_multiplier_last=_multiplier(rounds[-1]),
        epsilon_published=end.epsilon_published,
        epsilon_accounted=end.epsilon_accounted,
        why_different=simulation.ledger.why_different(),
        memory_bytes=_memory(learner, simulation.deployment.network.registry.count),
    )


def _multiplier(this: Round) -> float:
    # Of the noise that has one: on gradients, or at a trusted server
    found = (
        release.noise_multiplier if isinstance(release, DpSgdRelease) else release.published_multiplier
        for release in this.releases
        if isinstance(release, DpSgdRelease | ServerNoiseRelease)
    )
    return next(found, math.nan)


def _mean(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def _memory(learner: Learner, registered: int) -> int:
    # Libraries, training samples, the stacked tensors of one block, and a few numbers a registered client
    shards = learner.population.shards(np.zeros(1, dtype=np.int64))
    samples = shards.inputs.element_size() * shards.inputs.numel()
    block = learner.plan.chunk * learner.dimension * 4 * _COPIES
    return _LIBRARIES_BYTES + samples + block + 64 * registered
