"""E[1/X; X >= g] of the normalised power X = |ĥ|²/E|ĥ|²: the mean cost of inverting a channel above a threshold."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import integrate, special

from wirelessfl.radio.csi import Estimator, mean_estimate_power
from wirelessfl.radio.fading import FadingModel, Nakagami, Rayleigh, Recorded, Rician, Static

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
    if not 0 < threshold < np.inf:
        raise ValueError(f"threshold must be positive and finite, not {threshold}")
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
    inside = sorted({min(max(value, low), high) for value in breaks} | {low, high})
    total = 0.0
    for start, end in zip(np.log(inside[:-1]), np.log(inside[1:]), strict=True):
        total += float(integrate.quad(density, start, end, epsabs=1e-300, epsrel=1e-10, limit=200)[0])
    return total
