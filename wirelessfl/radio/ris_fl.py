"""Over-the-air aggregation of centred updates at the scale that their variances allow: the rule of RIS-FL.

Liu, Yuan, Zhang: "Reconfigurable Intelligent Surface Enabled Federated Learning: A Unified Communication-Learning
Design Approach", IEEE TWC 2021 (arXiv 2011.10282). The floor under a variance is that of the code that its
authors released.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import (
    AirInterface,
    Transmission,
    TransmitPlan,
    full_power_amplitude,
    inversion,
)


@dataclass(frozen=True)
class RisFl:
    """x_i = sqrt(η) p_i (Δ_i − m_i)/ĥ_i with η = min_i P_i |ĥ_i|²/(d p_i² v_i) over those who send; α_u = τ sqrt(η).

    m_i and v_i are mean and variance over the d coordinates of Δ_i. Every client tells both apart and without error;
    the server divides by sqrt(η) and adds Σ p_i m_i. Behind an array ĥ_i is f^H ĥ_i. The client that determines η sends
    at full power unless its variance is below the floor, and nobody exceeds P_i.

    Attributes:
        variance_floor: the least v_i, in the square of the parameters' unit.
    """

    variance_floor: float = 1e-3
    needs_norms: ClassVar[bool] = True

    def __post_init__(self) -> None:
        precondition(
            0 < self.variance_floor < np.inf, f"variance_floor must be positive and finite, not {self.variance_floor}"
        )

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u for centred updates of norm τ, the least that it can be; who has an estimate of zero is silent."""
        silent = links.estimate == 0
        heard = links.take(~silent)
        gain = self._server_gain(heard, np.full(len(heard), air.clip), air)
        return TransmitPlan.undoing_the_clip(gain, air, silent)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """Channel inversion towards the common scale."""
        return inversion(plan, links)

    def settled_by_variances(
        self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64], air: AirInterface
    ) -> TransmitPlan:
        """α_u of the variances v_i = ‖Δ_i − m_i‖²/d."""
        return plan.with_server_gain(self._server_gain(links, norms, air))

    def _server_gain(self, links: Links, norms: NDArray[np.float64], air: AirInterface) -> float:
        if not len(links):
            return 1.0
        deviation = np.sqrt(np.maximum(norms**2, self.variance_floor * air.dimension))
        return air.clip * float((full_power_amplitude(links) / (links.weight * deviation)).min())


def coordinate_means(updates: Any) -> NDArray[np.float64]:
    """(k,) the mean over the coordinates of each update (k, d), NumPy or torch, in the memory of the host."""
    means = updates.mean(1)
    return np.asarray(means.cpu() if hasattr(means, "cpu") else means, dtype=np.float64)
