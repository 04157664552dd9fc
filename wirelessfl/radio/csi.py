"""Channel state information: estimates, what they say of a channel, and the cost of inverting it."""

import math
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.errors import precondition
from wirelessfl.radio.fading import FadingModel, Nakagami, Rayleigh, Recorded, Rician, Static
from wirelessfl.streams import NodeStream

Estimator = Literal["ls", "mmse"]


def estimate_channel(
    channel: NDArray[np.complex128],
    path_gain: NDArray[np.float64],
    error_std: NDArray[np.float64] | float,
    estimator: Estimator,
    stream: NodeStream,
    specular: NDArray[np.complex128] | complex = 0j,
) -> NDArray[np.complex128]:
    """The estimate ĥ of each channel from an observation h + e, e ~ CN(0, error_std² β).

    ``ls`` (least squares) is the observation as it stands. ``mmse`` is the linear estimate of least mean-squared error
    about the known mean √β μ of h, √β μ + a (h + e − √β μ) with a = s/(s + error_std²) and s = 1 − |μ|² the scattered
    power (Kay, "Estimation Theory", 1993, chapter 12). Where the scattered part is Gaussian, as with Rayleigh and
    Rician fading, it is the conditional mean, so that E[h/ĥ | ĥ] = 1; least squares is biased low.

    Args:
        channel: h (n,) or (n, R) for R estimates of each, path gain included.
        path_gain: β (n,), E|h|².
        error_std: standard deviation of the error relative to sqrt(β), (n,) or one number; 0 gives h exactly.
        estimator: "ls" or "mmse".
        stream: the draws of these n nodes.
        specular: μ in the shape of h, the mean of h/√β that is known, such as the line of sight; 0 for a uniform phase.

    Returns:
        ĥ in the shape of h.

    Raises:
        ValueError: if ``error_std`` is negative or not finite, or the estimator unknown.
    """
    each = (len(channel), *(1,) * (channel.ndim - 1))
    std = np.broadcast_to(error_std, (len(channel),)).reshape(each)
    trust = estimate_trust(std, estimator, np.abs(specular) ** 2)
    if np.all(std == 0):
        return channel
    amplitude = np.sqrt(path_gain).reshape(each)
    error = std * amplitude * stream.complex_normal(channel.size // max(len(channel), 1)).reshape(channel.shape)
    mean = amplitude * specular
    return np.asarray(mean + (channel + error - mean) * trust)


def mean_estimate_power(
    path_gain: NDArray[np.float64],
    error_std: NDArray[np.float64] | float,
    estimator: Estimator,
    specular_power: NDArray[np.float64] | float = 0.0,
) -> NDArray[np.float64]:
    """E|ĥ|² (n,) for any fading law of mean power 1.

    β (1 + error_std²) for ls; β (|μ|² + s²/(s + error_std²)) for mmse, s = 1 − |μ|² (`estimate_channel`).

    Args:
        path_gain: β (n,).
        error_std: relative to sqrt(β), (n,) or one number.
        estimator: "ls" or "mmse".
        specular_power: |μ|² (n,) or one number.
    """
    trust = estimate_trust(error_std, estimator, specular_power)
    known = 0.0 if estimator == "ls" else specular_power
    return np.asarray(path_gain * (1.0 - known + np.square(error_std)) * trust**2 + path_gain * known)


def estimate_trust(
    error_std: NDArray[np.float64] | float, estimator: Estimator, specular_power: NDArray[np.float64] | float
) -> NDArray[np.float64] | float:
    """The factor a = s/(s + error_std²) on what was observed beside the known mean, s the scattered power; 1 for ls.

    Args:
        error_std: relative to sqrt(β), (n,) or one number.
        estimator: "ls" or "mmse".
        specular_power: 1 − s, (n,) or one number.

    Raises:
        ValueError: if ``error_std`` is negative or not finite, or the estimator unknown.
    """
    if not np.all((np.asarray(error_std) >= 0) & np.isfinite(error_std)):
        raise ValueError(f"error_std must be finite and at least 0, not {error_std}")
    precondition(estimator in get_args(Estimator), f"estimator must be one of {get_args(Estimator)}, not {estimator!r}")
    if estimator == "ls":
        return 1.0
    scattered, noise = np.maximum(1.0 - specular_power, 0.0), np.square(error_std)
    # Without noise the observation is the channel, also where nothing is scattered.
    return np.where(noise == 0, 1.0, scattered / np.where(noise == 0, 1.0, scattered + noise))


# Noncentrality above which the normal approximation of a chi-square quantile is right to 1e-8
_CERTAIN = 2e6


def channel_given_estimate(
    estimate: NDArray[np.complex128],
    path_gain: NDArray[np.float64],
    error_std: NDArray[np.float64] | float,
    estimator: Estimator,
    specular: NDArray[np.complex128],
) -> tuple[NDArray[np.complex128], NDArray[np.float64]]:
    """Mean and variance (n,) of h given ĥ, for a part that is scattered as CN around the known one.

    With an observation h + e, e ~ CN(0, σ²β), known part √β μ and scattered power s = 1 − |μ|², h given ĥ is
    CN(√β μ + a (h + e − √β μ), v) with a = s/(s + σ²) and v = β σ² a (Kay, "Estimation Theory", 1993, chapter 12). For
    Rician fading s = 1/(K + 1), so that v = σ²β/(1 + (K + 1)σ²); Rayleigh is K = 0.

    Args:
        estimate: ĥ (n,), as `estimate_channel` gives it.
        path_gain: β (n,).
        error_std: σ relative to √β, (n,) or one number.
        estimator: by which ĥ was found: "ls" is the observation itself, "mmse" the mean.
        specular: μ (n,), the mean of h/√β that is known; 0 for a uniform phase.
    """
    trust = estimate_trust(error_std, "mmse", np.abs(specular) ** 2)
    mean = np.sqrt(path_gain) * specular
    expected = estimate if estimator == "mmse" else mean + (estimate - mean) * trust
    return np.asarray(expected), np.asarray(path_gain * np.square(error_std) * trust)


def outage_power(mean: NDArray[np.complex128], variance: NDArray[np.float64], outage: float) -> NDArray[np.float64]:
    """The power q (n,) that |h|² falls below with probability ``outage``, for h ~ CN(mean, variance).

    2|h|²/v follows the noncentral chi-square law with 2 degrees of freedom and noncentrality 2|mean|²/v.

    Args:
        mean: (n,) E[h | ĥ].
        variance: v (n,) of h given ĥ; 0 where the channel is known, and then q = |mean|².
        outage: in (0, 1).

    Raises:
        ValueError: if ``outage`` is out of range.
    """
    precondition(0 < outage < 1, f"outage must lie between 0 and 1, not {outage}")
    known, power = variance == 0, np.abs(mean) ** 2
    if known.all():
        return np.asarray(power)
    half = np.where(known, 1.0, variance / 2.0)
    noncentrality = power / half
    certain = noncentrality > _CERTAIN
    exact = special.chndtrix(outage, 2.0, np.where(certain, 0.0, noncentrality))
    nearly = (np.sqrt(noncentrality) + special.ndtri(outage)) ** 2 + 1.0
    return np.asarray(np.where(known, power, half * np.where(certain, nearly, exact)))


# Standard deviations from the mode beyond which a density is taken as zero: e^{-72}, below double precision
_TAIL = 12.0


def mean_inverse_power(
    law: FadingModel, threshold: float, error_std: float = 0.0, estimator: Estimator = "ls"
) -> float:
    """E[1/X; X >= g], X = |ĥ|²/E|ĥ|²; E₁(g) for Rayleigh fading, with or without estimation errors.

    The estimate of a Rician channel, or of one that does not fade, is Rician about its line of sight. Recorded gains
    give the mean over the recorded rounds of the node that costs most.

    Args:
        law: law of the gain h/√β.
        threshold: g > 0.
        error_std: standard deviation of the estimation error relative to √β.
        estimator: "ls" or "mmse".

    Raises:
        ValueError: if the threshold is not positive, where the mean may be infinite, or the law of X is not known.
    """
    precondition(0 < threshold < np.inf, f"threshold must be positive and finite, not {threshold}")
    match law:
        case Rayleigh():
            return float(special.exp1(threshold))
        case Rician():
            return _rician(_factor_of_estimate(law.rician_k / (law.rician_k + 1.0), error_std, estimator), threshold)
        case Static():
            return _rician(_factor_of_estimate(1.0, error_std, estimator), threshold)
        case Nakagami() if error_std == 0:
            return _nakagami(law.nakagami_m, threshold)
        case Recorded() if error_std == 0:
            return _recorded(law, threshold)
        case _:
            raise ValueError(f"the power of the estimate of {type(law).__name__} fading has no known law")


def _factor_of_estimate(line_of_sight: float, error_std: float, estimator: Estimator) -> float:
    # Rician factor of ĥ, the power of its line of sight over the rest; infinite where nothing is scattered
    power = float(mean_estimate_power(np.ones(1), error_std, estimator, line_of_sight)[0])
    scattered = power - line_of_sight
    return line_of_sight / scattered if scattered > 1e-15 else math.inf


def _rician(factor: float, threshold: float) -> float:
    # With u = sqrt((K+1) X) the density of u is 2u e^{−(u − √K)²} e^{−2√K u} I₀(2√K u)
    if math.isinf(factor):
        return 1.0 if threshold <= 1.0 else 0.0
    mode, lowest = math.sqrt(factor), math.sqrt((factor + 1.0) * threshold)

    def density(log_u: float) -> float:
        u = math.exp(log_u)
        return 2.0 * (factor + 1.0) * math.exp(-((u - mode) ** 2)) * float(special.i0e(2.0 * mode * u))

    breaks = [max(mode - _TAIL, 1e-3 * lowest), max(mode, 1e-3 * lowest), mode + _TAIL]
    return _integral(density, lowest, max(mode, lowest) + _TAIL, breaks)


def _nakagami(shape: float, threshold: float) -> float:
    # X follows Gamma(m, 1/m); with v = ln X the mean of 1/X is the integral of the density of X over v
    norm = shape * math.log(shape) - math.lgamma(shape)
    width = 1.0 / math.sqrt(shape)

    def density(log_x: float) -> float:
        return math.exp(norm + (shape - 1.0) * log_x - shape * math.exp(log_x))

    breaks = [max(1.0 - _TAIL * width, 1e-3 * threshold), 1.0, 1.0 + _TAIL * width]
    return _integral(density, threshold, max(1.0, threshold) + 2 * _TAIL * width + 80.0 / shape, breaks)


def _recorded(law: Recorded, threshold: float) -> float:
    power = np.abs(law.gains) ** 2
    known = np.isfinite(power)
    kept = np.where(known & (power >= threshold), power, np.inf)
    counted = known.sum(axis=0)
    return float(np.max((1.0 / kept).sum(axis=0)[counted > 0] / counted[counted > 0], initial=0.0))


def _integral(density: Callable[[float], float], low: float, high: float, breaks: Sequence[float]) -> float:
    # The integral over the logarithm of the variable, cut where the density changes its scale
    from scipy import integrate  # with optimize it takes a fifth of a second, which few scenarios need

    inside = sorted({min(max(value, low), high) for value in breaks} | {low, high})
    total = 0.0
    for start, end in zip(np.log(inside[:-1]), np.log(inside[1:]), strict=True):
        total += float(integrate.quad(density, start, end, epsabs=1e-300, epsrel=1e-10, limit=200)[0])
    return total
