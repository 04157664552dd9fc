"""Truncated channel inversion (Zhu, Wang, Huang: "Broadband Analog Aggregation", IEEE TWC 2020)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import (
    AirInterface,
    PowerLimit,
    Transmission,
    TransmitPlan,
    clamped_inversion,
    inversion,
)


@dataclass(frozen=True)
class TruncatedInversion:
    """Channel inversion where |ĥ|²/E|ĥ|² is at least g, and silence below.

    With a peak limit α_u = min_i sqrt(g E|ĥ_i|² P_i)/p_i is what the weakest client can still invert at the threshold.
    With a limit on the average, as in the paper, 1/g gives way to E[1/X; X >= g], X = |ĥ_i|²/E|ĥ_i|²: then E‖x_i‖² =
    P_i over the fading for updates of norm τ, and a single transmission may cost more. Either depends on path gains and
    budgets alone, not on this round's fading, and nobody who sends has to back off.

    Attributes:
        fade_threshold: g > 0; a Rayleigh channel is silent with probability 1 − e^{−g}.
        mean_inverse_power: E[1/X; X >= g] > 0 for a limit on the average, E₁(g) for Rayleigh fading; None for a limit
            on the peak.
    """

    fade_threshold: float
    mean_inverse_power: float | None = None
    needs_norms: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.fade_threshold < np.inf:
            raise ValueError(f"fade_threshold must be positive and finite, not {self.fade_threshold}")
        if self.mean_inverse_power is not None and not 0 < self.mean_inverse_power < np.inf:
            raise ValueError(f"mean_inverse_power must be positive and finite, not {self.mean_inverse_power}")

    @property
    def power_limit(self) -> PowerLimit:
        """Whether P_i limits every transmission or their mean."""
        return "peak" if self.mean_inverse_power is None else "average"

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u of the client that can afford least, over all clients of the round; silence below it.

        Raises:
            ValueError: if every power budget is infinite.
        """
        share = self.fade_threshold if self.mean_inverse_power is None else 1.0 / self.mean_inverse_power
        affordable = np.sqrt(share * links.mean_estimate_power * links.power_budget) / links.weight
        server_gain = float(affordable.min()) if len(links) else 1.0
        if not np.isfinite(server_gain):
            raise ValueError("truncated inversion needs a finite power budget")
        return TransmitPlan.undoing_the_clip(server_gain, air, links.in_deep_fade(self.fade_threshold))

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """Channel inversion; inside the budget by the choice of α_u."""
        return clamped_inversion(plan, links) if self.power_limit == "peak" else inversion(plan, links)
