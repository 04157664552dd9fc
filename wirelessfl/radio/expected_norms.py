"""The norm by which a precoder scales: expected and public, or measured in the round itself."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import (
    AirInterface,
    AveragePowerControl,
    PowerLimit,
    Transmission,
    TransmitPlan,
)


@dataclass(frozen=True)
class ExpectedNorms:
    """What an update is expected to measure in a round: max_n sqrt(E‖Δ_n‖²), in units of the model's parameters.

    Attributes:
        rounds: one positive number for each round, from round 1; None takes the clip τ, which no update exceeds.
    """

    rounds: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.rounds is not None and not all(0 < norm < np.inf for norm in self.rounds):
            raise ValueError("expected norms must be positive and finite")

    def at(self, round_index: int, air: AirInterface) -> float:
        """The norm in a round, from 1.

        Raises:
            ValueError: if none was given for this round.
        """
        if self.rounds is None:
            return air.clip
        if not 1 <= round_index <= len(self.rounds):
            raise ValueError(f"there are expected norms for {len(self.rounds)} rounds; round {round_index} is asked")
        return self.rounds[round_index - 1]

    def scale(self, links: Links, round_index: int, air: AirInterface) -> float:
        """τ sqrt(p_t)/max_i p_i with p_t = min_i P_i/max_n E‖Δ_n‖²: α_u of a common gain per weight, at |h| = 1.

        Raises:
            ValueError: if every power budget is infinite.
        """
        if not len(links):
            return 1.0
        budget = float(links.power_budget.min())
        if not np.isfinite(budget):
            raise ValueError("this power control needs a finite power budget")
        expected = self.at(round_index, air)
        return air.clip * float(np.sqrt(budget)) / (expected * float(links.weight.max()))


@dataclass(frozen=True)
class MeasuredNorms:
    """A precoder scaled by the largest realised norm of each slot instead of an expected one: p_t = P/max_n ‖Δ_n‖².

    The scale that everybody learns then follows from private data, and no guarantee holds.

    Attributes:
        policy: the precoder as it scales by the clip τ.
    """

    policy: AveragePowerControl
    needs_norms: ClassVar[bool] = True
    power_limit: ClassVar[PowerLimit] = "average"

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """The plan for updates of norm τ."""
        return self.policy.plan(links, round_index, air)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """As the precoder transmits; its gains become those of the slot when the plan is settled."""
        return self.policy.transmit(plan, links, norms)

    def settled(self, plan: TransmitPlan, norms: NDArray[np.float64]) -> TransmitPlan:
        """α_u times τ/max_n ‖Δ_n‖; as planned where no update has a positive finite norm."""
        largest = float(np.max(norms, initial=0.0))
        if not 0 < largest < np.inf:
            return plan
        return plan.with_server_gain(plan.server_gain * plan.clip / largest)
