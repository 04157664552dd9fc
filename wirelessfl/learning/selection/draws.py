"""Draws of clients: those of the largest scores, and weighted draws without replacement."""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning.selection.protocol import Chosen


def largest(score: NDArray[np.float64], count: int, generator: np.random.Generator) -> Chosen:
    """The ``count`` clients with the largest scores; of equal ones at the edge as many as are missing, at random.

    Args:
        score: (K,), no NaN.
        count: at most K.
        generator: decides between equal scores.
    """
    if count >= len(score):
        return Chosen(np.arange(len(score), dtype=np.int64), score)
    edge = np.partition(score, len(score) - count)[len(score) - count]
    above, at_edge = np.flatnonzero(score > edge), np.flatnonzero(score == edge)
    missing = count - len(above)
    if len(at_edge) > missing:
        at_edge = at_edge[generator.choice(len(at_edge), size=missing, replace=False, shuffle=False)]
    clients = np.sort(np.concatenate([above, at_edge])).astype(np.int64)
    return Chosen(clients, score[clients])


def weighted(weights: NDArray[np.float64], count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Positions, ascending, of ``count`` draws without replacement, each in proportion to the weights that are left.

    The smallest of independent exponential times of rates w_i have the law of successive draws (Efraimidis and
    Spirakis, Information Processing Letters, 2006).

    Args:
        weights: (K,), positive.
        count: at most K.
        generator: source of the times.
    """
    times = generator.standard_exponential(len(weights)) / weights
    if count >= len(weights):
        return np.arange(len(weights), dtype=np.int64)
    return np.sort(np.argpartition(times, count - 1)[:count] if count else np.zeros(0)).astype(np.int64)
