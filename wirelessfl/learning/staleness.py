"""How much an update counts that was computed from a model the server has left behind (asynchronous aggregation).

The staleness of an update is the number of steps that the global model has made since its client received it: 0 for an
update from the newest model.
"""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override


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
        if not 0 < self.rate <= 1:
            raise ValueError(f"the mixing rate must lie in (0, 1], not {self.rate}")

    def shares(self, weight: NDArray[np.float64], staleness: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) α s(staleness_i) p_i, before division by Σ p, for (n,) weights p_i."""
        return self.rate * self.staleness.discount(staleness) * weight


def _at_least_zero(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be at least 0 and finite, not {value}")
