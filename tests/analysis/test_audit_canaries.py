"""Canaries: as bad as the ledger fears, and faithful to the engine that they go through."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.statistics import assert_probability, shifted
from wirelessfl.analysis.audit.canaries import (
    REACH,
    CanaryBatches,
    CanaryGradients,
    canary_direction,
    clearest_sample,
    draw_batches,
    train_on_canary,
    whole_update,
)
from wirelessfl.learning import SGD, Adam, LocalTraining
from wirelessfl.learning.cohort import StepContext
from wirelessfl.learning.private import PrivateGradients
from wirelessfl.privacy import HaarNoise, haar, haar_weights, padded_length
from wirelessfl.privacy.clipping import Constant, FlatClipping
from wirelessfl.privacy.clipping.conformance import FormedGradients
from wirelessfl.privacy.laws import ClipDomain
from wirelessfl.privacy.mechanisms import GaussianMechanism, haar_squared_norms
from wirelessfl.streams import Streams

PARTS = [6, 4, 1]


def haar_covariance(dimension: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Of noise N(0, 1/W²) on the coefficients, cut to ``dimension``: Σ = A⁻¹ W⁻² A⁻ᵀ, A the transform."""
    length = padded_length(dimension)
    inverse = np.linalg.inv(haar(np.eye(length)).T)
    covariance = inverse @ np.diag(haar_weights(length) ** -2.0) @ inverse.T
    return np.asarray(covariance[:dimension, :dimension])


@pytest.mark.parametrize("domain", ["coefficients", "gradient", "weighted"])
@pytest.mark.parametrize("dimension", [2, 5, 8, 33, 610])
def test_haar_noise_hides_the_canary_least(dimension: int, domain: ClipDomain) -> None:
    direction = canary_direction(dimension, haar_noise=True).double()
    squared = direction.square().sum() if domain == "gradient" else haar_squared_norms(direction, domain)
    clipped = (direction / squared.sqrt()).numpy()
    shift, covariance = clipped @ clipped, haar_covariance(dimension)
    found = shift / math.sqrt(clipped @ covariance @ clipped)
    # What the ledger takes for the largest of all: m, √m or 1 over σ.
    assert found == pytest.approx(1 / HaarNoise(padded_length(dimension), domain).accounted_factor(), rel=1e-5)


def test_white_noise_leaves_the_canary_in_every_layer() -> None:
    direction = canary_direction(11, haar_noise=False)
    assert torch.linalg.vector_norm(direction) == pytest.approx(1.0)
    assert all(part.abs().sum() > 0 for part in torch.split(direction, PARTS))


def test_gradients_are_those_of_a_batch_that_holds_the_canary() -> None:
    generator = torch.Generator().manual_seed(shifted(1))
    canary = torch.randn(11, generator=generator)
    present = torch.tensor([True, False, True])
    found = CanaryGradients(canary, PARTS, present)
    formed = FormedGradients(canary.expand(3, 1, -1), present[:, None], tuple(PARTS))
    torch.testing.assert_close(found.squared_norms(), formed.squared_norms())
    for weights in (torch.rand(3, 1, generator=generator), torch.rand(3, 1, 3, generator=generator)):
        expected = formed.weighted_sum(weights)
        torch.testing.assert_close(found.weighted_sum(weights), expected)
        torch.testing.assert_close(found.weighted_sum(weights, torch.ones(3, 11), 0.5), 0.5 + expected)
    places, gradients = next(found.formed())
    assert places == slice(0, 1)
    torch.testing.assert_close(gradients, canary.expand(3, 1, -1))


def test_a_whole_update_is_clipped_by_the_engine() -> None:
    update = REACH * canary_direction(11, haar_noise=False)
    training = LocalTraining(SGD(), learning_rate=1.0, batch_size=1, steps=1, clip=0.3)
    block = whole_update(training, update)
    assert block.norm_raw[0] == pytest.approx(REACH) and block.norm[0] == pytest.approx(0.3)
    torch.testing.assert_close(block.updates[0], 0.3 * update / REACH)
    unclipped = whole_update(LocalTraining(SGD(), learning_rate=1.0, batch_size=1, steps=1), update)
    torch.testing.assert_close(unclipped.updates[0], update)
    assert update.norm() == pytest.approx(REACH)  # the argument is left alone


@pytest.mark.parametrize("optimizer", [SGD(momentum=0.5), Adam()])
def test_training_is_that_of_the_engine(optimizer: SGD | Adam) -> None:
    # Without noise every gradient that is not absent is the clipped canary over the divisor.
    training = LocalTraining(optimizer, learning_rate=0.1, batch_size=4, steps=3)
    batches = CanaryBatches(np.array([[True, False], [False, False], [True, False]]), np.full((3, 2), 4.0))
    transform = PrivateGradients(FlatClipping(0.5), GaussianMechanism(Constant(0.0)))
    canary = REACH * canary_direction(11, haar_noise=False)
    context = StepContext(Streams(0), 1, 0, np.arange(2), canary, 0.1)
    block = train_on_canary(training, transform, {}, context, canary, PARTS, batches)

    parameter = torch.zeros(11, requires_grad=True)
    plain: torch.optim.Optimizer = torch.optim.Adam([parameter], lr=0.1, eps=Adam().eps)
    if isinstance(optimizer, SGD):
        plain = torch.optim.SGD([parameter], lr=0.1, momentum=0.5)
    for included in batches.included[:, 0]:
        parameter.grad = 0.5 * canary / REACH / 4 * float(included)
        plain.step()
    torch.testing.assert_close(block.updates[0], parameter.detach())
    assert torch.all(block.updates[1] == 0)


def test_poisson_batches_hold_the_canary_at_their_rate() -> None:
    training = LocalTraining(SGD(), learning_rate=1.0, batch_size=6, steps=5, sampling="poisson")
    batches = draw_batches(training, Streams(shifted(3)), 1, np.arange(2_000), samples=24, canary=7)
    assert batches.included.shape == batches.divisor.shape == (5, 2_000)
    assert_probability(int(batches.included.sum()), batches.included.size, 6 / 24)
    assert np.all(batches.divisor == 6)


def test_shuffled_batches_hold_the_canary_once_a_pass() -> None:
    training = LocalTraining(SGD(), learning_rate=1.0, batch_size=6, epochs=2)
    batches = draw_batches(training, Streams(shifted(4)), 1, np.arange(50), samples=20, canary=3)
    passes = batches.included.reshape(2, 4, 50)
    assert np.all(passes.sum(axis=1) == 1)


def test_the_clearest_sample_is_in_the_smallest_batches() -> None:
    # Nine samples in batches of eight and one: who is alone there is moved eight times as far.
    training = LocalTraining(SGD(), learning_rate=1.0, batch_size=8, epochs=1)
    streams = Streams(shifted(5))
    found = clearest_sample(training, streams, [3], client=2, samples=9)
    batches = draw_batches(training, streams, 3, np.array([2]), 9, found)
    assert batches.divisor[batches.included] == [1.0]


def test_batches_of_one_client_are_repeated() -> None:
    batches = CanaryBatches(np.array([[True], [False]]), np.array([[4.0], [2.0]])).repeated(3)
    assert batches.included.shape == batches.divisor.shape == (2, 3)
    assert batches.included[0].all() and not batches.included[1].any()
