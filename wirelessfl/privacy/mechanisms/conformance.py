"""Checks for a noise mechanism of your own: what the engine and the ledger rely on.

Call it from a test: it returns nothing where all is well and raises `wirelessfl.errors.CheckFailed` with the first
broken promise. The package's own mechanisms are tested with it.
"""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from wirelessfl.errors import require
from wirelessfl.privacy.clipping import FlatClipping
from wirelessfl.privacy.clipping.conformance import ROUNDING, ExampleStep, FormedGradients
from wirelessfl.privacy.mechanisms.base import LocalSteps, NoiseMechanism, is_divisible
from wirelessfl.streams import Streams

_CLIENTS = np.array([11, 3, 42, 7, 5])
_DRAWS = 200


def check_noise_mechanism(
    mechanism: NoiseMechanism, dimension: int = 300, false_alarm: float = 1e-6, seed: int = 0
) -> None:
    """Checks the noise on small and large sums, over clients, steps and rounds.

    The noise depends on seed, round, step and client alone: not on data, on the other clients, or on earlier calls. It
    differs between any two of them, has mean zero, and is proportional to multiplier times sensitivity. The norms by
    which gradients are clipped are norms, and do not depend on how samples are handed out. What is declared
    ``divisible`` is.

    Args:
        mechanism: The mechanism to check; it must add noise.
        dimension: d.
        false_alarm: Probability with which a correct mechanism of this ``seed`` would be refused.
        seed: Seed of the draws.

    Raises:
        CheckFailed: With what was promised and what was found.
    """
    step = ExampleStep(Streams(seed), 1, 0, _CLIENTS, torch.full((len(_CLIENTS),), 5.0, dtype=torch.float64))
    sensitivity = torch.tensor([0.1, 1.0, 2.0, 5.0, 1.0], dtype=torch.float64)
    noise, multiplier = _noise(mechanism, dimension, sensitivity, step)
    require(multiplier.shape == (len(_CLIENTS),), f"the multiplier has shape {tuple(multiplier.shape)}")
    require(bool((multiplier > 0).all()), f"multipliers {multiplier.tolist()} are not all positive")
    require(bool(noise.isfinite().all() and (noise != 0).any(1).all()), "some noise is zero or not finite")
    _check_streams(mechanism, noise, sensitivity, step)
    _check_scale(mechanism, noise, multiplier, sensitivity, step)
    _check_mean(mechanism, sensitivity, step, dimension, false_alarm)
    _check_norms(mechanism, seed)
    _check_release(mechanism, dimension)


def _noise(mechanism: NoiseMechanism, dimension: int, sensitivity: Tensor, step: ExampleStep) -> tuple[Tensor, Tensor]:
    total = torch.zeros(len(step.clients), dimension, dtype=torch.float64)
    return total, mechanism.add(total, sensitivity, step)


def _check_streams(mechanism: NoiseMechanism, noise: Tensor, sensitivity: Tensor, step: ExampleStep) -> None:
    dimension = noise.shape[1]
    again, _ = _noise(mechanism, dimension, sensitivity, step)
    require(torch.equal(again, noise), "a second call with equal arguments gives other noise: is there hidden state?")
    rows = np.array([3, 0])
    alone, _ = _noise(mechanism, dimension, sensitivity[rows], step.take(rows))
    require(torch.equal(alone, noise[rows]), "a client's noise depends on the other clients")
    data = torch.linspace(-3, 3, noise.numel(), dtype=torch.float64).reshape(noise.shape)
    total = data.clone()
    mechanism.add(total, sensitivity, step)
    same = torch.allclose(total - data, noise, rtol=ROUNDING, atol=ROUNDING * float(noise.abs().max() + 3))
    require(same, "the noise depends on the data")
    other_steps = {
        "step": replace(step, step=1),
        "round": replace(step, round_index=2),
        "seed": replace(step, streams=Streams(step.streams.seed + 1)),
    }
    for what, other in other_steps.items():
        drawn, _ = _noise(mechanism, dimension, sensitivity, other)
        require(not bool((drawn == noise).any(1).any()), f"the noise is the same in another {what}")
    scaled = noise / noise.std(1, keepdim=True)
    require(bool((torch.cdist(scaled, scaled) < ROUNDING).sum() <= len(noise)), "two clients have the same noise")


def _require_close(found: Tensor, expected: Tensor, message: str) -> None:
    require(torch.allclose(found, expected, rtol=ROUNDING, atol=0), message)


def _check_scale(
    mechanism: NoiseMechanism, noise: Tensor, multiplier: Tensor, sensitivity: Tensor, step: ExampleStep
) -> None:
    larger, its_multiplier = _noise(mechanism, noise.shape[1], 3 * sensitivity, step)
    expected = (3 * its_multiplier / multiplier)[:, None] * noise
    _require_close(larger, expected, "the noise is not proportional to multiplier times sensitivity")
    if is_divisible(mechanism):
        on_mean = replace(step, divisor=torch.ones_like(step.divisor))
        mean, its_multiplier = _noise(mechanism, noise.shape[1], sensitivity / step.divisor, on_mean)
        declared = "it is declared divisible, and its"
        divided = noise / step.divisor[:, None]
        _require_close(mean, divided, f"{declared} noise on the sum, divided, is not its noise on the mean")
        _require_close(its_multiplier, multiplier, f"{declared} multiplier on the mean is another than on the sum")


def _check_mean(
    mechanism: NoiseMechanism, sensitivity: Tensor, step: ExampleStep, dimension: int, alarm: float
) -> None:
    # Elements of one draw may be correlated; one number of each draw is independent of all others.
    drawn = [_noise(mechanism, dimension, sensitivity, replace(step, step=index))[0] for index in range(_DRAWS)]
    numbers = torch.stack(drawn).sum(-1) / sensitivity
    tolerance = NormalDist().inv_cdf(1 - alarm / 2) / np.sqrt(numbers.numel())
    mean = float(numbers.mean() / numbers.std())
    require(abs(mean) <= tolerance, f"the noise has mean {mean:.3g} standard deviations, not 0 within {tolerance:.3g}")


def _check_norms(mechanism: NoiseMechanism, seed: int) -> None:
    gradients = torch.randn(3, 5, 11, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    present = torch.ones(3, 5, dtype=torch.bool)
    squared = mechanism.squared_norms(FormedGradients(gradients, present, (6, 4, 1)))
    shapes = ((3, 5, 1), (3, 5, 3))
    require(tuple(squared.shape) in shapes, f"squared_norms has shape {tuple(squared.shape)}, not one of {shapes}")
    require(bool((squared.sum(-1) > 0).all()), "the norm of a gradient that is not zero is not positive")
    at_once = mechanism.squared_norms(FormedGradients(gradients, present, (6, 4, 1), at_once=5))
    require(torch.allclose(at_once, squared, rtol=ROUNDING), "norms depend on how samples are handed out")
    scaled = mechanism.squared_norms(FormedGradients(-2 * gradients, present, (6, 4, 1)))
    require(torch.allclose(scaled, 4 * squared, rtol=ROUNDING), "norms do not scale with the gradient")


def _check_release(mechanism: NoiseMechanism, dimension: int) -> None:
    count = len(_CLIENTS)
    samples, steps = (np.full(count, value) for value in (20, 2))
    release = mechanism.release(LocalSteps(3, _CLIENTS, samples, 10, steps, "shuffle", dimension), FlatClipping(1.0))
    require(release.round_index == 3, f"the release is of round {release.round_index}, not 3")
    require(np.array_equal(release.clients, _CLIENTS), "the release names other clients")
