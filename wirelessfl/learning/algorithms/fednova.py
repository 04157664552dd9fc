"""FedNova: updates normalised by the length of the local training that made them."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.algorithms.base import (
    Algorithm,
    AlgorithmFacts,
    ClientRows,
    LocalObjective,
    LocalOutcome,
    RoundFacts,
    ServerState,
)
from wirelessfl.learning.algorithms.fedprox import check_proximal_weight
from wirelessfl.learning.algorithms.gradient_weights import summed_weights


@dataclass(frozen=True)
class FedNova(Algorithm):
    """Wang et al., "Tackling the objective inconsistency problem", NeurIPS 2020, eqs. (7) to (9).

    A client sends Δ_i/‖a_i‖₁, a_i the weights of its gradients in Δ_i = −η Σ_k a_ik g_ik. The pseudo-gradient of
    the server is τ_eff g, τ_eff the mean of ‖a_i‖₁ over the uploads, weighted by data. ‖a_i‖₁ travels with the update.

    Attributes:
        mu: μ, proximal weight of the local loss.
        momentum: ρ, momentum of the local steps.

    Raises:
        ValueError: if μ is negative or not finite, or ρ lies outside [0, 1).
    """

    mu: float = 0.0
    momentum: float = 0.0

    def __post_init__(self) -> None:
        check_proximal_weight(self.mu)
        precondition(0 <= self.momentum < 1, f"momentum must lie in [0, 1), not {self.momentum}")

    @override
    def facts(self) -> AlgorithmFacts:
        return AlgorithmFacts(client_side=True, numbers=1)

    @override
    def client(self, server: ServerState, rows: ClientRows) -> LocalObjective:
        return LocalObjective(self.mu)

    @override
    def upload(self, server: ServerState, before: ClientRows, after: ClientRows, outcome: LocalOutcome) -> Tensor:
        length = torch.from_numpy(self.lengths(outcome.steps, outcome.learning_rate)).to(outcome.updates)
        return (outcome.updates / length.clamp(min=1.0)[:, None])[:, None]

    @override
    def received(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> tuple[ServerState, Tensor]:
        heard = float(facts.weights.sum())
        lengths = self.lengths(facts.steps, facts.learning_rate)
        effective = float(facts.weights @ lengths) / heard if heard else 0.0
        return server, effective * aggregate

    @override
    def step(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> ServerState:
        return replace(server, parameters=server.parameters + aggregate[0])

    def lengths(self, steps: NDArray[np.int64], learning_rate: float) -> NDArray[np.float64]:
        """(k,) ‖a_i‖₁ after (k,) local steps at η."""
        return summed_weights(steps, self.momentum, learning_rate * self.mu)
