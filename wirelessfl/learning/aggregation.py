"""Aggregation rules: from the received aggregate to the next global model (DESIGN.md §3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor


@dataclass(frozen=True)
class ModelState:
    """Everything a rule carries from round to round.

    Attributes:
        parameters: (d,) the global model w̄ that the clients receive.
        memory: What a rule with server-side memory keeps besides, by name.
    """

    parameters: Tensor
    memory: Mapping[str, Tensor] = field(default_factory=dict)


class AggregationRule(Protocol):
    """The server's step, and the proximal weight that its local objective needs."""

    @property
    def prox_mu(self) -> float:
        """μ of the clients' proximal term (μ/2)‖w − w̄‖²; 0 for none."""
        ...

    def start(self, parameters: Tensor) -> ModelState:
        """The state before the first round, from the initial model (d,)."""
        ...

    def apply(self, state: ModelState, aggregate: Tensor, round_index: int) -> ModelState:
        """The state after a round.

        Args:
            state: The state before it; left as it is.
            aggregate: (d,) the received g, an estimate of Σ_i p_i Δ_i.
            round_index: Communication round, from 1.
        """
        ...


@dataclass(frozen=True)
class FedAvg:
    """w ← w + g (McMahan et al., AISTATS 2017)."""

    prox_mu: float = field(default=0.0, init=False)

    def start(self, parameters: Tensor) -> ModelState:
        """See ``AggregationRule.start``."""
        return ModelState(parameters)

    def apply(self, state: ModelState, aggregate: Tensor, round_index: int) -> ModelState:
        """See ``AggregationRule.apply``."""
        return ModelState(state.parameters + aggregate)


@dataclass(frozen=True)
class FedProx:
    """FedAvg's server step with a proximal term in the local objective (Li et al., MLSys 2020).

    Raises:
        ValueError: if μ is negative or not finite.
    """

    prox_mu: float

    def __post_init__(self) -> None:
        _check_mu(self.prox_mu)

    def start(self, parameters: Tensor) -> ModelState:
        """See ``AggregationRule.start``."""
        return ModelState(parameters)

    def apply(self, state: ModelState, aggregate: Tensor, round_index: int) -> ModelState:
        """See ``AggregationRule.apply``."""
        return ModelState(state.parameters + aggregate)


@dataclass(frozen=True)
class Upcycled:
    """Upcycled-FL (ota-cross-layer-dp, eqs. 6, 8 and 9): a second, server-only step after each aggregate.

    Attributes:
        prox_mu: μ, above 0.
        schedule: λ_m as first round to value, rounds counted from 1; it holds until the next entry.

    Raises:
        ValueError: if μ or a λ is out of range, or the schedule does not begin with round 1.
    """

    prox_mu: float
    schedule: Mapping[int, float]

    def __post_init__(self) -> None:
        _check_mu(self.prox_mu)
        if min(self.schedule, default=0) != 1:
            raise ValueError(f"the schedule of lambda must begin with round 1, not {sorted(self.schedule)}")
        for lam in self.schedule.values():
            _check_lambda(self.prox_mu, lam)

    def lam(self, round_index: int) -> float:
        """λ of a round, from 1 on."""
        return self.schedule[max(first for first in self.schedule if first <= round_index)]

    def start(self, parameters: Tensor) -> ModelState:
        """See ``AggregationRule.start``."""
        return ModelState(parameters)

    def apply(self, state: ModelState, aggregate: Tensor, round_index: int) -> ModelState:
        """See ``AggregationRule.apply``."""
        current = state.parameters + aggregate
        return ModelState(upcycle(state.parameters, current, self.prox_mu, self.lam(round_index)))


def upcycle(previous: Tensor, current: Tensor, mu: float, lam: float) -> Tensor:
    """w̄^{2m} = w̄^{2m−1} + μ/(μ+λ) (w̄^{2m−1} − w̄^{2m−2}), ota-cross-layer-dp eq. (9).

    It reuses the last movement of the global model and touches no data, so it costs no privacy. λ → ∞ leaves
    ``current`` as it is.

    Args:
        previous: (d,) w̄^{2m−2}, the model that the clients started from.
        current: (d,) w̄^{2m−1}, the model after the received aggregate.
        mu: μ ≥ 0.
        lam: λ_m ≥ 0, may be infinite; μ + λ_m > 0.

    Returns:
        (d,) w̄^{2m}.

    Raises:
        ValueError: if μ or λ is negative or NaN, or both are 0.
    """
    _check_mu(mu)
    _check_lambda(mu, lam)
    return current + mu / (mu + lam) * (current - previous)


def _check_mu(mu: float) -> None:
    if not (math.isfinite(mu) and mu >= 0):
        raise ValueError(f"mu must be at least 0 and finite, not {mu}")


def _check_lambda(mu: float, lam: float) -> None:
    if not lam >= 0 or mu + lam == 0:
        raise ValueError(f"upcycling needs lambda ≥ 0 and mu + lambda > 0, not lambda = {lam} and mu = {mu}")
