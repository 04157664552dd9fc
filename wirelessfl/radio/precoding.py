"""Precoding by expected norms of updates, with a power limit on the average.

COTAF: Sery, Shlezinger, Cohen, Eldar: "Over-the-Air Federated Learning From Heterogeneous Data", IEEE TSP 2021. GBMA:
Sery, Cohen: "On Analog Gradient Descent Learning Over Multiple Access Fading Channels", IEEE TSP 2020.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.inversion import ChannelInversion
from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import (
    AirInterface,
    AveragePowerControl,
    PowerLimit,
    Transmission,
    TransmitPlan,
    inversion,
)


@dataclass(frozen=True)
class ExpectedNorms:
    """Expected norm of an update in a round: max_n sqrt(E‖Δ_n‖²), in units of the model's parameters.

    Attributes:
        rounds: one positive number for each round, from round 1; None takes the clip τ, which no update exceeds.
    """

    rounds: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        precondition(
            self.rounds is None or all(0 < norm < np.inf for norm in self.rounds),
            "expected norms must be positive and finite",
        )

    def at(self, round_index: int, air: AirInterface) -> float:
        """The norm in a round, from 1.

        Raises:
            ValueError: if none was given for this round.
        """
        if self.rounds is None:
            return air.clip
        precondition(
            1 <= round_index <= len(self.rounds),
            f"there are expected norms for {len(self.rounds)} rounds; round {round_index} was requested",
        )
        return self.rounds[round_index - 1]

    def scale(self, links: Links, round_index: int, air: AirInterface) -> float:
        """τ sqrt(p_t)/max_i p_i with p_t = min_i P_i/max_n E‖Δ_n‖²: α_u of a common gain per weight, at |h| = 1.

        Raises:
            ValueError: if every power budget is infinite.
        """
        if not len(links):
            return 1.0
        budget = float(links.power_budget.min())
        precondition(np.isfinite(budget), "this power control needs a finite power budget")
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


@dataclass(frozen=True)
class Cotaf(ChannelInversion):
    """Precoding x_i = sqrt(p_t) (p_i/max p) (h_min/ĥ_i) Δ_i where |ĥ_i| >= h_min, silence below.

    p_t = P/max_n E‖Δ_n‖² grows as updates shrink, so that the server hears them equally well in every round. P limits
    the energy on average, over updates of the expected norm: nothing is clamped, and a larger update costs more. P and
    max p are those of the clients of the round, the silent included: the scale does not follow the fading.

    Attributes:
        expected_norms: sqrt(max_n E‖Δ_n‖²) for each round.
        h_min: the threshold on |ĥ|; None takes sqrt(g min_i E|ĥ_i|²).
        fade_threshold: g > 0, used where ``h_min`` is None.
    """

    expected_norms: ExpectedNorms
    h_min: float | None = None
    fade_threshold: float = 0.0
    power_limit: ClassVar[PowerLimit] = "average"

    def __post_init__(self) -> None:
        name, value = ("fade_threshold", self.fade_threshold) if self.h_min is None else ("h_min", self.h_min)
        precondition(0 < value < np.inf, f"{name} must be positive and finite, not {value}")

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u = τ sqrt(p_t) h_min/max p; silence below h_min."""
        h_min = self._threshold(links)
        server_gain = self.expected_norms.scale(links, round_index, air) * h_min
        return TransmitPlan.undoing_the_clip(server_gain, air, np.abs(links.estimate) < h_min)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """Channel inversion towards the common scale."""
        return inversion(plan, links)

    def _threshold(self, links: Links) -> float:
        if self.h_min is not None or not len(links):
            return self.h_min or 1.0
        return float(np.sqrt(self.fade_threshold * links.mean_estimate_power.min()))


@dataclass(frozen=True)
class Gbma:
    """x_i = sqrt(p_t) (p_i/max p) e^{−j∠ĥ_i} Δ_i: the phase is corrected and the channel is not inverted.

    p_t = P/max_n E‖Δ_n‖². Client i arrives with the weight p_i |ĥ_i|/a, a² = Σ p_i E|ĥ_i|²/Σ p_i, which the server
    knows without any channel estimate. As in the paper the mean E|ĥ_i|/a remains in the step:
    0.886 under Rayleigh fading.

    Attributes:
        expected_norms: sqrt(max_n E‖Δ_n‖²) for each round; by the clip τ, the energy never exceeds P.
    """

    expected_norms: ExpectedNorms
    needs_norms: ClassVar[bool] = False

    @property
    def power_limit(self) -> PowerLimit:
        """On average, save where the clip stands for the expected norm."""
        return "peak" if self.expected_norms.rounds is None else "average"

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u = τ sqrt(p_t) a/max p; only a client whose estimate is exactly zero is silent."""
        weight = links.weight
        amplitude = float(np.sqrt(np.average(links.mean_estimate_power, weights=weight))) if len(links) else 1.0
        server_gain = self.expected_norms.scale(links, round_index, air) * amplitude
        scale, silent = server_gain / air.clip, links.estimate == 0
        return TransmitPlan(server_gain, scale, air.clip, silent, amplitude, inverts=False)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """The common amplitude times the weight, phase turned back; a back-off below 1 marks who is heard louder."""
        magnitude = np.abs(links.estimate)
        amplitude = plan.server_gain * links.weight / (plan.channel_amplitude * plan.clip)
        return Transmission(amplitude * links.estimate.conj() / magnitude, plan.channel_amplitude / magnitude)
