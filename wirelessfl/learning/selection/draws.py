"""Draws of clients: those of the largest scores, and weighted draws without replacement."""

import math

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning.selection.protocol import Chosen
from wirelessfl.learning.selection.sparse import SparseVector, others

_NOBODY = np.zeros(0, dtype=np.int64)
# By how much the bound on the smallest times grows where it leaves too few
_WIDER = 4.0


def largest(score: NDArray[np.float64], count: int, generator: np.random.Generator) -> Chosen:
    """The ``count`` clients with the largest scores; of equal ones at the edge as many as are missing, at random.

    Args:
        score: (K,), no NaN.
        count: at most K.
        generator: decides between equal scores.
    """
    return largest_of(SparseVector.whole(score), count, generator)


def largest_of(score: SparseVector, count: int, generator: np.random.Generator) -> Chosen:
    """The same of a sparse vector, at a cost that follows the n clients with a score of their own and ``count``.

    Args:
        score: (K,), no NaN; the rest too has a score where n < K.
        count: at most K.
        generator: decides between equal scores, as between those of the dense vector.
    """
    if count >= score.size:
        return Chosen(np.arange(score.size, dtype=np.int64), score.dense())
    edge = _edge(score, count)
    equal = score.values == edge
    above, rest = score.clients[score.values > edge], score.size - len(score.clients)
    if rest and score.rest > edge:
        above = np.concatenate([above, others(score.clients, np.arange(rest))])
    missing = count - len(above)
    if rest and score.rest == edge:
        apart, at_edge = score.clients[~equal], rest + int(np.count_nonzero(equal))
        drawn = others(apart, _positions(at_edge, missing, generator))
    else:
        drawn = score.clients[equal]
        drawn = drawn[_positions(len(drawn), missing, generator)]
    clients = np.sort(np.concatenate([above, drawn])).astype(np.int64)
    return Chosen(clients, score.at(clients))


def _edge(score: SparseVector, count: int) -> float:
    # The count-th largest
    values, rest = score.values, score.size - len(score.values)
    beyond = int(np.count_nonzero(values > score.rest)) if rest else len(values)
    if count > beyond:
        count -= rest
        if count <= int(np.count_nonzero(values >= score.rest)):
            return score.rest
    return float(np.partition(values, len(values) - count)[len(values) - count])


def _positions(among: int, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    # Positions of the clients that are drawn at the edge; nothing is drawn where all are needed
    if among <= count:
        return np.arange(among, dtype=np.int64)
    return generator.choice(among, size=count, replace=False, shuffle=False)


def weighted(
    weights: NDArray[np.float64],
    count: int,
    generator: np.random.Generator,
    without: NDArray[np.int64] = _NOBODY,
) -> NDArray[np.int64]:
    """Positions, ascending, of ``count`` draws without replacement, each in proportion to the weights that are left.

    The smallest of independent exponential times of rates w_i have the law of successive draws (Efraimidis and
    Spirakis, Information Processing Letters, 2006).

    Args:
        weights: (K,), positive.
        count: at most the number of positions that are not left out.
        generator: source of the times.
        without: (n,) ascending positions that are left out.
    """
    among = len(weights) - len(without)
    draws = generator.standard_exponential(among)
    if count >= among:
        return others(without, np.arange(among, dtype=np.int64))
    if count == 0:
        return _NOBODY
    # Times below a bound alone are computed and compared: of a million clients little more than are drawn
    bound, most = (count + 6.0 * math.sqrt(count) + 10.0) / float(weights.sum()), float(weights.max())
    while True:
        reach = bound * most
        few = np.flatnonzero(draws <= reach) if 0 < reach < math.inf else np.arange(among)
        positions = others(without, few)
        times = draws[few] / weights[positions]
        if len(few) == among or np.count_nonzero(times <= bound) >= count:
            return np.sort(positions[np.argpartition(times, count - 1)[:count]])
        bound *= _WIDER
