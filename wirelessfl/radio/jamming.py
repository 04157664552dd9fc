"""Friendly jamming: its power, its energy, its effect on the ledger, and the agreement of server and jammer.

The jammer sends x_CJ = α_CJ e^{−j∠ĥ_CJ} (n_I + j n_Q) on every symbol (`complex`, circular) or α_CJ e^{−j∠ĥ_CJ} n_I
(`real`, the published form). ``a = α_CJ |h_CJ|`` below is its amplitude at the receiver, per real dimension. Theorem
numbers are those of Mao, Yin, Yener, Liu, "Providing Differential Privacy for Federated Learning Over Wireless".
"""

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.radio.links import Links
from wirelessfl.radio.power_control import (
    AirInterface,
    PowerControl,
    TransmitPlan,
    at_the_clip,
    credited_backoff,
    received_bound,
    server_gain_for_received_limit,
)

JammerNoise = Literal["complex", "real"]


def effective_noise_std(
    jammer_gain: float, jammer_channel: complex, server_gain: float, channel_noise_std: float
) -> float:
    """σ_m = sqrt((α_CJ |h_CJ|)² + σ_c²)/α_u: noise per coordinate after the server divides by α_u (rescale aside)."""
    return math.hypot(jammer_gain * abs(jammer_channel), channel_noise_std) / server_gain


def required_noise_std_exact(sensitivity: float, rounds: int, gdp_mu: float) -> float:
    """σ_m = X sqrt(M)/μ*: M Gaussian releases of l2 sensitivity X then compose to exactly the budget μ*."""
    precondition(
        rounds >= 1 and sensitivity >= 0 and gdp_mu > 0,
        f"no noise meets rounds={rounds}, sensitivity={sensitivity}, gdp_mu={gdp_mu}",
    )
    return sensitivity * math.sqrt(rounds) / gdp_mu


def jammer_gain_for_noise(
    required_noise_std: float,
    server_gain: float,
    channel_noise_std: float,
    jammer_channel: complex = 1.0,
    margin: float = 1.0,
) -> float:
    """The smallest α_CJ with effective noise at least ``required_noise_std``, times ``margin``.

    Exactly 0 where the receiver noise is enough by itself; the margin then has nothing to multiply.

    Raises:
        ValueError: if the jammer's channel is zero or the required noise is not a finite number.
    """
    precondition(
        0 <= required_noise_std < math.inf,
        f"required_noise_std must be finite and at least 0, not {required_noise_std}",
    )
    precondition(abs(jammer_channel) > 0, "jammer_channel must not be zero: the server would receive no jamming")
    missing = (server_gain * required_noise_std) ** 2 - channel_noise_std**2
    return margin * math.sqrt(missing) / abs(jammer_channel) if missing > 0 else 0.0


def server_gain_for_noise(
    required_noise_std: float, channel_noise_std: float, jammer_gain: float = 0.0, jammer_channel: complex = 1.0
) -> float:
    """The α_u at which the noise that is there amounts to ``required_noise_std`` after division.

    With the jammer at its power limit this is `lower_gain`; without a jammer it is the baseline σ_c/σ_target, which
    buys the same σ_m without anyone jamming.
    """
    return math.hypot(jammer_gain * abs(jammer_channel), channel_noise_std) / required_noise_std


def jammer_energy(jammer_gain: float, num_symbols: int, noise: JammerNoise) -> float:
    """Expected energy of the jamming: 2 α_CJ² per symbol if circular, α_CJ² if real.

    ``num_symbols`` is d, or d/2 with I/Q packing (`units.num_symbols`).
    """
    return _energy_per_symbol(noise) * num_symbols * jammer_gain**2


def jammer_gain_limit(power_budget: float, num_symbols: int, noise: JammerNoise) -> float:
    """The largest α_CJ whose expected energy stays inside P_CJ; infinite for an infinite budget."""
    return math.sqrt(power_budget / (_energy_per_symbol(noise) * num_symbols))


def shortfall_probability(energy_at_unit_channel: float, power_budget: float, path_gain: float = 1.0) -> float:
    """Pr(short) = 1 − exp(−E₁/(P_CJ β_CJ)): probability that a Rayleigh channel needs more energy than the jammer has.

    ``energy_at_unit_channel`` is E₁, the energy needed at |h_CJ| = 1.
    """
    return -math.expm1(-energy_at_unit_channel / (power_budget * path_gain))


def received_jamming_std(
    jammer_gain: float,
    jammer_channel: NDArray[np.complex128] | complex,
    noise: JammerNoise,
    phase_error: NDArray[np.float64] | float = 0.0,
) -> NDArray[np.float64]:
    """Standard deviation per real coordinate with which the jamming enters what the server uses.

    Circular noise arrives with ``a`` whatever its phase; real noise, θ = ∠(h_CJ/ĥ_CJ) off, with ``a |cos θ|``. Channel
    and phase error may be arrays over the pieces of a slot.
    """
    amplitude = np.asarray(jammer_gain * _magnitude(jammer_channel))
    return amplitude if _energy_per_symbol(noise) == 2 else np.asarray(amplitude * np.abs(np.cos(phase_error)))


def accounted_noise_std(
    jammer_gain: float,
    jammer_channel: NDArray[np.complex128] | complex,
    server_gain: float,
    channel_noise_std: float,
    noise: JammerNoise,
    phase_error: NDArray[np.float64] | float = 0.0,
) -> NDArray[np.float64]:
    """The noise that protects against a receiver of both quadratures, per coordinate in units of y/α_u.

    Circular jamming counts in full. Real jamming lies on one line of the complex plane; what is seen of it across the
    signal's direction predicts the rest, and the ledger may count only
    σ_c² (σ_c² + a²)/(σ_c² + a² sin²θ) (RADIO.md). Not valid for real jamming under I/Q packing, which must be refused.

    Args:
        jammer_gain: α_CJ.
        jammer_channel: h_CJ, a number or (T,) over the pieces of a slot.
        server_gain: α_u.
        channel_noise_std: σ_c per real dimension.
        noise: "complex" (circular) or "real".
        phase_error: θ, the angle between the jamming and a client's signal as received: ∠(h_CJ/ĥ_CJ) − ∠(h_i/ĥ_i),
            a number, (n,) or (n, T). With perfect CSI of the clients it is the jammer's own phase error.

    Returns:
        The accountable σ_m in the shape of ``phase_error``.
    """
    amplitude_squared = (jammer_gain * _magnitude(jammer_channel)) ** 2
    noise_power = channel_noise_std**2
    across = 0.0 if _energy_per_symbol(noise) == 2 else np.sin(phase_error) ** 2
    full = np.broadcast_to(noise_power + amplitude_squared, np.shape(phase_error))
    if channel_noise_std == 0:
        return np.where(across == 0, np.sqrt(full), 0.0) / server_gain
    return np.asarray(np.sqrt(full / (1.0 + amplitude_squared * across / noise_power)) / server_gain)


def _magnitude(channel: NDArray[np.complex128] | complex) -> NDArray[np.float64]:
    # |h| as `abs` of a single number rounds it, which the vectorised one of an array does not
    h = np.asarray(channel, dtype=np.complex128)
    return np.asarray(np.hypot(h.real, h.imag))


def _energy_per_symbol(noise: JammerNoise) -> int:
    precondition(noise in ("complex", "real"), f"noise must be 'complex' or 'real', not {noise!r}")
    return 2 if noise == "complex" else 1


class Calibration(Protocol):
    """Effective noise that a slot needs, and the α_u for which the noise there is suffices."""

    def required_noise_std(self, policy: PowerControl, plan: TransmitPlan, links: Links) -> float:
        """σ_m that the slot must reach, in units of y/α_u."""

    def server_gain(self, received_noise_std: float, links: Links) -> float:
        """The largest α_u at which noise of this standard deviation at the receiver is enough."""


@dataclass(frozen=True)
class TheoremCalibration:
    """Theorems 2 and 4 of the cross-layer paper: the same σ_m in every round, from the sensitivity 1/|D|."""

    noise_std: float

    def required_noise_std(self, policy: PowerControl, plan: TransmitPlan, links: Links) -> float:
        """The constant σ_m of the theorem."""
        return self.noise_std

    def server_gain(self, received_noise_std: float, links: Links) -> float:
        """α_u = noise/σ_m."""
        return server_gain_for_noise(self.noise_std, received_noise_std)


@dataclass(frozen=True)
class ExactCalibration:
    """The accounted sensitivity of this slot's worst client, and exact Gaussian composition (PRIVACY.md).

    Attributes:
        rounds: M.
        gdp_mu: μ*, the budget of the whole run.
        reach: X = reach · R_i: 2 for a sample, or for a client that is replaced; 1 for a client left out.
    """

    rounds: int
    gdp_mu: float
    reach: float

    def required_noise_std(self, policy: PowerControl, plan: TransmitPlan, links: Links) -> float:
        """σ_m = X √M/μ* for the client that is received with the largest amplitude."""
        loudest = float(received_bound(policy, plan, links).max(initial=0.0))
        return required_noise_std_exact(self.reach * loudest, self.rounds, self.gdp_mu)

    def server_gain(self, received_noise_std: float, links: Links) -> float:
        """The α_u at which no client is received above noise · μ*/(reach √M)."""
        limit = received_noise_std * self.gdp_mu / (self.reach * math.sqrt(self.rounds))
        return server_gain_for_received_limit(links, limit)


@dataclass(frozen=True)
class ExactStepCalibration:
    """Exact composition at the share of one sample, for updates of one step of per-sample-clipped gradients.

    The theorem's sensitivity holds here, so that this differs from `TheoremCalibration` by its conversion alone (and,
    with batches smaller than n_i or imperfect channel knowledge, by what the theorem leaves out).

    Attributes:
        rounds: M.
        gdp_mu: μ*, the budget of the whole run.
        reach: 1 for a sample left out, 2 for one that is replaced.
        total_samples: |D|.
        batch_size: samples in the mean of a step, at most.
    """

    rounds: int
    gdp_mu: float
    reach: float
    total_samples: int
    batch_size: int

    def required_noise_std(self, policy: PowerControl, plan: TransmitPlan, links: Links) -> float:
        """σ_m = X √M/μ*, X = reach · max_i |h_i/ĥ_i| p_i/min(n_i, batch).

        A back-off earns no credit; one below 1, of a client that is heard louder than its weight, costs. Gains must be
        public, or follow norms in a way that is non-expansive.
        """
        sent = at_the_clip(policy, plan, links)
        return self._required(links, np.minimum(credited_backoff(sent, plan, links), 1.0))

    def server_gain(self, received_noise_std: float, links: Links) -> float:
        """α_u = noise/σ_m: in units of y/α_u the share of a sample does not depend on α_u."""
        return server_gain_for_noise(self._required(links, np.ones(len(links))), received_noise_std)

    def _required(self, links: Links, backoff: NDArray[np.float64]) -> float:
        in_step = np.minimum(links.weight * self.total_samples, self.batch_size)
        shares = np.abs(links.channel) / np.abs(links.estimate) * links.weight / in_step / backoff
        return required_noise_std_exact(self.reach * float(shares.max(initial=0.0)), self.rounds, self.gdp_mu)


@dataclass(frozen=True)
class Jamming:
    """The cooperative jammer's side of the protocol.

    Attributes:
        calibration: how much noise is needed.
        margin: factor on the jammer's gain; the paper's experiments use 7.
        gain_limit: the largest α_CJ that its power allows.
        noise: circular ("complex") or "real".
        on_shortfall: "record" sends what it can and lets ε rise; "lower_gain" lowers α_u in that slot instead.
    """

    calibration: Calibration
    margin: float
    gain_limit: float
    noise: JammerNoise
    on_shortfall: Literal["record", "lower_gain"]

    def agree(
        self, policy: PowerControl, plan: TransmitPlan, links: Links, air: AirInterface, jammer_estimate: complex
    ) -> tuple[TransmitPlan, float]:
        """The plan and the gain α_CJ of a slot.

        Args:
            policy: the power control.
            plan: what the server would announce without a jammer.
            links: (k,) the clients that will send.
            air: constants of the uplink.
            jammer_estimate: ĥ_CJ, what the jammer believes its channel to be; what arrives follows the true one.

        Returns:
            The plan, with a lower α_u where power is short and ``lower_gain`` is asked for, and α_CJ.
        """
        required = self.calibration.required_noise_std(policy, plan, links)
        wanted = jammer_gain_for_noise(required, plan.server_gain, air.channel_noise_std, jammer_estimate, self.margin)
        gain = min(wanted, self.gain_limit)
        noise_there = math.hypot(gain * abs(jammer_estimate), air.channel_noise_std)
        # Only a shortfall of the noise that is needed counts, not one of the margin on top of it.
        if self.on_shortfall == "lower_gain" and noise_there < required * plan.server_gain:
            enough = self.calibration.server_gain(noise_there, links)
            plan = plan.with_server_gain(min(plan.server_gain, enough))
        return plan, gain
