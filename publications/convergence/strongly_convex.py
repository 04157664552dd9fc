r"""Lemma 6 of the zCDP paper (Hu, Guo, Gong 2020): local SGD with noise on a strongly convex objective.

The lemma bounds the mean of E f(θ̂^k) − f* over the K = T τ iterations by Theorem 2's right side over 2 λ (less
(f(θ^0) − f*)/K), and inherits what is wrong with it. Three counter-examples fit into a line each; all start at the
minimum θ^0 = θ*, where the first term is 0, and have β = 0:

1. *One of two devices a round.* f_1 = (x − 1)²/2, f_2 = (x + 1)²/2, no noise, τ = 1: eq. (15) is 0 for every K. After
   one step x = ±η, so the mean over two iterations is η²/4.
2. *All devices, two local steps.* f_1 = (x − 2)²/2, f_2 = (x + 1)², no noise: eq. (15) is 0. The gradients at 0 are −2
   and 2; the devices go to 2 (2 η − η²) and −(4 η − 4 η²), whose mean is η².
3. *One device, noise.* f = L x²/2, τ = 1: the gap settles at η σ²/(2 (2 − η L)), above the printed η σ²/4.

Assumption 4 as printed, ‖∇f(x) − ∇f(y)‖ ≥ λ ‖x − y‖, also lets f(x) = −λ x²/2 pass; the proof uses
‖∇f‖² ≥ 2 λ (f − f*), and that is what is taken for granted here. By it, whatever bounds the mean squared gradient norm
bounds the gap: `optimality_bound` is `local_sgd_bound` over 2 λ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from publications.convergence.local_sgd import LocalSgd, Smoothness, local_sgd_bound, printed_local_sgd_bound


def printed_optimality_bound(
    rounds: ArrayLike, run: LocalSgd, problem: Smoothness, convexity: float
) -> NDArray[np.float64]:
    """The right side of eq. (15) as printed, for T rounds (K = T τ); it does not hold, see the module.

    Args:
        rounds: T, any shape, at least 1.
        run: The algorithm's settings.
        problem: The objective's constants; ζ² plays no part.
        convexity: λ.

    Returns:
        Infinite where 5 η L + 3 τ² η² L² > 1, for which the lemma says nothing.
    """
    iterations = np.asarray(rounds, dtype=np.float64) * run.local_steps
    half = printed_local_sgd_bound(rounds, run, problem) / (2 * _checked(convexity))
    return np.asarray(half - problem.initial_gap / iterations)


def optimality_bound(rounds: ArrayLike, run: LocalSgd, problem: Smoothness, convexity: float) -> NDArray[np.float64]:
    """A bound on (1/T) Σ_{t<T} E f(θ^t) − f* that holds for devices that differ.

    Args:
        rounds: T, any shape, at least 1.
        run: The algorithm's settings; devices weigh the same, batches are drawn without bias.
        problem: The objective's constants.
        convexity: λ with ‖∇f‖² ≥ 2 λ (f − f*).
    """
    return np.asarray(local_sgd_bound(rounds, run, problem) / (2 * _checked(convexity)))


def _checked(convexity: float) -> float:
    if not 0 < convexity < np.inf:
        raise ValueError(f"convexity must be above 0 and finite, not {convexity}")
    return convexity
