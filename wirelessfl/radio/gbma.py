"""GBMA (Sery, Cohen: "On Analog Gradient Descent Learning Over Multiple Access Fading Channels", IEEE TSP 2020)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.expected_norms import ExpectedNorms
from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import AirInterface, PowerLimit, Transmission, TransmitPlan


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
