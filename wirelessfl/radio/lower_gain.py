"""The baseline of every jammer: what lowering α_u alone buys."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.agreement import Calibration
from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import (
    AirInterface,
    Transmission,
    TransmitPlan,
    clamped_inversion,
    full_power_amplitude,
)


@dataclass(frozen=True)
class LowerGain:
    """Clamped inversion at the largest α_u at which the receiver's own noise is private enough.

    The noise after division, σ_c/α_u, is that of a jammer with the same calibration; what a jammer adds is a larger
    α_u, which helps only against noise that does not count (interference, quantisation) and against back-off.

    Attributes:
        calibration: how much noise is enough.
        rescale: "clip_norm" undoes the 1/τ at the server; "none" is the published form.
    """

    calibration: Calibration
    rescale: Literal["clip_norm", "none"] = "clip_norm"
    needs_norms: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.rescale not in ("clip_norm", "none"):
            raise ValueError(f"rescale must be 'clip_norm' or 'none', not {self.rescale!r}")

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u of the calibration; where nobody can be heard too loudly, the one at which all are at full power."""
        silent = links.estimate == 0
        heard = links.take(~silent)
        gain = self.calibration.server_gain(air.channel_noise_std, heard) if len(heard) else 1.0
        if np.isinf(gain):
            gain = float((full_power_amplitude(heard) / heard.weight).max())
        scale = gain / air.clip if self.rescale == "clip_norm" else gain
        return TransmitPlan(gain, scale, air.clip, silent)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """Clamped inversion with the bound τ."""
        return clamped_inversion(plan, links)
