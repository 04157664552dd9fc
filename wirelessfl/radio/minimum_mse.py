"""Minimum mean-squared error power control.

Cao, Zhu, Xu, Huang: "Optimized Power Control for Over-the-Air Computation in Fading Channels", IEEE TWC 2020.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import (
    AirInterface,
    Transmission,
    TransmitPlan,
    clamped_inversion,
    full_power_amplitude,
)


@dataclass(frozen=True)
class MinimumMse:
    """The α_u that balances the misalignment of weak clients against noise, in this round.

    With g_i = |ĥ_i| sqrt(P_i), independent updates of norm τ and amplitudes b_i <= g_i, it minimises
    Σ (b_i/α_u − p_i)² + d σ_c²/α_u². Weak clients send at full power, strong ones invert their channels.
    """

    needs_norms: ClassVar[bool] = False

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u = sqrt(η) of `optimal_server_gain`; only a client whose estimate is exactly zero is silent."""
        silent = links.estimate == 0
        heard = links.take(~silent)
        noise_energy = air.dimension * air.channel_noise_std**2
        gain = optimal_server_gain(full_power_amplitude(heard), heard.weight, noise_energy) if len(heard) else 1.0
        return TransmitPlan.undoing_the_clip(gain, air, silent)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """|α_i| = min(sqrt(P_i), α_u p_i/|ĥ_i|)/τ."""
        return clamped_inversion(plan, links)


def optimal_server_gain(amplitude: NDArray[np.float64], weight: NDArray[np.float64], noise_energy: float) -> float:
    """sqrt(η) = min_k (d σ_c² + Σ_{i<=k} g_i²)/(Σ_{i<=k} p_i g_i), clients sorted by g_i/p_i.

    Args:
        amplitude: g_i (n,), received amplitude at full power; n >= 1.
        weight: p_i (n,).
        noise_energy: d σ_c².
    """
    order = np.argsort(amplitude / weight)
    received_energy = noise_energy + np.cumsum(amplitude[order] ** 2)
    return float(np.min(received_energy / np.cumsum(weight[order] * amplitude[order])))
