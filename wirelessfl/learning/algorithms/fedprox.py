"""Federated averaging with a proximal term."""

import math
from dataclasses import dataclass

from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.algorithms.base import ClientRows, LocalObjective, ServerState
from wirelessfl.learning.algorithms.fedavg import FedAvg


@dataclass(frozen=True)
class FedProx(FedAvg):
    """The server step of FedAvg with (μ/2)‖w − w̄‖² in the local loss (Li et al., MLSys 2020).

    Attributes:
        mu: μ.

    Raises:
        ValueError: if μ is negative or not finite.
    """

    mu: float

    def __post_init__(self) -> None:
        check_proximal_weight(self.mu)

    @override
    def client(self, server: ServerState, rows: ClientRows) -> LocalObjective:
        return LocalObjective(self.mu)


def check_proximal_weight(mu: float) -> None:
    """Precondition on μ: finite and not negative, else ValueError."""
    precondition(math.isfinite(mu) and mu >= 0, f"mu must be at least 0 and finite, not {mu}")
