"""Friendly jamming: its power, its energy, and its effect on the ledger.

The jammer sends x_CJ = α_CJ e^{−j∠ĥ_CJ} (n_I + j n_Q) on every symbol (`complex`, circular) or α_CJ e^{−j∠ĥ_CJ} n_I
(`real`, the published form). ``a = α_CJ |h_CJ|`` below is its amplitude at the receiver, per real dimension. Theorem
numbers are those of Mao, Yin, Yener, Liu, "Providing Differential Privacy for Federated Learning Over Wireless".
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition

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
