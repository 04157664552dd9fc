"""Client-level noise of a trusted server: what is clipped, how much noise, which record."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.learning.private.slow import SlowHaar
from tests.statistics import assert_mean, assert_variance_gaussian, shifted
from wirelessfl.learning.cohort import CohortBlock
from wirelessfl.learning.private import CentralNoise
from wirelessfl.privacy import PrivacyFacts, Statement, element_noise_variance
from wirelessfl.privacy.clipping import Constant, Geometric
from wirelessfl.privacy.laws import ClipDomain, HaarNoise, WhiteNoise
from wirelessfl.privacy.mechanisms import server_weights
from wirelessfl.streams import Streams


def block_of(updates: torch.Tensor) -> CohortBlock:
    norms = updates.norm(dim=1).double().numpy()
    return CohortBlock(np.arange(len(updates)), updates, norms, norms, np.zeros(len(updates)))


def example_updates() -> torch.Tensor:
    updates = torch.randn(4, 11, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    updates[1] *= 1e-4
    return updates


@pytest.mark.parametrize("wavelet", [None, "coefficients", "weighted", "gradient"])
def test_updates_are_clipped_in_the_domain_of_the_noise(wavelet: ClipDomain | None) -> None:
    central = CentralNoise(Constant(1.0), Geometric(0.4, 0.25, 2), 1.0, "all", 4, wavelet)
    updates = example_updates()
    clipped = central.clip_block(block_of(updates), 2)
    measure = SlowHaar(1.0, wavelet or "gradient")
    for before, after, norm in zip(updates, clipped.updates, clipped.norm, strict=True):
        torch.testing.assert_close(after, before * min(1.0, 0.2 / measure.norm(before)), rtol=1e-12, atol=0)
        assert norm == pytest.approx(float(after.norm()), rel=1e-12)
    assert clipped.norm_raw is not clipped.norm


def test_an_update_that_is_no_number_becomes_zero() -> None:
    updates = example_updates()
    updates[2, 5] = math.nan
    for wavelet in (None, "weighted"):
        central = CentralNoise(Constant(1.0), Constant(0.4), 1.0, "all", 4, wavelet)
        clipped = central.clip_block(block_of(updates), 1)
        assert torch.equal(clipped.updates[2], torch.zeros(11, dtype=torch.float64))


def test_without_a_clip_nothing_is_touched_and_nothing_proven() -> None:
    central = CentralNoise(Constant(1.5), None, 0.5, "poisson", 4)
    block = block_of(example_updates())
    assert central.clip_block(block, 1) is block
    assert central.noise_std(1) == pytest.approx(1.5 / (0.5 * 4))
    release = central.release(1, np.arange(2), 11)
    statement = Statement(1e-5, unit="client", adversary="observer")
    spending = release.accounted(PrivacyFacts(np.full(4, 5), np.full(4, 0.25), 20), statement)
    assert spending.unproven is not None


@pytest.mark.parametrize("wavelet", [None, "weighted"])
def test_the_noise_has_the_standard_deviation_of_the_record(wavelet: ClipDomain | None) -> None:
    central = CentralNoise(Geometric(1.5, 2.0, 2), Geometric(0.4, 0.25, 2), 0.5, "poisson", 4, wavelet)
    generator = Streams(shifted(4)).generator("server_noise", 2)
    noise = np.stack([central.noise(50, 2, generator) for _ in range(5_000)])
    std = 1.5 * math.sqrt(2.0) * 0.4 * 0.5 / (0.5 * 4)
    release = central.release(2, np.arange(2), 50)
    assert release.noise_std == pytest.approx(std)
    variance = std**2 * (1.0 if wavelet is None else element_noise_variance(64))
    assert_mean(noise[:, 17], 0.0, math.sqrt(variance))
    assert_variance_gaussian(noise[:, 17], variance)
    assert release.noise == (WhiteNoise() if wavelet is None else HaarNoise(64, wavelet))
    assert release.published_multiplier == pytest.approx(1.5 * math.sqrt(2.0))
    assert release.clip == pytest.approx(0.2)


@pytest.mark.parametrize("wavelet", [None, "weighted", "coefficients", "gradient"])
def test_no_client_moves_the_sum_farther_than_the_record_says(wavelet: ClipDomain | None) -> None:
    """The farthest zero-out of one client, in standard deviations of the noise, over adversarial updates."""
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    central = CentralNoise(Constant(1.5), Constant(0.4), 1.0, "all", 4, wavelet)
    facts = PrivacyFacts(np.array([1, 2, 3, 4]), weights, 10)
    statement = Statement(1e-5, unit="client", adversary="observer")
    mu = math.sqrt(float(central.release(1, np.arange(4), 8).accounted(facts, statement).mu_squared[0]))
    adversarial = torch.cat([torch.eye(8).double(), torch.ones(1, 8).double(), example_updates()[:, :8]]) * 1e6
    clipped = central.clip_block(block_of(adversarial), 1).updates.numpy()
    whitened = SlowHaar(1.0, "gradient" if wavelet is None else "weighted")
    shifts = [whitened.norm(torch.from_numpy(row)) for row in clipped * server_weights(weights, 1.0).max()]
    farthest = max(shifts) / central.noise_std(1)
    assert farthest <= mu * (1 + 1e-9)
    assert farthest >= mu * (1 - 1e-9)  # a vector of ones, or a unit vector, attains the bound
