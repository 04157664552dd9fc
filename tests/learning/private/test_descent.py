"""The bound on an update of clipped gradients, against descent written out and against the engine's batches."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.statistics import shifted
from wirelessfl.learning import SGD, Adam, LocalTraining
from wirelessfl.learning.batches import Sampling, local_steps, plan_batches
from wirelessfl.learning.optimizers import AdaGrad
from wirelessfl.learning.private import DescentBound, descent_bound
from wirelessfl.streams import Streams

TRAINING = LocalTraining(SGD(0.0), learning_rate=0.1, batch_size=4, epochs=2)


def bound(training: LocalTraining, size: int, clip: float = 1.0) -> float:
    found = descent_bound(clip, training, {1: 1.0}, np.array([size]))
    assert found is not None
    return found.at(1)


def descended(gradients: list[float], rate: float, momentum: float, mu: float) -> float:
    """The way of a model from its start along one direction."""
    velocity = moved = 0.0
    for gradient in gradients:
        velocity = momentum * velocity + gradient + mu * moved
        moved -= rate * velocity
    return abs(moved)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.99, 1 - 1e-9, 1 - 2**-53])
@pytest.mark.parametrize("steps", [1, 2, 7, 300])
def test_the_bound_is_that_of_equal_gradients(momentum: float, steps: int) -> None:
    training = replace(TRAINING, optimizer=SGD(momentum), epochs=None, steps=steps)
    longest = descended([0.3] * steps, 0.1, momentum, 0.0)
    for size in (3, 10):
        assert bound(training, size, 0.3) == pytest.approx(longest, rel=1e-9)
    poisson = replace(training, sampling="poisson")  # 3 samples in batches of 3, 10 in expected 4
    assert [bound(poisson, 3, 0.3), bound(poisson, 10, 0.3)] == pytest.approx([longest, 2.5 * longest], rel=1e-9)


@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
def test_no_batch_moves_a_model_further_than_the_bound(sampling: Sampling) -> None:
    """Sums of gradients of norm 1 over the batches that the engine draws, all along one direction."""
    sizes = np.array([10, 9, 4, 1])
    training = replace(TRAINING, optimizer=SGD(0.5), epochs=3, sampling=sampling)
    bounds = np.array([bound(training, size) for size in sizes.tolist()])
    steps = local_steps(sizes, 4, 3, None)
    for round_index in range(1, 40):
        stream = Streams(shifted(5)).nodes("batch_order", round_index, np.arange(4))
        batches = plan_batches(sampling, stream, sizes, steps, 4)
        velocity = moved = np.zeros(4)
        for counts, divisor in zip(batches.counts, batches.divisor, strict=True):
            velocity = 0.5 * velocity + counts / divisor
            moved = moved + 0.1 * velocity * (counts > 0)
        assert np.all(moved <= bounds * (1 + 1e-12))


@pytest.mark.parametrize("mu", [0.0, 0.1, 5.0, 19.0, 25.0])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_with_a_proximal_term_the_worst_signs_reach_the_bound(mu: float, momentum: float) -> None:
    """All signs of six gradients are tried: none leads further, and one leads there."""
    training = replace(TRAINING, optimizer=SGD(momentum), epochs=None, steps=6, prox_mu=mu)
    ways = [descended(list(signs), 0.1, momentum, mu) for signs in itertools.product((-1.0, 1.0), repeat=6)]
    assert max(ways) == pytest.approx(bound(training, 4), rel=1e-12)


def test_random_gradients_with_a_proximal_term_stay_within_the_bound() -> None:
    generator = np.random.default_rng(shifted(3))
    for mu, momentum in itertools.product((0.0, 0.1, 20.0), (0.0, 0.5)):
        longest = bound(replace(TRAINING, optimizer=SGD(momentum), prox_mu=mu), 40, 0.7)
        for _ in range(50):
            model, velocity = np.zeros(3), np.zeros(3)
            for _ in range(int(local_steps(np.array([40]), 4, 2, None)[0])):
                gradient = generator.standard_normal(3) - model
                gradient *= 0.7 / np.linalg.norm(gradient)
                velocity = momentum * velocity + gradient + mu * model
                model = model - 0.1 * velocity
            assert np.linalg.norm(model) <= longest


def test_the_bound_follows_the_scheduled_rate_and_the_largest_client() -> None:
    found = descent_bound(2.0, TRAINING, {1: 1.0, 3: 0.25}, np.array([4, 9]))
    assert isinstance(found, DescentBound) and set(found.bounds) == {1, 3}
    # 2 epochs of ⌈9/4⌉ steps
    assert [found.at(round_index) for round_index in (1, 2, 3, 9)] == pytest.approx([1.2, 1.2, 0.3, 0.3])


@pytest.mark.parametrize("optimizer", [Adam(), AdaGrad()])
def test_other_optimizers_have_no_bound(optimizer: Any) -> None:
    assert descent_bound(1.0, replace(TRAINING, optimizer=optimizer), {1: 1.0}, np.array([4])) is None
