"""Conversions between an additive privacy cost and (epsilon, delta), as the papers print them.

These are the *published* readings. For Gaussian noise the exact curve of ``gaussian.py`` is tighter.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from wirelessfl.privacy.gaussian import _checked_delta, _non_negative


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
