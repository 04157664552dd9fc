"""The learning side of the simulation: trains the cohort that is heard, updates and tests the global model.

The one place where arrays cross between NumPy (state, radio, trace) and torch (training).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.conformance import given
from wirelessfl.learning import (
    RoundFacts,
    ServerState,
    evaluate,
)
from wirelessfl.learning.client_side import empty_store
from wirelessfl.learning.fairness import ClientAccuracies
from wirelessfl.learning.flat import INITIAL_MODEL
from wirelessfl.learning.losses import local_losses
from wirelessfl.learning.selection import LossReports
from wirelessfl.learning.server_optimizers import ServerOptimizer
from wirelessfl.learning.server_step import require_like, server_step
from wirelessfl.privacy import Release, SecureSum, UnvouchedRelease
from wirelessfl.simulation.assessment import UNKNOWN, Assessment
from wirelessfl.simulation.local_training import LocalLearner, as_tensors
from wirelessfl.simulation.state import SimulationState


@dataclass(frozen=True, kw_only=True)
class Learner(LocalLearner):
    """Model, data and training of a run: the clients' side, and the server's.

    Attributes:
        server_optimizer: What the server makes of the aggregated update before.
        evaluate_every: Rounds between two evaluations; the last round is always evaluated.
        rounds: Number of rounds, if none is the last one before.
        unvouched: Code from outside that sees private data, in words; None without any.
    """

    server_optimizer: ServerOptimizer
    evaluate_every: int
    rounds: int
    unvouched: str | None = None

    @property
    def dimension(self) -> int:
        """d, the number of trainable parameters."""
        return self.model.dimension

    @property
    def broadcast_dimension(self) -> int:
        """The numbers that the server sends to the clients before they train."""
        return self.algorithm.facts().broadcast * self.dimension

    @property
    def upload_dimension(self) -> int:
        """P·d, the numbers that a client sends."""
        return self.algorithm.facts().payload * self.dimension

    def initial_state(self, batteries: int) -> SimulationState:
        """The state before the first round, with so many full batteries.

        Raises:
            ScenarioError: an algorithm from outside begins with something else than a model.
        """
        initial = self.model.initial(self.streams.torch_seed(INITIAL_MODEL))
        start = given("algorithm", self.algorithm, "start", self.algorithm.start(initial), ServerState)
        require_like("algorithm", self.algorithm, "start", {"model": start.parameters}, {"model": initial})
        return SimulationState(
            parameters=start.parameters.numpy(),
            server_memory=_as_arrays(start.memory),
            optimizer_memory=_as_arrays(self.server_optimizer.start(start.parameters)),
            client_rows=empty_store(self.algorithm, start),
            battery_used_j=np.zeros(batteries),
            clipping={} if self.private is None else self.private.initial_rows(self.population.sizes, start.parameters),
        )

    def samples_processed(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) samples that clients with (n,) samples pass through models in a round, a public number.

        A gradient at the received model is one more pass over all of them.
        """
        training, facts = self.training, self.algorithm.facts()
        batch = np.minimum(samples, training.batch_size)
        local = samples * training.epochs if training.epochs is not None else batch * (training.steps or 0)
        return local * facts.passes + samples * facts.reads_gradients

    def reported(
        self, parameters: NDArray[np.float32], clients: NDArray[np.int64], round_index: int, reports: LossReports
    ) -> NDArray[np.float64]:
        """(n,) losses of a model (d,) that clients report, with the noise that they add."""
        losses = self.statistics(parameters, clients, round_index, reports)
        return reports.noised(losses, self.streams.nodes("selection_noise", round_index, clients))

    def statistics(
        self, parameters: NDArray[np.float32], clients: NDArray[np.int64], round_index: int, reports: LossReports
    ) -> NDArray[np.float64]:
        """(n,) what clients make of the losses of a model (d,) before they add any noise."""
        there = torch.from_numpy(parameters).to(self.plan.device)
        batch = (self.training.batch_size, round_index, self.streams) if reports.statistic == "batch_mean" else None
        found = local_losses(self.model, there, self.population, clients, reports.bound, batch)
        return found.rms if reports.statistic == "rms" else found.mean

    def releases(
        self,
        round_index: int,
        clients: NDArray[np.int64],
        secure_sum: SecureSum | None,
        steps: NDArray[np.int64] | None = None,
    ) -> tuple[Release, ...]:
        """The record of the local steps of those who sent; none where nothing noises them.

        ``steps`` are (n,) those that they took, None for all that are planned. Code from outside is not asked for a
        record of nobody.
        """
        local: tuple[Release, ...] = ()
        if self.private is not None and (len(clients) or self.unvouched is None):
            samples = self.population.sizes[clients]
            local = self.private.releases(self.training, samples, clients, round_index, secure_sum, steps)
        if self.unvouched is not None and not local:
            return (UnvouchedRelease(round_index, clients, self.unvouched),)
        return local

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
        """Step the global model in ``state`` by an aggregate over the (k,) clients ``arrived`` with weights p_i.

        ``steps`` are their (k,) local steps, None for all that are planned. On the coordinates ``unheard`` of the
        aggregate nothing is stepped. Where noise hides who came, ``hidden_share`` is what the aggregate counts as,
        and ``arrived`` is empty.

        Raises:
            ScenarioError: an algorithm or a server optimizer from outside gives something else than a model, or
                remembers other tensors than before, which no checkpoint could go on from.
        """
        before = ServerState(torch.from_numpy(state.parameters), as_tensors(state.server_memory))
        facts = RoundFacts(
            round_index=round_index,
            registered=len(self.population.sizes),
            arrived=arrived,
            weights=weights,
            steps=self.planned_steps(arrived) if steps is None else steps,
            learning_rate=self.learning_rate(round_index),
            share=float(weights.sum()) if hidden_share is None else hidden_share,
        )
        received = torch.from_numpy(aggregate).float().view(-1, self.dimension)  # NumPy warns of an ∞
        kept = as_tensors(state.optimizer_memory)
        silent = None if unheard is None else torch.from_numpy(unheard).view(-1, self.dimension)
        after, memory = server_step(self.algorithm, self.server_optimizer, before, kept, received, facts, silent)
        state.parameters = after.parameters.numpy()
        state.server_memory, state.optimizer_memory = _as_arrays(after.memory), _as_arrays(memory)

    def evaluate(self, parameters: NDArray[np.float32], round_index: int, *, last: bool) -> Assessment:
        """Accuracy and loss on test and validation samples; nothing known between two evaluations."""
        if round_index % self.evaluate_every and not last:
            return Assessment()
        there = torch.from_numpy(parameters).to(self.plan.device)
        test, validation = (
            UNKNOWN if examples is None else evaluate(self.model, there, examples, self.plan.threads)
            for examples in (self.population.test, self.population.validation)
        )
        owners = self.population.test_owners
        return Assessment(test, validation, None if owners is None else ClientAccuracies.of(test.correct, owners))


def _as_arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    return {name: value.numpy() for name, value in tensors.items()}
