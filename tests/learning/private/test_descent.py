"""The bound on an update of clipped gradients, against descent written out and against the engine."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.statistics import shifted
from wirelessfl.learning import SGD, Adam, LocalTraining
from wirelessfl.learning.batches import Sampling, local_steps, plan_batches
from wirelessfl.learning.private import DescentBound, descent_bound, descent_reach
from wirelessfl.streams import Streams

TRAINING = LocalTraining(SGD(0.0), learning_rate=0.1, batch_size=4, epochs=2)


def longest(steps: int, momentum: float, mean: float = 1.0) -> float:
    """Norm of the update when every step has the same mean gradient, written out."""
    velocity = moved = 0.0
    for _ in range(steps):
        velocity = momentum * velocity + mean
        moved += velocity
    return moved


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 300])
def test_the_reach_is_that_of_equal_gradients(momentum: float, steps: int) -> None:
    sizes, counts = np.array([3, 10]), np.array([steps, steps])
    found = descent_reach(sizes, counts, 4, "shuffle", momentum)
    np.testing.assert_allclose(found, longest(steps, momentum), rtol=1e-12)
    whole = descent_reach(sizes, counts, 4, "poisson", momentum)  # 3 samples in batches of 3, 10 in expected 4
    np.testing.assert_allclose(whole, [longest(steps, momentum), longest(steps, momentum, 10 / 4)], rtol=1e-12)


@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
def test_no_batch_moves_a_model_further_than_the_reach(sampling: Sampling) -> None:
    """Sums of at most unit gradients over the batches that the engine draws, all along one direction."""
    sizes = np.array([10, 9, 4, 1])
    steps = local_steps(sizes, 4, 3, None)
    reach = descent_reach(sizes, steps, 4, sampling, 0.5)
    for round_index in range(1, 40):
        stream = Streams(shifted(5)).nodes("batch_order", round_index, np.arange(4))
        batches = plan_batches(sampling, stream, sizes, steps, 4)
        velocity = moved = np.zeros(4)
        for counts, divisor in zip(batches.counts, batches.divisor, strict=True):
            velocity = 0.5 * velocity + counts / divisor
            moved = moved + velocity * (counts > 0)
        assert np.all(moved <= reach * (1 + 1e-12))


def test_random_gradients_with_a_proximal_term_stay_within_the_bound() -> None:
    """Descent by autograd's rule on random gradients of norms up to C, drawn back by μ(w − w̄)."""
    generator = np.random.default_rng(shifted(3))
    for mu, pull in itertools.product((0.0, 0.1, 5.0, 20.0), (0.0, 1.0)):
        training = replace(TRAINING, prox_mu=mu)
        bound = descent_bound(0.7, training, {1: 1.0}, np.array([40]))
        assert bound is not None
        for _ in range(50):
            model = np.zeros(3)
            for _ in range(int(local_steps(np.array([40]), 4, 2, None)[0])):
                gradient = generator.standard_normal(3) - pull * model
                gradient *= 0.7 / np.linalg.norm(gradient)
                model = model - 0.1 * (gradient + mu * model)
            assert np.linalg.norm(model) <= bound.at(1)


def test_the_bound_follows_the_scheduled_rate_and_the_largest_client() -> None:
    bound = descent_bound(2.0, TRAINING, {1: 1.0, 3: 0.25}, np.array([4, 9]))
    assert bound == DescentBound(2.0, 6.0, {1: 0.1, 3: 0.025})  # 2 epochs of ⌈9/4⌉ steps
    assert [bound.at(round_index) for round_index in (1, 2, 3, 9)] == pytest.approx([1.2, 1.2, 0.3, 0.3])


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": Adam()},
        {"optimizer": SGD(0.5), "prox_mu": 0.1},
        {"prox_mu": 20.1},
        {"prox_mu": 3.0, "learning_rate": 0.7},
    ],
)
def test_other_descent_has_no_bound(changes: dict[str, object]) -> None:
    assert descent_bound(1.0, replace(TRAINING, **changes), {1: 1.0}, np.array([4])) is None  # type: ignore[arg-type]


def test_a_rate_that_grows_by_schedule_counts_for_the_proximal_term() -> None:
    training = replace(TRAINING, prox_mu=15.0)
    assert descent_bound(1.0, training, {1: 1.0}, np.array([4])) is not None
    assert descent_bound(1.0, training, {1: 1.0, 2: 2.0}, np.array([4])) is None


@pytest.mark.parametrize("momentum", [-0.1, 1.0])
def test_a_momentum_out_of_range_is_refused(momentum: float) -> None:
    with pytest.raises(ValueError, match="momentum must lie in"):
        descent_reach(np.array([1]), np.array([1]), 1, "shuffle", momentum)
