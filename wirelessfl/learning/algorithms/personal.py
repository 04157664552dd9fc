"""Algorithms whose clients have a model of their own beside the global one, which stays with them."""

import math
from dataclasses import dataclass

from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.algorithms.base import AlgorithmFacts
from wirelessfl.learning.algorithms.fedavg import FedAvg


@dataclass(frozen=True)
class Ditto(FedAvg):
    """Li et al., "Ditto: fair and robust federated learning through personalization", ICML 2021, Algorithm 1.

    The global model is that of federated averaging. A client that takes part also trains v_i, which begins at the model
    that it receives first and stays with it, by v_i ← v_i − η(∇F_i(v_i) + λ(v_i − w̄)) on the same mini-batches.

    Attributes:
        lam: λ, weight of the pull to the global model; 0 for local training alone.

    Raises:
        ValueError: λ is negative or not finite.
    """

    lam: float = 0.1

    def __post_init__(self) -> None:
        precondition(0 <= self.lam < math.inf, f"lam must be at least 0 and finite, not {self.lam}")

    @override
    def facts(self) -> AlgorithmFacts:
        return AlgorithmFacts(passes=2)


@dataclass(frozen=True)
class FineTune(FedAvg):
    """Federated averaging, whose global model each client trains on for a while before it is tested on its own data.

    Attributes:
        steps: local steps; either these or ``epochs``.
        epochs: passes over the client's samples.

    Raises:
        ValueError: not exactly one of them is given, or it is below 1.
    """

    steps: int | None = None
    epochs: int | None = None

    def __post_init__(self) -> None:
        given = [number for number in (self.steps, self.epochs) if number is not None]
        precondition(len(given) == 1 and given[0] >= 1, f"needs steps or epochs of at least 1, not {self}")
