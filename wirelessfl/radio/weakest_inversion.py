"""Channel inversion towards the loudest scale that the weakest sender of a round can follow."""

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
class WeakestInversion:
    """The loudest common scale of the round: p_t = min_i P_i |ĥ_i|²/(p_i² τ²) over those who send.

    The scale follows from the bound τ, and so it is public. The weakest client sends at full power, nobody backs off,
    and the weights arrive exact.

    Attributes:
        fade_threshold: g >= 0 on |ĥ|²/E|ĥ|²; who is below stays silent and does not hold the others back.
    """

    fade_threshold: float = 0.0
    needs_norms: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.fade_threshold < np.inf:
            raise ValueError(f"fade_threshold must be finite and at least 0, not {self.fade_threshold}")

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u = τ sqrt(p_t)."""
        silent = links.in_deep_fade(self.fade_threshold) | (links.estimate == 0)
        heard = links.take(~silent)
        server_gain = float((full_power_amplitude(heard) / heard.weight).min()) if len(heard) else 1.0
        return TransmitPlan.undoing_the_clip(server_gain, air, silent)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """Channel inversion towards the common scale."""
        return clamped_inversion(plan, links)
