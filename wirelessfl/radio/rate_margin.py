"""The rate that an imperfectly known channel carries but for a stated share of outages."""

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.radio.csi import Estimator, estimate_trust

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
    if not 0 < outage < 1:
        raise ValueError(f"outage must lie between 0 and 1, not {outage}")
    known, power = variance == 0, np.abs(mean) ** 2
    if known.all():
        return np.asarray(power)
    half = np.where(known, 1.0, variance / 2.0)
    noncentrality = power / half
    certain = noncentrality > _CERTAIN
    exact = special.chndtrix(outage, 2.0, np.where(certain, 0.0, noncentrality))
    nearly = (np.sqrt(noncentrality) + special.ndtri(outage)) ** 2 + 1.0
    return np.asarray(np.where(known, power, half * np.where(certain, nearly, exact)))
