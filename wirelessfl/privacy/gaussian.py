"""The exact privacy curve of the Gaussian mechanism, vectorised, its inverses, and the conversions that papers print.

A Gaussian mechanism of L2 sensitivity X and noise standard deviation sigma is exactly ``gdp_mu`` = X/sigma
Gaussian differentially private, and the adaptive composition of such mechanisms has
``gdp_mu² = sum of (X/sigma)²`` (Dong, Roth and Su, "Gaussian Differential Privacy", 2019). Its curve is

    delta(epsilon) = Φ(mu/2 − epsilon/mu) − e^epsilon Φ(−mu/2 − epsilon/mu)

(Balle and Wang, ICML 2018, Theorem 8). Everything here is written in ``threshold`` t = epsilon/mu − mu/2, in
which the curve is ``Φ(−t) − φ(t) M(t + mu)`` with the Mills ratio M: no large exponent ever appears, so that
it is accurate from mu = 1e-6 up to epsilons far beyond any use.

The conversions between an additive cost and (epsilon, delta) at the end are the *published* readings; for Gaussian
noise the exact curve is tighter.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

EPSILON_CAP = 1e6
"""An accounted epsilon above this is reported as infinite, because such a guarantee has no meaning."""

_ROUNDING = np.finfo(np.float64).eps
_SQRT_HALF = np.sqrt(0.5)
_BISECTIONS = 70  # the brackets are below 2**13 wide: the last step is below one unit in the last place of 1.0


def _delta_and_slope(
    threshold: NDArray[np.float64], gdp_mu: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # Delta at t = epsilon/mu − mu/2 >= −mu/2, strictly decreasing in t, and its derivative −mu φ(t) M(t + mu).
    density = np.exp(-0.5 * threshold**2)
    far_tail = density * 0.5 * special.erfcx((threshold + gdp_mu) * _SQRT_HALF)
    near_tail = np.where(
        threshold > 0,
        density * 0.5 * special.erfcx(np.maximum(threshold, 0.0) * _SQRT_HALF),
        special.ndtr(-threshold),
    )
    return np.maximum(near_tail - far_tail, 0.0), -gdp_mu * far_tail


def _threshold_of(
    delta: NDArray[np.float64], gdp_mu: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.float64]:
    # The t between ``low`` and ``high`` at which the curve falls to ``delta``, from the side where it is below.
    #
    # Newton steps on ln delta, which is concave (delta is a log-concave law's tail, integrated against a log-concave
    # function): from the right they never pass the root. Where rounding breaks that, bisection takes over.
    threshold, done = high, np.zeros(delta.shape, dtype=np.bool_)
    with np.errstate(all="ignore"):  # a delta that underflows has no logarithm
        for _ in range(_BISECTIONS):
            value, slope = _delta_and_slope(threshold, gdp_mu)
            above = value > delta
            low = np.where(above & ~done, threshold, low)
            high = np.where(above | done, high, threshold)
            newton = threshold - value / slope * np.log(value / delta)
            rounding = _ROUNDING * np.maximum(1.0, np.abs(high))
            done |= (high - low <= rounding) | (~above & (high - newton <= rounding))
            if done.all():
                break
            threshold = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
    return high


def _checked_delta(delta: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(delta, dtype=np.float64)
    if not np.all((values > 0) & (values < 1)):
        raise ValueError(f"delta must lie strictly between 0 and 1, found {delta!r}")
    return values


def _non_negative(name: str, value: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(value, dtype=np.float64)
    if not np.all(values >= 0):
        raise ValueError(f"{name} must not be negative or NaN, found {value!r}")
    return values


def gaussian_delta(epsilon: ArrayLike, gdp_mu: ArrayLike) -> NDArray[np.float64]:
    """Smallest delta at which a ``gdp_mu``-Gaussian mechanism is (epsilon, delta) differentially private.

    Args:
        epsilon: Non-negative, any shape that broadcasts with ``gdp_mu``.
        gdp_mu: Sensitivity over noise standard deviation, non-negative; infinity stands for no noise.

    Returns:
        Array of the broadcast shape.

    Raises:
        ValueError: If an argument is negative or NaN.
    """
    epsilon, gdp_mu = np.broadcast_arrays(_non_negative("epsilon", epsilon), _non_negative("gdp_mu", gdp_mu))
    usual = (gdp_mu > 0) & np.isfinite(gdp_mu)
    mu = np.where(usual, gdp_mu, 1.0)
    with np.errstate(under="ignore"):
        delta = _delta_and_slope(epsilon / mu - 0.5 * mu, mu)[0]
    return np.where(usual, delta, np.where(gdp_mu > 0, 1.0, 0.0))


def gaussian_epsilon(gdp_mu: ArrayLike, delta: ArrayLike) -> NDArray[np.float64]:
    """Smallest epsilon of a ``gdp_mu``-Gaussian mechanism at ``delta``; infinite above ``EPSILON_CAP``.

    Args:
        gdp_mu: Sensitivity over noise standard deviation, non-negative, infinity allowed; any shape.
        delta: In (0, 1), broadcast with ``gdp_mu``.

    Returns:
        Array of the broadcast shape, rounded up by at most a few units in the last place.

    Raises:
        ValueError: If ``gdp_mu`` is negative or NaN or ``delta`` is outside (0, 1).
    """
    gdp_mu, delta = np.broadcast_arrays(_non_negative("gdp_mu", gdp_mu), _checked_delta(delta))
    beyond = gdp_mu > 2.0 * np.sqrt(EPSILON_CAP)  # there epsilon >= mu²/2 − mu |Φ⁻¹(delta)| at any delta of use
    mu = np.where(beyond, 1.0, gdp_mu)
    with np.errstate(under="ignore"):
        low = -0.5 * mu
        high = np.maximum(-special.ndtri(delta), low)  # Φ(−t) >= delta(t) gives t <= −Φ⁻¹(delta)
        threshold = _threshold_of(delta, mu, low, high)
        covered = _delta_and_slope(low, mu)[0] <= delta  # (0, delta) already holds
    epsilon = np.where(covered, 0.0, mu * (threshold + 0.5 * mu))
    return np.where(beyond | (epsilon > EPSILON_CAP), np.inf, epsilon)


def gaussian_mu(epsilon: ArrayLike, delta: ArrayLike) -> NDArray[np.float64]:
    """Largest ``gdp_mu`` whose Gaussian mechanism is (epsilon, delta) differentially private.

    Args:
        epsilon: Non-negative and finite, broadcast with ``delta``.
        delta: In (0, 1).

    Returns:
        Array of the broadcast shape: ``noise_std = sensitivity / gdp_mu`` is the least noise that suffices.

    Raises:
        ValueError: If ``epsilon`` is negative, infinite or NaN, or ``delta`` is outside (0, 1).
    """
    epsilon, delta = np.broadcast_arrays(_non_negative("epsilon", epsilon), _checked_delta(delta))
    if not np.all(np.isfinite(epsilon)):
        raise ValueError(f"epsilon must be finite, found {epsilon}")

    def mu_at(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
        root = np.sqrt(threshold**2 + 2.0 * epsilon)
        with np.errstate(divide="ignore", invalid="ignore"):  # the branch not taken may be 0/0
            return np.where(threshold > 0, 2.0 * epsilon / (threshold + root), root - threshold)

    def delta_of(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
        return _delta_and_slope(threshold, mu_at(threshold))[0]

    high, step = -special.ndtri(delta), 1.0
    with np.errstate(under="ignore"):
        while np.any(delta_of(high - step) < delta):
            step *= 2.0
        low = high - step
        for _ in range(_BISECTIONS):  # at the upper end of the bracket, delta is small enough
            middle = 0.5 * (low + high)
            above = delta_of(middle) > delta
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return mu_at(high)


def zcdp_epsilon(rho: ArrayLike, delta: ArrayLike) -> NDArray[np.float64]:
    """Epsilon = rho + 2 sqrt(rho ln(1/delta)) of a rho-zCDP mechanism (Bun and Steinke 2016, Proposition 1.3).

    The same formula closes Theorems 1 and 3 of the cross-layer paper and Theorem 1 of the zCDP paper.

    Args:
        rho: Non-negative, infinity allowed, any shape.
        delta: In (0, 1), broadcast with ``rho``.

    Raises:
        ValueError: If ``rho`` is negative or NaN or ``delta`` is outside (0, 1).
    """
    rho, log_term = _non_negative("rho", rho), -np.log(_checked_delta(delta))
    return rho + 2.0 * np.sqrt(rho * log_term)


def zcdp_rho(epsilon: ArrayLike, delta: ArrayLike) -> NDArray[np.float64]:
    """The rho at which ``zcdp_epsilon`` gives ``epsilon``: a²/L with L = ln(1/delta), a = −L + sqrt(L² + epsilon L).

    Written as (epsilon / (sqrt(L + epsilon) + sqrt(L)))², which does not cancel for small epsilon.

    Raises:
        ValueError: If ``epsilon`` is negative or NaN or ``delta`` is outside (0, 1).
    """
    epsilon, log_term = _non_negative("epsilon", epsilon), -np.log(_checked_delta(delta))
    root: NDArray[np.float64] = epsilon / (np.sqrt(log_term + epsilon) + np.sqrt(log_term))
    return root**2


def tail_constant(delta: ArrayLike) -> NDArray[np.float64]:
    """Q with sqrt(pi) Q exp(Q²) = 1/delta (Liu and Simeone, JSAC 2021), by Lambert's W.

    Raises:
        ValueError: If ``delta`` is outside (0, 1).
    """
    delta = _checked_delta(delta)
    squared: NDArray[np.float64] = 0.5 * special.lambertw(2.0 / (np.pi * delta**2)).real
    return np.sqrt(squared)


def tail_bound_epsilon(cost: ArrayLike, delta: ArrayLike) -> NDArray[np.float64]:
    """Epsilon of Liu and Simeone's Gaussian tail bound: the inverse of cost = (sqrt(epsilon + Q²) − Q)².

    Args:
        cost: Sum over rounds of 2 γ² c²/σ_c², non-negative, any shape.
        delta: In (0, 1), broadcast with ``cost``.

    Raises:
        ValueError: If ``cost`` is negative or NaN or ``delta`` is outside (0, 1).
    """
    cost = _non_negative("cost", cost)
    return cost + 2.0 * tail_constant(delta) * np.sqrt(cost)


def tail_bound_cost(epsilon: ArrayLike, delta: ArrayLike) -> NDArray[np.float64]:
    """The cost at which ``tail_bound_epsilon`` gives ``epsilon``: R = (sqrt(epsilon + Q²) − Q)².

    Written as (epsilon / (sqrt(epsilon + Q²) + Q))², which does not cancel for small epsilon.

    Raises:
        ValueError: If ``epsilon`` is negative or NaN or ``delta`` is outside (0, 1).
    """
    epsilon, tail = _non_negative("epsilon", epsilon), tail_constant(delta)
    root: NDArray[np.float64] = epsilon / (np.sqrt(epsilon + tail**2) + tail)
    return root**2
