"""Power control by channel inversion, and its baseline at full power.

Cross-layer power control: Mao, Yin, Yener, Liu: "Providing Differential Privacy for Federated Learning Over Wireless: A
Cross-layer Framework". Truncated inversion: Zhu, Wang, Huang: "Broadband Analog Aggregation", IEEE TWC 2020. Minimum
mean-squared error: Cao, Zhu, Xu, Huang: "Optimized Power Control for Over-the-Air Computation in Fading Channels", IEEE
TWC 2020.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.agreement import Calibration
from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import (
    AirInterface,
    PowerLimit,
    Transmission,
    TransmitPlan,
    clamped_inversion,
    full_power_amplitude,
    inversion,
)


class ChannelInversion:
    """Channel inversion inside the power budget, with gains that follow from the bound τ alone."""

    needs_norms: ClassVar[bool] = False

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """|α_i| = min(sqrt(P_i), α_u p_i/|ĥ_i|)/τ, the phase of the channel turned back."""
        return clamped_inversion(plan, links)


@dataclass(frozen=True)
class CrossLayer:
    """Every client inverts its channel towards a fixed α_u and backs off by s_i where its budget is too small.

    Attributes:
        server_gain: α_u, the same in every round.
        backoff: "bound" uses the clip τ and is public; "actual" uses the realised norm, which is private data.
        rescale: "clip_norm" undoes the 1/τ at the server; "none" is the published form.
    """

    server_gain: float
    backoff: Literal["bound", "actual"] = "bound"
    rescale: Literal["clip_norm", "none"] = "clip_norm"

    def __post_init__(self) -> None:
        precondition(0 < self.server_gain < np.inf, f"server_gain must be positive and finite, not {self.server_gain}")
        precondition(self.backoff in ("bound", "actual"), f"backoff must be 'bound' or 'actual', not {self.backoff!r}")
        precondition(
            self.rescale in ("clip_norm", "none"), f"rescale must be 'clip_norm' or 'none', not {self.rescale!r}"
        )

    non_expansive: ClassVar[bool] = True
    """Backing off by the realised norm projects α_u p_i Δ_i/(ĥ_i τ) onto the ball of radius √P_i."""

    @property
    def needs_norms(self) -> bool:
        """True for ``backoff="actual"``."""
        return self.backoff == "actual"

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u as configured; only a client whose estimate is exactly zero is silent."""
        receive_scale = self.server_gain / air.clip if self.rescale == "clip_norm" else self.server_gain
        return TransmitPlan(self.server_gain, receive_scale, air.clip, silent=links.estimate == 0)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """Clamped inversion with the bound or with the realised norms (required for "actual")."""
        if not self.needs_norms:
            return clamped_inversion(plan, links)
        if norms is None:
            raise ValueError("backoff 'actual' needs the realised norms of the updates")
        return clamped_inversion(plan, links, norms)


@dataclass(frozen=True)
class LowerGain(ChannelInversion):
    """Clamped inversion at the largest α_u at which the receiver's own noise is private enough.

    The noise after division, σ_c/α_u, is that of a jammer with the same calibration; what a jammer adds is a larger
    α_u, which helps only against noise that does not count (interference, quantisation) and against back-off.

    Attributes:
        calibration: how much noise is enough.
        rescale: "clip_norm" undoes the 1/τ at the server; "none" is the published form.
    """

    calibration: Calibration
    rescale: Literal["clip_norm", "none"] = "clip_norm"

    def __post_init__(self) -> None:
        precondition(
            self.rescale in ("clip_norm", "none"), f"rescale must be 'clip_norm' or 'none', not {self.rescale!r}"
        )

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u of the calibration; if no client can exceed its limit, the α_u at which all send at full power."""
        silent = links.estimate == 0
        heard = links.take(~silent)
        gain = self.calibration.server_gain(air.channel_noise_std, heard) if len(heard) else 1.0
        if np.isinf(gain):
            gain = float((full_power_amplitude(heard) / heard.weight).max())
        scale = gain / air.clip if self.rescale == "clip_norm" else gain
        return TransmitPlan(gain, scale, air.clip, silent)


@dataclass(frozen=True)
class TruncatedInversion(ChannelInversion):
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

    def __post_init__(self) -> None:
        precondition(
            0 < self.fade_threshold < np.inf, f"fade_threshold must be positive and finite, not {self.fade_threshold}"
        )
        precondition(
            self.mean_inverse_power is None or 0 < self.mean_inverse_power < np.inf,
            f"mean_inverse_power must be positive and finite, not {self.mean_inverse_power}",
        )

    @property
    def power_limit(self) -> PowerLimit:
        """Whether P_i limits every transmission or their mean."""
        return "peak" if self.mean_inverse_power is None else "average"

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """Least α_u that the power of a client allows, over all clients of the round; silence below the threshold.

        Raises:
            ValueError: if every power budget is infinite.
        """
        share = self.fade_threshold if self.mean_inverse_power is None else 1.0 / self.mean_inverse_power
        affordable = np.sqrt(share * links.mean_estimate_power * links.power_budget) / links.weight
        server_gain = float(affordable.min()) if len(links) else 1.0
        precondition(np.isfinite(server_gain), "truncated inversion needs a finite power budget")
        return TransmitPlan.undoing_the_clip(server_gain, air, links.in_deep_fade(self.fade_threshold))

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """Channel inversion; inside the budget by the choice of α_u."""
        return clamped_inversion(plan, links) if self.power_limit == "peak" else inversion(plan, links)


@dataclass(frozen=True)
class WeakestInversion(ChannelInversion):
    """The largest common scale of the round: p_t = min_i P_i |ĥ_i|²/(p_i² τ²) over those who send.

    The scale follows from the bound τ, and so it is public. The weakest client sends at full power, nobody backs off,
    and the weights arrive exact.

    Attributes:
        fade_threshold: g >= 0 on |ĥ|²/E|ĥ|²; who is below stays silent and does not hold the others back.
    """

    fade_threshold: float = 0.0

    def __post_init__(self) -> None:
        precondition(
            0 <= self.fade_threshold < np.inf,
            f"fade_threshold must be finite and at least 0, not {self.fade_threshold}",
        )

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u = τ sqrt(p_t)."""
        silent = links.in_deep_fade(self.fade_threshold) | (links.estimate == 0)
        heard = links.take(~silent)
        server_gain = float((full_power_amplitude(heard) / heard.weight).min()) if len(heard) else 1.0
        return TransmitPlan.undoing_the_clip(server_gain, air, silent)


@dataclass(frozen=True)
class MinimumMse(ChannelInversion):
    """The α_u that balances the misalignment of weak clients against noise, in this round.

    With g_i = |ĥ_i| sqrt(P_i), independent updates of norm τ and amplitudes b_i <= g_i, it minimises
    Σ (b_i/α_u − p_i)² + d σ_c²/α_u². Weak clients send at full power, strong ones invert their channels.
    """

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u = sqrt(η) of `optimal_server_gain`; only a client whose estimate is exactly zero is silent."""
        silent = links.estimate == 0
        heard = links.take(~silent)
        noise_energy = air.dimension * air.channel_noise_std**2
        gain = optimal_server_gain(full_power_amplitude(heard), heard.weight, noise_energy) if len(heard) else 1.0
        return TransmitPlan.undoing_the_clip(gain, air, silent)


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


@dataclass(frozen=True)
class NoCsi:
    """α_i = sqrt(P_i)/τ: full power whatever the channel is, neither its size nor its phase corrected.

    α_u is the largest sqrt(P_i): a unit, and no scale of a sum.
    """

    needs_norms: ClassVar[bool] = False

    def plan(self, links: Links, round_index: int, air: AirInterface) -> TransmitPlan:
        """α_u from the power budgets; only a client whose channel is exactly zero is silent.

        Raises:
            ValueError: if a power budget is infinite.
        """
        precondition(np.all(np.isfinite(links.power_budget)), "this power control needs finite power budgets")
        server_gain = float(np.sqrt(np.max(links.power_budget, initial=0.0))) or 1.0
        return replace(TransmitPlan.undoing_the_clip(server_gain, air, links.estimate == 0), inverts=False)

    def transmit(self, plan: TransmitPlan, links: Links, norms: NDArray[np.float64] | None = None) -> Transmission:
        """The same real amplitude towards every channel."""
        gain = (np.sqrt(links.power_budget) / plan.clip).astype(np.complex128)
        return Transmission(gain, np.ones(len(links)))
