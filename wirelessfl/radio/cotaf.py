"""COTAF (Sery, Shlezinger, Cohen, Eldar: "Over-the-Air Federated Learning From Heterogeneous Data", IEEE TSP 2021)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.expected_norms import ExpectedNorms
from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import AirInterface, PowerLimit, Transmission, TransmitPlan, inversion


@dataclass(frozen=True)
class Cotaf:
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
    needs_norms: ClassVar[bool] = False
    power_limit: ClassVar[PowerLimit] = "average"

    def __post_init__(self) -> None:
        name, value = ("fade_threshold", self.fade_threshold) if self.h_min is None else ("h_min", self.h_min)
        if not 0 < value < np.inf:
            raise ValueError(f"{name} must be positive and finite, not {value}")

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
