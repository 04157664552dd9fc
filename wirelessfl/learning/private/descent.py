"""Reach of gradient descent on clipped gradients: what bounds an update that nobody clips."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.batches import Sampling, local_steps
from wirelessfl.learning.cohort import LocalTraining
from wirelessfl.learning.optimizers import SGD
from wirelessfl.privacy.clipping import Schedule

_PROXIMAL_LIMIT = 2.0


@dataclass(frozen=True)
class DescentBound(Schedule):
    """Bound ηC·R on the norm of an update of gradient descent in each round, whose samples' gradients have norms ≤ C.

    Attributes:
        gradient_clip: C.
        reach: R, as `descent_reach` gives it, the largest of all clients.
        learning_rates: η by the first round in which it holds, from round 1 on.
    """

    gradient_clip: float
    reach: float
    learning_rates: Mapping[int, float]

    @override
    def at(self, round_index: int) -> float:
        first = max(one for one in self.learning_rates if one <= round_index)
        return self.learning_rates[first] * self.gradient_clip * self.reach


def descent_reach(
    sizes: NDArray[np.int64], steps: NDArray[np.int64], batch_size: int, sampling: Sampling, momentum: float = 0.0
) -> NDArray[np.float64]:
    """(k,) reach R of N steps: the largest norm of an update over ηC.

    A step moves the model by ηv with v ← ρv + g, where v starts at zero in every round, so that R = B Σ_{j=1}^{N}
    (1 − ρ^j)/(1 − ρ) for mean gradients of norm BC at most. The mean over a batch from a shuffled order has B = 1.
    Under Poisson sampling the sum over a batch, which may hold all n samples, is divided by the expected number.

    Args:
        sizes: (k,) samples n of each client.
        steps: (k,) N.
        batch_size: Samples in a batch, or expected in it.
        sampling: How batches are drawn.
        momentum: ρ.

    Raises:
        ValueError: If the momentum lies outside [0, 1).
    """
    precondition(0 <= momentum < 1, f"momentum must lie in [0, 1), found {momentum}")
    # Σ_j (1 − ρ^j)/(1 − ρ) in closed form
    lost = momentum * (1 - momentum**steps) / (1 - momentum)
    velocity = (steps - lost) / (1 - momentum)
    if sampling == "shuffle":
        return np.asarray(velocity, dtype=np.float64)
    return np.asarray(velocity * sizes / np.clip(sizes, 1, batch_size), dtype=np.float64)


def descent_bound(
    gradient_clip: float, training: LocalTraining, lr_schedule: Mapping[int, float], sizes: NDArray[np.int64]
) -> DescentBound | None:
    """Bound on the updates of a population that clips gradients; None where the optimizer gives none.

    A proximal term μ(w − w̄) draws the model back towards w̄ by a factor |1 − ημ| ≤ 1 for ημ ≤ 2, so that it extends no
    update; with momentum nothing is claimed. Adam and AdaGrad scale every coordinate by what they saw before.

    Args:
        gradient_clip: C.
        training: Local training of every client, without corrections of the gradient.
        lr_schedule: First round of each factor on the learning rate, from round 1 on.
        sizes: (K,) samples of each client.
    """
    optimizer, rates = training.optimizer, {first: training.learning_rate * by for first, by in lr_schedule.items()}
    if type(optimizer) is not SGD:
        return None
    draws_back = optimizer.momentum == 0 and training.prox_mu * max(rates.values()) <= _PROXIMAL_LIMIT
    if training.prox_mu and not draws_back:
        return None
    steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
    reach = descent_reach(sizes, steps, training.batch_size, training.sampling, optimizer.momentum)
    return DescentBound(gradient_clip, float(reach.max()), rates)
