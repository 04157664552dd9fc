"""Adaptive quantile clipping: the update by hand, its noise, its fixed point."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from tests.privacy.clipping.examples import PARTS, everyone, step_of, vectors
from tests.statistics import assert_follows, assert_mean, assert_variance_gaussian, shifted
from wirelessfl.privacy.clipping import QuantileClipping, Samples
from wirelessfl.privacy.clipping.conformance import ExampleStep, samples_of
from wirelessfl.streams import Streams


def noise_of(step: ExampleStep, client: int) -> float:
    stream = step.streams.nodes(f"clip_count_noise/{step.step}", step.round_index, np.array([client]))
    return float(stream.normal(1)[0, 0])


def test_the_update_by_hand() -> None:
    """Norms 1, 2, 3 and 10 with C = 2: two within; a sample that is absent counts for nothing."""
    gradients = vectors(*([norm] + [0.0] * 13 for norm in (1.0, 2.0, 3.0, 10.0, 0.1)))
    present = torch.tensor([[True, True, True, True, False]])
    rule = QuantileClipping(2.0, quantile=0.25, lr=0.3, count_noise_std=1.7)
    state = rule.start(1, torch.zeros(14, dtype=torch.float64))
    step = step_of([9], divisor=6.0, step=2, round_index=4)
    clipped = rule.clip(samples_of(gradients, present, PARTS), state, step)
    noised_share = 0.5 + (2 * 0.5 - 2 * 0.5 + 1.7 * noise_of(step, 9)) / 6.0
    assert float(clipped.sensitivity) == 2.0
    assert clipped.weights[0, :4].tolist() == pytest.approx([1.0, 1.0, 2 / 3, 0.2])
    expected = 2.0 * math.exp(-0.3 * (noised_share - 0.25))
    assert float(clipped.state["clip_norm"]) == pytest.approx(expected, rel=1e-12)
    after = rule.learn(torch.zeros(1, 14), clipped.state, step)
    assert float(after["clip_norm"]) == pytest.approx(expected, rel=1e-12)


def noised_shares(rule: QuantileClipping, gradients: torch.Tensor, clients: int, divisor: float) -> np.ndarray:
    """What the rule releases, read off the clip it moves to."""
    step = step_of(list(range(clients)), divisor=divisor, seed=shifted(3))
    samples = samples_of(gradients, everyone(gradients), PARTS)
    many = Samples(
        samples.squared_norms.expand(clients, -1, -1), samples.present.expand(clients, -1), lambda w: w, lambda v: v
    )
    following = rule.clip(many, rule.start(clients, torch.zeros(14, dtype=torch.float64)), step).state["clip_norm"]
    return (-torch.log(following / rule.clip_norm) / rule.lr + rule.quantile).numpy()


def test_the_released_count_is_gaussian_with_the_stated_noise() -> None:
    rule = QuantileClipping(1.0, count_noise_std=2.5)
    gradients = vectors(*([norm] + [0.0] * 13 for norm in (0.5, 0.9, 7.0)))
    shares = noised_shares(rule, gradients, 20_000, 10.0)
    mean, std = 0.5 + (2 - 1) * 0.5 / 10.0, 2.5 / 10.0
    assert_mean(shares, mean, std)
    assert_variance_gaussian(shares, std**2, mean)
    assert_follows(shares, stats.norm(mean, std).cdf)


def test_one_sample_moves_the_count_by_a_half() -> None:
    """Zero-out of a sample against its presence, on either side of C: the sensitivity the ledger assumes."""
    rule = QuantileClipping(1.0)
    rows = [[0.5] + [0.0] * 13, [0.2] + [0.0] * 13]
    shares = [
        float(noised_shares(rule, vectors(*rows, *more), 1, 10.0)[0])
        for more in ([], [[0.4] + [0.0] * 13], [[9.0] + [0.0] * 13])
    ]
    assert abs(shares[1] - shares[0]) * 10.0 == pytest.approx(0.5)
    assert abs(shares[2] - shares[0]) * 10.0 == pytest.approx(0.5)


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
def test_the_clip_settles_at_the_quantile(quantile: float) -> None:
    """Exponential norms: once log C is stationary, the expected share within C is γ exactly."""
    rule = QuantileClipping(5.0, quantile, lr=0.2, count_noise_std=1.0)
    clients, batch = 200, 40
    state = rule.start(clients, torch.zeros(1, dtype=torch.float64))
    generator = torch.Generator().manual_seed(shifted(11))
    for index in range(600):
        norms = -torch.log(torch.rand(clients, batch, generator=generator, dtype=torch.float64))
        present = torch.ones(clients, batch, dtype=torch.bool)
        samples = Samples(norms.square()[..., None], present, lambda weights: weights, lambda vectors: vectors)
        divisor = torch.full((clients,), float(batch), dtype=torch.float64)
        step = ExampleStep(Streams(shifted(5)), 1, index, np.arange(clients), divisor)
        state = rule.clip(samples, state, step).state
    within = 1 - torch.exp(-state["clip_norm"])
    assert_mean(within.numpy(), quantile, float(within.std()))
    # Each client's own share stays near, too. To first order log C is an autoregression of factor 1 − η_C s, with
    # s = dγ/d log C = −(1 − γ) ln(1 − γ); 200 clients and the curvature leave room for a factor of 2.
    slope = -(1 - quantile) * math.log1p(-quantile)
    variance = quantile * (1 - quantile) / batch + (1.0 / batch) ** 2
    jitter = slope * 0.2 * math.sqrt(variance / (1 - (1 - 0.2 * slope) ** 2))
    assert jitter / 2 < float(within.std()) < 2 * jitter
