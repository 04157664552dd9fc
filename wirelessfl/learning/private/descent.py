"""Reach of gradient descent on clipped gradients: what bounds an update that nobody clips."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning.algorithms.gradient_weights import summed_weights
from wirelessfl.learning.batches import Sampling, local_steps
from wirelessfl.learning.cohort import LocalTraining
from wirelessfl.learning.optimizers import SGD
from wirelessfl.privacy.clipping import Schedule


@dataclass(frozen=True)
class DescentBound(Schedule):
    """Bound on the norm of an update of gradient descent in each round, whose samples' gradients are clipped.

    Attributes:
        bounds: The bound by the first round in which it holds, from round 1 on.
    """

    bounds: Mapping[int, float]

    @override
    def at(self, round_index: int) -> float:
        return self.bounds[max(first for first in self.bounds if first <= round_index)]


def longest_mean(sizes: NDArray[np.int64], batch_size: int, sampling: Sampling) -> NDArray[np.float64]:
    """(k,) largest norm of the mean gradient of a batch, of gradients of norm 1 at most.

    The mean over a batch from a shuffled order has 1. Under Poisson sampling the sum over a batch, which may hold all
    n samples, is divided by the expected number.

    Args:
        sizes: (k,) samples n of each client.
        batch_size: Samples in a batch, or expected in it.
        sampling: How batches are drawn.
    """
    match sampling:
        case "shuffle":
            return np.ones(len(sizes))
        case "poisson":
            return np.asarray(sizes / np.clip(sizes, 1, batch_size))
        case _:
            assert_never(sampling)


def descent_bound(
    gradient_clip: float, training: LocalTraining, lr_schedule: Mapping[int, float], sizes: NDArray[np.int64]
) -> DescentBound | None:
    """Bound on the updates of a population that clips gradients to C; None where the optimizer gives none.

    An update of gradient descent is −η Σ_j a_j g_j for mean gradients g_j of norms BC at most, so that it has a norm of
    at most ηBC ‖a‖₁. The weights a follow from steps, momentum and proximal term alone. Adam and AdaGrad scale every
    coordinate by what they saw before. Rounding is not counted.

    Args:
        gradient_clip: C.
        training: Local training of every client, without corrections of the gradient.
        lr_schedule: First round of each factor on the learning rate, from round 1 on.
        sizes: (K,) samples of each client.
    """
    optimizer = training.optimizer
    if type(optimizer) is not SGD:
        return None
    steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
    mean, bounds = longest_mean(sizes, training.batch_size, training.sampling), {}
    for first, factor in lr_schedule.items():
        rate = factor * training.learning_rate
        reach = summed_weights(steps, optimizer.momentum, rate * training.prox_mu)
        bounds[first] = float(rate * gradient_clip * (mean * reach).max())
    return DescentBound(bounds)
