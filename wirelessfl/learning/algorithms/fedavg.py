"""Federated averaging."""

from dataclasses import dataclass, replace

from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.algorithms.base import Algorithm, RoundFacts, ServerState


@dataclass(frozen=True)
class FedAvg(Algorithm):
    """w ← w + g (McMahan et al., "Communication-efficient learning of deep networks", AISTATS 2017)."""

    @override
    def step(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> ServerState:
        return replace(server, parameters=server.parameters + aggregate[0])
