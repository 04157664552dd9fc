"""The shortest vector in an intersection of half-spaces, from a guess at which of them hold it back."""

import numpy as np
from numpy.typing import NDArray

# Relative size of the diagonal that keeps the Gram matrix of parallel half-spaces regular
_RIDGE = 1e-11

# Relative distance from which a half-space is violated
_VIOLATED = 1e-9


def least_distance(
    rows: NDArray[np.float64], least: NDArray[np.float64], active: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The x (m,) of least norm with R x >= b, and at which of the n half-spaces it ends.

    x = Rᵀλ with λ >= 0 of least ½ λᵀRRᵀλ − bᵀλ, by the active sets of Lawson and Hanson (Solving Least Squares
    Problems, 1974, chapter 23) on the Gram matrix (Bro, De Jong, J. Chemometrics 1997). A good guess saves almost all
    of its steps; the result does not depend on it but for rounding.

    Args:
        rows: R (n, m).
        least: b (n,), all positive.
        active: (n,) the guess; none of them for no guess.
    """
    multipliers, active = _guessed(rows, least, active)
    for _ in range(10 * len(least)):
        missing = 1.0 - rows @ (rows.T @ multipliers) / least
        missing[active] = 0.0
        most = int(missing.argmax())
        if missing[most] <= _VIOLATED:
            break
        active[most] = True
        multipliers, active = _settled(rows, least, active, multipliers)
    return rows.T @ multipliers, active


def _guessed(
    rows: NDArray[np.float64], least: NDArray[np.float64], active: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    # Positive multipliers of the guess, without those that pull
    active, multipliers = active.copy(), np.zeros(len(least))
    while active.any():
        found = _multipliers(rows[active], least[active])
        if np.all(found > 0):
            multipliers[active] = found
            break
        active[active] = found > 0
    return multipliers, active


def _settled(
    rows: NDArray[np.float64], least: NDArray[np.float64], active: NDArray[np.bool_], multipliers: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    # The best multipliers of an active set, as far as they stay positive on the way from the present ones
    while True:
        target = np.zeros(len(least))
        target[active] = _multipliers(rows[active], least[active])
        falling = active & (target <= 0)
        if not falling.any():
            return target, active
        way = multipliers[falling] / (multipliers[falling] - target[falling])
        multipliers = multipliers + way.min() * (target - multipliers)
        active = active.copy()
        active[np.flatnonzero(falling)[way <= way.min()]] = False
        multipliers = np.where(active, np.maximum(multipliers, 0.0), 0.0)


def _multipliers(rows: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    # Those with which all half-spaces are reached at once
    gram = rows @ rows.T
    gram.flat[:: len(gram) + 1] *= 1.0 + _RIDGE
    return np.asarray(np.linalg.solve(gram, least))
