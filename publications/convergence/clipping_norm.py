r"""Lemma 2 and section IV-B of the paper on multi-objective clipping: gradient steps on the clipping norm C.

Lemma 2 says E ℒ(C_t) − ℒ* ≤ (1 − 2 μ η)^t (ℒ(C_0) − ℒ*) + η σ_g²/(2 μ) for every 0 < η ≤ 2/L. **It does not hold.**

- *The factor.* On ℒ = L (C − C*)²/2, where μ = L, a step multiplies the gap by (1 − η L)². The lemma says 1 − 2 η L,
  which is smaller by (η L)² for every step size: at η = 0.75/L the gap would be multiplied by −0.5. At η = 2/L, which
  it allows, C jumps between two places for ever. Eq. (30) has the term L η²/2 that was lost on the way to (32).
- *The floor.* It lacks a factor L, and so has another unit than ℒ. With μ = L = 4, η = 1/4, σ_g = 1 and C_0 = C* one
  step leaves (L/2) η² σ_g² = 1/8, where the lemma says η/(2 μ) = 1/32.

With 0 < η < 2/L, `norm_bound` holds by the descent lemma, E ℒ(C⁺) ≤ ℒ − η (1 − L η/2) ℒ'² + L η² σ_g²/2, and by
ℒ'² ≥ 2 μ (ℒ − ℒ*).

Section IV-B concludes from the inequality of Polyak and Łojasiewicz (PL) for ℒ_model that ℒ = ℒ_model + κ C has one
minimiser. A linear term destroys PL: ℒ_model(C) = (C − a)² + 3 sin²(C − a) has it (Karimi, Nutini, Schmidt 2016), and
with κ = π and C = a − π/2 + y

    ℒ = y² + 3 cos² y + const,

which is even, with a maximum at y = 0 (its curvature there is 2 − 6): two minimisers, equally good.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

FLOOR = 1e-3
"""Least norm of eq. (12)."""


def printed_norm_bound(steps: ArrayLike, step: float, growth: float, variance: float, gap: float) -> Array:
    """Eq. (28) as printed.

    Args:
        steps: t, any shape.
        step: η.
        growth: μ of the PL inequality.
        variance: σ_g² of the gradient with respect to C.
        gap: ℒ(C_0) − ℒ*.
    """
    return np.asarray((1 - 2 * growth * step) ** np.asarray(steps) * gap + step * variance / (2 * growth))


def norm_bound(steps: ArrayLike, step: float, smoothness: float, growth: float, variance: float, gap: float) -> Array:
    """A bound on E ℒ(C_t) − ℒ* that holds, and that ℒ = L (C − C*)²/2 attains.

    Raises:
        ValueError: if the step is not between 0 and 2/L.
    """
    if not 0 < step * smoothness < 2:
        raise ValueError(f"step must lie between 0 and {2 / smoothness}, not {step}")
    kept = (1 - growth * step * (2 - smoothness * step)) ** np.asarray(steps)
    floor = smoothness * step * variance / (2 * growth * (2 - smoothness * step))
    return np.asarray(kept * gap + (1 - kept) * floor)


def quadratic_gap(steps: ArrayLike, step: float, smoothness: float, variance: float, gap: float) -> Array:
    """Exact E ℒ(C_t) − ℒ* on ℒ = L (C − C*)²/2, by counting steps."""
    found, wanted = [gap], np.asarray(steps)
    for _ in range(int(wanted.max())):
        found.append((1 - step * smoothness) ** 2 * found[-1] + smoothness * step**2 * variance / 2)
    return np.asarray(np.array(found)[wanted])


# --- section IV-B ----------------------------------------------------------------------------------------------------

CENTRE = 4.0
"""a, far enough from 0 for all that is of interest to lie at C > 0."""


def wavy_loss(norm: ArrayLike) -> Array:
    """(C − a)² + 3 sin²(C − a): PL, L = 8, and not convex."""
    offset = np.asarray(norm, dtype=np.float64) - CENTRE
    return np.asarray(offset**2 + 3 * np.sin(offset) ** 2)


def wavy_slope(norm: ArrayLike) -> Array:
    """Its derivative."""
    offset = np.asarray(norm, dtype=np.float64) - CENTRE
    return np.asarray(2 * offset + 3 * np.sin(2 * offset))


def descend(slope: Callable[[float], float], norm: float, step: float, steps: int, most: float = 1e6) -> float:
    """Where eq. (11) with (12) leads: C ← max(C − η · slope(C), 10⁻³), stopped at ``most``."""
    for _ in range(steps):
        norm = max(norm - step * slope(norm), FLOOR)
        if norm > most:
            return np.inf
    return norm


def printed_derivative(slope: Callable[[float], float], kappa: float) -> Callable[[float], float]:
    """Eq. (10): κ − (∂ℒ_model/∂C)/C, which is not the derivative of eq. (9)."""
    return lambda norm: kappa - slope(norm) / norm


def true_derivative(slope: Callable[[float], float], kappa: float) -> Callable[[float], float]:
    """Of eq. (9): κ + ∂ℒ_model/∂C."""
    return lambda norm: kappa + slope(norm)
