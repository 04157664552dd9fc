"""FedDyn: local losses regularised dynamically, so that their minima agree with that of the global loss."""

import math
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


@dataclass(frozen=True)
class FedDyn(Algorithm):
    """Acar et al., "Federated learning based on dynamic regularization", ICLR 2021, Algorithm 1, weighted by data.

    A client minimises F_i(w) − λ_iᵀw + (α/2)‖w − w̄‖² and keeps λ_i⁺ = λ_i − α Δ_i, its gradient at the end. The server
    keeps H = h/α: H ← H − Σ p_i Δ_i over the uploads, w̄ ← w̄ + g − H; g − H is its pseudo-gradient.

    Attributes:
        alpha: α.

    Raises:
        ValueError: if α is not positive and finite.
    """

    alpha: float = 0.01

    def __post_init__(self) -> None:
        precondition(0 < self.alpha < math.inf, f"alpha must be positive and finite, not {self.alpha}")

    @override
    def facts(self) -> AlgorithmFacts:
        return AlgorithmFacts(client_side=True)

    @override
    def start(self, parameters: Tensor) -> ServerState:
        return ServerState(parameters, {"drift": torch.zeros_like(parameters)})

    @override
    def first_rows(self, server: ServerState, clients: NDArray[np.int64]) -> ClientRows:
        return ClientRows(clients, {"gradient": server.parameters.new_zeros(len(clients), len(server.parameters))})

    @override
    def client(self, server: ServerState, rows: ClientRows) -> LocalObjective:
        return LocalObjective(self.alpha, -rows.values["gradient"])

    @override
    def finish(self, server: ServerState, rows: ClientRows, outcome: LocalOutcome) -> ClientRows:
        return replace(rows, values={"gradient": rows.values["gradient"].sub(outcome.updates, alpha=self.alpha)})

    @override
    def received(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> tuple[ServerState, Tensor]:
        drift = server.memory["drift"] - facts.share * aggregate[0]
        return ServerState(server.parameters, {"drift": drift}), aggregate - drift

    @override
    def step(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> ServerState:
        return replace(server, parameters=server.parameters + aggregate[0])
