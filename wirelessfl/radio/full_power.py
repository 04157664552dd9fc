"""Full power: everyone sends as loud as allowed and only the phase is corrected."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import AirInterface, Transmission, TransmitPlan, full_power_amplitude


@dataclass(frozen=True)
class FullPower:
    """α_i = (sqrt(P_i)/τ) e^{−j∠ĥ_i}: the received weights follow the channels instead of the data.

    The server divides by α_u = Σ |ĥ_i| sqrt(P_i) / Σ p_i, which leaves the sum of the received weights right. The
    back-off α_u p_i/(|ĥ_i| sqrt(P_i)) is then below 1 where a client is heard louder than its weight.
    """

    needs_norms: ClassVar[bool] = False

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u from the estimated channels; only a client whose estimate is exactly zero is silent."""
        silent = links.estimate == 0
        heard = links.take(~silent)
        server_gain = float(full_power_amplitude(heard).sum() / heard.weight.sum()) if len(heard) else 1.0
        return replace(TransmitPlan.undoing_the_clip(server_gain, air, silent), inverts=False)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """Full amplitude at the clip τ, phase turned back."""
        phase = links.estimate.conj() / np.abs(links.estimate)
        backoff = plan.server_gain * links.weight / full_power_amplitude(links)
        return Transmission(np.sqrt(links.power_budget) / plan.clip * phase, backoff)
