"""Aggregation beyond one mean a round: discounts of stale updates, and the models of edges."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition


@runtime_checkable
class StalenessDiscount(Protocol):
    """The function s of Xie, Koyejo, Gupta, "Asynchronous Federated Optimization", 2019: 1 for fresh updates."""

    def discount(self, staleness: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) s in (0, 1], falling with (n,) staleness."""


@dataclass(frozen=True)
class ConstantDiscount(StalenessDiscount):
    """s = 1: late updates count as much as fresh ones."""

    @override
    def discount(self, staleness: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ones(len(staleness))


@dataclass(frozen=True)
class PolynomialDiscount(StalenessDiscount):
    """s = (1 + staleness)^(−a).

    Attributes:
        exponent: a.

    Raises:
        ValueError: if the exponent is negative or not finite.
    """

    exponent: float

    def __post_init__(self) -> None:
        _at_least_zero("exponent", self.exponent)

    @override
    def discount(self, staleness: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((1.0 + staleness) ** -self.exponent)


@dataclass(frozen=True)
class HingeDiscount(StalenessDiscount):
    """s = 1 up to a staleness of b, and 1/(a (staleness − b) + 1) beyond it.

    Attributes:
        slope: a.
        grace: b.

    Raises:
        ValueError: if one of them is negative or not finite.
    """

    slope: float
    grace: float

    def __post_init__(self) -> None:
        _at_least_zero("slope", self.slope)
        _at_least_zero("grace", self.grace)

    @override
    def discount(self, staleness: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1.0 / (self.slope * np.maximum(staleness - self.grace, 0.0) + 1.0))


@dataclass(frozen=True)
class Mixing:
    """The weight of every update in a step of the global model, α s(staleness_i) p_i/Σ p over the updates taken.

    With one update at a time this is FedAsync (Xie et al. 2019); with several, FedBuff (Nguyen et al., "Federated
    Learning with Buffered Asynchronous Aggregation", AISTATS 2022), weighted by data.

    Attributes:
        rate: α in (0, 1].
        staleness: the function s.

    Raises:
        ValueError: if α is out of range.
    """

    rate: float
    staleness: StalenessDiscount

    def __post_init__(self) -> None:
        precondition(0 < self.rate <= 1, f"the mixing rate must lie in (0, 1], not {self.rate}")

    def shares(self, weight: NDArray[np.float64], staleness: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) α s(staleness_i) p_i, before division by Σ p, for (n,) weights p_i."""
        return self.rate * self.staleness.discount(staleness) * weight


def _at_least_zero(name: str, value: float) -> None:
    precondition(math.isfinite(value) and value >= 0, f"{name} must be at least 0 and finite, not {value}")


@dataclass
class EdgeModels:
    """Models of C edges, which the cloud averages every few rounds, weighted by data heard.

    After Liu, Zhang, Song, Letaief, "Client-Edge-Cloud Hierarchical Federated Learning", ICC 2020. Between two
    averagings the global model that is tested is the average that the cloud would form.

    Attributes:
        count: C, how many edges.
        edge_rounds: rounds from one averaging to the next.
        models: (C, d) float32, or None right after an averaging, when all equal the global model.
        weight: (C,) Σ p_i over the clients heard since the last averaging.
        global_model: (d,) before this round; not remembered from round to round.
    """

    count: int
    edge_rounds: int
    models: NDArray[np.float32] | None = None
    weight: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    global_model: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, dtype=np.float32))

    def begin(self, global_model: NDArray[np.float32]) -> NDArray[np.float32]:
        """(C, d) the edges' models at the beginning of a round, given the global one (d,)."""
        self.global_model = global_model
        if self.models is None:
            self.models = np.repeat(global_model[None], self.count, axis=0)
            self.weight = np.zeros(self.count)
        return self.models

    def step(self, mean_update: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Step of the edges that received an update.

        Args:
            mean_update: (C, d) what each edge received, the mean over its clients.
            weight: (C,) Σ p_i of the clients heard; 0 leaves an edge where it is.

        Returns:
            (d,) the step of the global model to the new average.
        """
        assert self.models is not None, "a round begins before it ends"
        heard = weight > 0
        self.models = self.models.copy()  # those of the beginning stay: clients report losses of them
        self.models[heard] += mean_update[heard].astype(np.float32)
        self.weight = self.weight + weight
        return np.asarray(self.weight / self.weight.sum() @ self.models.astype(np.float64) - self.global_model)

    def is_averaging(self, round_index: int) -> bool:
        """Whether a round ends with an averaging in the cloud."""
        return round_index % self.edge_rounds == 0

    def averaged(self) -> None:
        """All edges go on from the global model."""
        self.models = None

    def state(self) -> dict[str, Any]:
        """The models and weights; nothing right after an averaging."""
        return {} if self.models is None else {"models": self.models.copy(), "weight": self.weight.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Models as a state has them."""
        self.models = np.array(state["models"]) if state else None
        self.weight = np.array(state["weight"]) if state else np.zeros(0)
