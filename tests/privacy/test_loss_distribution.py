"""Loss distributions on arrays against those of dp-accounting, to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld.pld_pmf import DensePLDPmf, SparsePLDPmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution, from_gaussian_mechanism

from tests.speed import rest_slow
from wirelessfl.privacy import SampledGaussian, gaussian_epsilon
from wirelessfl.privacy.loss_distribution import epsilon_at, losses_of_a_step


def of_the_library(event: SampledGaussian, interval: float) -> PrivacyLossDistribution:
    relation = NeighboringRelation.REPLACE_ONE if event.exchange else NeighboringRelation.ADD_OR_REMOVE_ONE
    return from_gaussian_mechanism(
        event.noise_multiplier,
        value_discretization_interval=interval,
        sampling_prob=event.sample_rate,
        neighboring_relation=relation,
    )


def assert_equal(found: PrivacyLossDistribution, expected: PrivacyLossDistribution) -> None:
    for one, other in ((found._pmf_remove, expected._pmf_remove), (found._pmf_add, expected._pmf_add)):
        assert type(one) is type(other)
        assert one._infinity_mass == other._infinity_mass
        if isinstance(one, DensePLDPmf):
            assert one._lower_loss == other._lower_loss
            np.testing.assert_array_equal(one._probs, other._probs)
        else:
            assert one._loss_probs == other._loss_probs


CASES = [
    (SampledGaussian(1.0, 0.03), 2.0**-10, 150, 1e-5),
    (SampledGaussian(0.6, 0.5), 2.0**-8, 7, 1e-6),  # an odd number of points
    (SampledGaussian(2.0, 1.0), 2.0**-9, 20, 1e-5),  # no sampling: one direction
    (SampledGaussian(1.5, 1 - 1e-9), 2.0**-9, 3, 1e-9),
    (SampledGaussian(0.8, 0.1, exchange=True), 2.0**-8, 30, 1e-5),
    (SampledGaussian(20.0, 0.01), 2.0**-10, 1, 1e-5),  # sparse
    (SampledGaussian(20.0, 0.01), 2.0**-10, 1000, 1e-5),
    (SampledGaussian(1.0, 1e-4), 2.0**-10, 2, 0.5),  # epsilon 0
    (SampledGaussian(1.0, 0.03), 2.0**-9, 2, 1e-30),  # an infinite loss is likelier
    (SampledGaussian(0.1, 0.5), 2.0**-5, 20, 1e-5),  # losses above 745, whose weights vanish
    (SampledGaussian(1.0, 0.03), 0.0013, 50, 1e-5),  # sums of the spacing are rounded
]


@pytest.mark.parametrize(("event", "interval", "count", "delta"), rest_slow(CASES))
def test_equal_the_library_to_the_last_bit(event: SampledGaussian, interval: float, count: int, delta: float) -> None:
    found, expected = losses_of_a_step(event, interval), of_the_library(event, interval)
    assert_equal(found.distribution, expected)
    for uses in {1, count, count + 1}:
        composed = expected.self_compose(uses) if uses > 1 else expected
        assert_equal(found.composed(uses), composed)
        assert epsilon_at(composed, delta) == composed.get_epsilon_for_delta(delta)


@pytest.mark.slow
def test_equal_the_library_with_random_mechanisms() -> None:
    rng = np.random.default_rng(0)
    for _ in range(40):
        event = SampledGaussian(float(np.exp(rng.uniform(-1, 3))), float(np.exp(rng.uniform(-9, 0))))
        interval, count = 2.0 ** -int(rng.integers(6, 12)), int(rng.integers(2, 2000))
        composed = of_the_library(event, interval).self_compose(count)
        found = losses_of_a_step(event, interval).composed(count)
        assert_equal(found, composed)
        for delta in 10.0 ** rng.uniform(-10, -0.1, 4):
            assert epsilon_at(found, delta) == composed.get_epsilon_for_delta(delta)


def test_the_cases_have_sparse_and_dense_infinite_and_zero_ones() -> None:
    kinds, epsilons = set(), []
    for event, interval, count, delta in CASES:
        step = losses_of_a_step(event, interval)
        kinds.add(type(step.distribution._pmf_remove))
        epsilons.append(epsilon_at(step.composed(count), delta))
    assert kinds == {SparsePLDPmf, DensePLDPmf}
    assert 0.0 in epsilons
    assert math.inf in epsilons


@pytest.mark.parametrize("rate", [1 - 2.0**-53, 1 - 3e-16, 1 - 8e-16])
@pytest.mark.parametrize("exchange", [False, True])
def test_a_rate_next_to_one_is_one(rate: float, exchange: bool) -> None:
    """The library raises there, and arrays had NaN."""
    found, most = (losses_of_a_step(SampledGaussian(0.3, one, exchange), 2.0**-7) for one in (rate, 1.0))
    assert epsilon_at(found.composed(3), 1e-5) == epsilon_at(most.composed(3), 1e-5) < math.inf


def test_no_sampling_is_the_closed_form() -> None:
    found = epsilon_at(losses_of_a_step(SampledGaussian(4.0, 1.0), 2.0**-11).composed(9), 1e-5)
    assert found == pytest.approx(float(gaussian_epsilon(3 / 4, 1e-5)), rel=1e-4)
    assert found >= float(gaussian_epsilon(3 / 4, 1e-5))
