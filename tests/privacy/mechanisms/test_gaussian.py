"""White noise on sums and on means: law, streams, records."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import stats

from tests.privacy.mechanisms.draws import draws, example_step
from tests.statistics import assert_follows, assert_mean, assert_uncorrelated, assert_variance_gaussian
from wirelessfl.privacy.clipping import Constant, FlatClipping, Geometric, QuantileClipping
from wirelessfl.privacy.laws import FixedClip, HaarNoise, QuantileClip, WhiteNoise
from wirelessfl.privacy.mechanisms import (
    GaussianMechanism,
    HaarMechanism,
    LocalSteps,
    MeanGaussianMechanism,
    NoiseMechanism,
    check_noise_mechanism,
)
from wirelessfl.privacy.releases import DpSgdRelease, SecureSum, ZcdpRelease
from wirelessfl.privacy.releases.local import Sampling

MECHANISMS: dict[str, NoiseMechanism] = {
    "gaussian": GaussianMechanism(Constant(1.3)),
    "growing": GaussianMechanism(Geometric(0.5, 3.0, 4)),
    "mean": MeanGaussianMechanism(0.2),
    "haar": HaarMechanism(Constant(0.7)),
    "haar_weighted": HaarMechanism(Constant(0.7), "weighted"),
    "haar_gradient": HaarMechanism(Geometric(0.7, 0.5, 3), "gradient"),
}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("dimension", [7, 64, 300])
def test_every_mechanism_conforms(name: str, dimension: int) -> None:
    check_noise_mechanism(MECHANISMS[name], dimension)


def test_noise_on_the_sum_has_standard_deviation_zc() -> None:
    noise = draws(GaussianMechanism(Constant(1.3)), 500, 200, sensitivity=0.4).ravel()
    std = 1.3 * 0.4
    assert_mean(noise, 0.0, std)
    assert_variance_gaussian(noise, std**2)
    assert_follows(noise, stats.norm(0, std).cdf)


def test_noise_on_the_mean_has_standard_deviation_sigma_whatever_the_batch() -> None:
    mechanism = MeanGaussianMechanism(0.2)
    total = torch.zeros(500, 200, dtype=torch.float64)
    step = example_step(500)
    step.divisor[:] = torch.arange(500) % 7 + 1.0
    multiplier = mechanism.add(total, torch.full((500,), 4.0, dtype=torch.float64), step)
    mean = (total / step.divisor[:, None]).numpy().ravel()
    assert_mean(mean, 0.0, 0.2)
    assert_variance_gaussian(mean, 0.04)
    assert_follows(mean, stats.norm(0, 0.2).cdf)
    torch.testing.assert_close(multiplier, 0.2 * step.divisor / 4.0)


def test_one_step_on_the_mean_costs_what_the_paper_says() -> None:
    """ρ = 2G²/(γ²σ²) for one sample replaced, of a Gaussian of multiplier γσ/(2G): ρ = 1/(2 z²)."""
    step = example_step(1, divisor=20.0)
    multiplier = float(
        MeanGaussianMechanism(0.03).add(torch.zeros(1, 3).double(), torch.tensor([1.5], dtype=torch.float64), step)
    )
    assert 1 / (2 * (multiplier / 2) ** 2) == pytest.approx(2 * 1.5**2 / (20.0**2 * 0.03**2))


def test_clients_steps_and_rounds_are_independent() -> None:
    mechanism = GaussianMechanism(Constant(1.0))
    first = draws(mechanism, 300, 200, 1.0)
    assert_uncorrelated(first[0::2].ravel(), first[1::2].ravel())
    assert_uncorrelated(first.ravel(), draws(mechanism, 300, 200, 1.0, step=1).ravel())
    assert_uncorrelated(first.ravel(), draws(mechanism, 300, 200, 1.0, round_index=2).ravel())


@pytest.mark.parametrize("name", MECHANISMS)
def test_noise_does_not_depend_on_the_group(name: str) -> None:
    """A client alone, among others, or in another place draws the same bits."""
    together = draws(MECHANISMS[name], 9, 50, 0.8)
    for client in (0, 4, 8):
        total = torch.zeros(1, 50, dtype=torch.float64)
        MECHANISMS[name].add(total, torch.tensor([0.8], dtype=torch.float64), example_step(9).take(np.array([client])))
        np.testing.assert_array_equal(total.numpy()[0], together[client])


def test_no_noise_leaves_the_sum_alone() -> None:
    total = torch.full((2, 5), math.pi)
    multiplier = GaussianMechanism(Constant(0.0)).add(total, torch.ones(2), example_step(2))
    assert torch.equal(total, torch.full((2, 5), math.pi))
    assert multiplier.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", MECHANISMS)
def test_single_precision_stays_single(name: str) -> None:
    total = torch.zeros(2, 5)
    multiplier = MECHANISMS[name].add(total, torch.ones(2), example_step(2))
    assert total.dtype == torch.float32
    assert bool((total != 0).all())
    assert multiplier.shape == (2,)


def test_the_multiplier_follows_the_round() -> None:
    mechanism = GaussianMechanism(Geometric(0.5, 3.0, 4))
    for round_index in (1, 3, 5):
        multiplier = mechanism.add(torch.zeros(1, 4), torch.ones(1), example_step(1, round_index=round_index))
        assert float(multiplier) == pytest.approx(0.5 * 3.0 ** ((round_index - 1) / 4), rel=1e-6)


def local_steps(sampling: Sampling = "poisson", round_index: int = 2) -> LocalSteps:
    clients, samples = np.array([4, 7]), np.array([25, 8])
    steps = np.array([3, 1])
    secure_sum = SecureSum(selected=2, survivors=2)
    return LocalSteps(round_index, clients, samples, 10, steps, sampling, 100, secure_sum, linear_upload=True)


def test_the_record_of_gaussian_noise() -> None:
    release = GaussianMechanism(Geometric(0.5, 4.0, 2)).release(
        local_steps(), QuantileClipping(1.0, count_noise_std=3.0)
    )
    assert isinstance(release, DpSgdRelease)
    assert (release.round_index, release.sampling) == (2, "poisson")
    assert release.noise_multiplier == pytest.approx(1.0)
    assert release.clients.tolist() == [4, 7]
    assert release.batch_size.tolist() == [10, 8]
    assert release.steps.tolist() == [3, 1]
    assert release.noise == WhiteNoise()
    assert release.clipping == QuantileClip(3.0)


def test_the_record_of_haar_noise() -> None:
    release = HaarMechanism(Constant(0.7), "weighted", "lemma_2").release(local_steps("shuffle"), FlatClipping(1.0))
    assert isinstance(release, DpSgdRelease)
    assert release.noise == HaarNoise(128, "weighted", "lemma_2")
    assert release.clipping == FixedClip()
    assert release.sampling == "shuffle"
    assert release.noise_multiplier == 0.7


def test_the_record_of_noise_on_the_mean() -> None:
    release = MeanGaussianMechanism(0.2).release(local_steps("shuffle"), FlatClipping(1.5))
    assert isinstance(release, ZcdpRelease)
    assert (release.clip, release.noise_std, release.linear_upload) == (1.5, 0.2, True)
    assert release.secure_sum == SecureSum(selected=2, survivors=2)
    assert release.steps.tolist() == [3, 1]


def test_the_last_batch_of_a_pass_is_the_smallest() -> None:
    samples = np.array([25, 8, 20, 10, 11])
    steps = LocalSteps(1, np.arange(5), samples, 10, samples, "shuffle", 3)
    assert steps.batch_sizes().tolist() == [10, 8, 10, 10, 10]


def test_noise_on_the_mean_is_refused_where_no_record_covers_it() -> None:
    with pytest.raises(ValueError, match="flat clipping, found QuantileClipping"):
        MeanGaussianMechanism(0.2).release(local_steps("shuffle"), QuantileClipping(1.0))
    with pytest.raises(ValueError, match="found poisson"):
        MeanGaussianMechanism(0.2).release(local_steps("poisson"), FlatClipping(1.0))


@pytest.mark.parametrize("bad", [-1.0, math.inf, math.nan])
def test_bad_noise_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="noise_std must be finite and not negative"):
        MeanGaussianMechanism(bad)
    with pytest.raises(ValueError, match="finite and not negative"):
        GaussianMechanism(Constant(bad))


def test_the_privacy_room_is_torch_free_until_mechanisms_are_asked_for() -> None:
    code = "import sys, wirelessfl.privacy; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
