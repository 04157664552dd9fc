"""Upcycled-FL: a second, server-only step after each aggregate (paper ota-cross-layer-dp)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.algorithms.base import RoundFacts, ServerState
from wirelessfl.learning.algorithms.fedprox import FedProx, check_proximal_weight


@dataclass(frozen=True)
class Upcycled(FedProx):
    """FedProx, and w̄^{2m} from eq. (9) as the model of the next round (ota-cross-layer-dp, eqs. 6, 8 and 9).

    Attributes:
        mu: μ, above 0.
        schedule: λ_m as first round to value, rounds counted from 1; it holds until the next entry.

    Raises:
        ValueError: if μ or a λ is out of range, or the schedule does not begin with round 1.
    """

    schedule: Mapping[int, float]

    def __post_init__(self) -> None:
        super().__post_init__()
        begins = min(self.schedule, default=0) == 1
        precondition(begins, f"the schedule of lambda must begin with round 1, not {sorted(self.schedule)}")
        for lam in self.schedule.values():
            _check_lambda(self.mu, lam)

    def lam(self, round_index: int) -> float:
        """λ of a round, from 1 on."""
        return self.schedule[max(first for first in self.schedule if first <= round_index)]

    @override
    def step(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> ServerState:
        current = super().step(server, aggregate, facts).parameters
        return replace(server, parameters=upcycle(server.parameters, current, self.mu, self.lam(facts.round_index)))


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
    check_proximal_weight(mu)
    _check_lambda(mu, lam)
    return current + mu / (mu + lam) * (current - previous)


def _check_lambda(mu: float, lam: float) -> None:
    holds = lam >= 0 and mu + lam != 0
    precondition(holds, f"upcycling needs lambda ≥ 0 and mu + lambda > 0, not lambda = {lam} and mu = {mu}")
