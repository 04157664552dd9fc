"""Truncated channel inversion (Zhu, Wang, Huang: "Broadband Analog Aggregation", IEEE TWC 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import AirInterface, Transmission, TransmitPlan, clamped_inversion


@dataclass(frozen=True)
class TruncatedInversion:
    """Invert the channel where |ĥ|²/E|ĥ|² is at least g, stay silent below.

    α_u = min_i sqrt(g E|ĥ_i|² P_i)/p_i is what the weakest client can still invert at the threshold. It depends on
    path gains and budgets alone, not on this round's fading, and nobody who sends has to back off.

    Attributes:
        fade_threshold: g > 0; a Rayleigh channel is silent with probability 1 − e^{−g}.
    """

    fade_threshold: float
    needs_norms: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 < self.fade_threshold < np.inf:
            raise ValueError(f"fade_threshold must be positive and finite, not {self.fade_threshold}")

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u of the weakest client at the threshold, over all clients of the round; silence below it.

        Raises:
            ValueError: if every power budget is infinite.
        """
        at_threshold = np.sqrt(self.fade_threshold * links.mean_estimate_power * links.power_budget) / links.weight
        server_gain = float(at_threshold.min()) if len(links) else 1.0
        if not np.isfinite(server_gain):
            raise ValueError("truncated inversion needs a finite power budget")
        return TransmitPlan.undoing_the_clip(server_gain, air, links.in_deep_fade(self.fade_threshold))

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """Channel inversion; inside the budget by the choice of α_u."""
        return clamped_inversion(plan, links)
