"""Power control that spends a privacy budget on receiver noise alone.

Liu, Simeone: "Privacy for Free: Wireless Federated Learning via Uncoded Transmission with Adaptive Power Control",
IEEE JSAC 2021. In its letters the received scale is c_m with c_m n_i γ = α_u p_i, so α_u = c_m |D| γ; a sample that is
exchanged moves the received sum by at most 2 α_u/|D|.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.inversion import ChannelInversion
from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import (
    AirInterface,
    TransmitPlan,
    full_power_amplitude,
)


@dataclass(frozen=True)
class PrivacyBudget:
    """Budget of the run, and the training problem it is spent on.

    Attributes:
        cost: R > 0, what (ε, δ) of the whole run allow by the paper's tail bound (`privacy.tail_bound_cost`).
        rounds: M.
        total_samples: |D|.
    """

    cost: float
    rounds: int
    total_samples: int

    def __post_init__(self) -> None:
        precondition(0 < self.cost < np.inf, f"cost must be positive and finite, not {self.cost}")
        precondition(
            self.rounds >= 1 and self.total_samples >= 1,
            f"rounds and total_samples must be at least 1, not {self.rounds}, {self.total_samples}",
        )

    def squared_gains(self, channel_noise_std: float) -> float:
        """Largest Σ_m α_u² allowed: Σ 2 α_u²/(|D|² σ_c²) <= R."""
        return 0.5 * self.cost * (self.total_samples * channel_noise_std) ** 2


@dataclass(frozen=True)
class StaticPrivacyForFree(ChannelInversion):
    """The same share of the budget in every round, as far as the weakest client can follow.

    Attributes:
        budget: what may be spent.
    """

    budget: PrivacyBudget

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u² = min(α_max², budget/M)."""
        silent = links.estimate == 0
        share = self.budget.squared_gains(air.channel_noise_std) / self.budget.rounds
        squared = min(_squared_limit(links.take(~silent)), share)
        return _plan(squared, air, silent)


@dataclass(frozen=True)
class PrivacyForFree(ChannelInversion):
    """The adaptive policy, online: the convex program is solved in each round for the remaining rounds.

    This round's limit α_max = min_i |ĥ_i| sqrt(P_i)/p_i is known; future ones are replaced by their mean square
    1/Σ(p_i²/(P_i E|ĥ_i|²)), that of the weakest of Rayleigh channels.

    Attributes:
        budget: what may be spent.
        contraction: κ = 1 − μ_PL/L_smooth in (0, 1], by which one round shrinks the optimality gap.
        spent: Σ α_u² of the rounds so far; the policy's state.
    """

    budget: PrivacyBudget
    contraction: float
    spent: float = 0.0

    def __post_init__(self) -> None:
        precondition(0 < self.contraction <= 1, f"contraction must lie in (0, 1], not {self.contraction}")
        precondition(
            self.contraction ** (self.budget.rounds / 2) > 0,
            f"contraction {self.contraction} leaves nothing of the first of {self.budget.rounds} rounds",
        )

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u of this round; everyone is silent once the budget is spent or the rounds are over.

        Args:
            links: the clients of the round.
            round_index: m, counted from 1.
            air: constants of the uplink.
        """
        silent = links.estimate == 0
        heard = links.take(~silent)
        left = self.budget.squared_gains(air.channel_noise_std) - self.spent
        rounds_left = self.budget.rounds + 1 - round_index
        if left <= 0 or rounds_left <= 0:
            return _plan(1.0, air, np.ones_like(silent))
        limits = np.full(rounds_left, _mean_squared_limit(heard))
        limits[0] = _squared_limit(heard)
        return _plan(float(optimal_squared_gains(limits, left, self.contraction)[0]), air, silent)

    def after(self, plan: TransmitPlan) -> Self:
        """The policy with this round's α_u² spent, unless nobody sent."""
        return self if np.all(plan.silent) else replace(self, spent=self.spent + plan.server_gain**2)

    def state(self) -> dict[str, float]:
        """Σ α_u² so far."""
        return {"spent": self.spent}

    def restored(self, state: dict[str, float]) -> Self:
        """The policy as it was with ``state``."""
        return replace(self, spent=state["spent"])


def optimal_squared_gains(limits: NDArray[np.float64], budget: float, contraction: float) -> NDArray[np.float64]:
    """The minimiser v of Σ κ^{−m}/v_m subject to Σ v_m <= budget and 0 < v_m <= limits_m (m from 0).

    KKT: v_m = min(limit_m, x κ^{−m/2}), where x spends the budget; it is found exactly by going through the limits in
    the order in which they bind. Where all limits fit into the budget, they are the answer.

    Args:
        limits: (M,) positive, may be infinite.
        budget: positive.
        contraction: κ in (0, 1].

    Returns:
        (M,) v_m = α_u² of each round.
    """
    if limits.sum() <= budget:
        return limits.copy()
    rounds = len(limits)
    growth = contraction ** ((rounds - 1 - np.arange(rounds)) / 2)
    order = np.argsort(limits / growth)
    capped = np.concatenate([[0.0], np.cumsum(limits[order])[:-1]])
    free = np.cumsum(growth[order][::-1])[::-1]
    level = (budget - capped) / free
    first_free = int(np.argmax(level <= limits[order] / growth[order]))
    return np.asarray(np.minimum(limits, level[first_free] * growth))


def _squared_limit(links: Links) -> float:
    return float(((full_power_amplitude(links) / links.weight) ** 2).min(initial=np.inf))


def _mean_squared_limit(links: Links) -> float:
    # E min_i of independent exponential variables of mean P_i E|ĥ_i|²/p_i²
    rate = float((links.weight**2 / (links.power_budget * links.mean_estimate_power)).sum())
    return 1.0 / rate if rate > 0 else np.inf


def _plan(squared_gain: float, air: AirInterface, silent: NDArray[np.bool_]) -> TransmitPlan:
    return TransmitPlan.undoing_the_clip(float(np.sqrt(squared_gain)), air, silent)
