"""White Gaussian noise: on the sum, relative to the sensitivity, or on the mean, of absolute size."""

from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.normals import add_normal
from wirelessfl.privacy import DpSgdRelease, NoiseLaw, WhiteNoise, ZcdpRelease
from wirelessfl.privacy.clipping import ClippingRule, FlatClipping, Schedule, Step
from wirelessfl.privacy.costs import require_non_negative
from wirelessfl.privacy.mechanisms.base import LocalSteps, MechanismFacts, NoiseMechanism, divisible

PURPOSE = "gradient_noise"
"""The random streams of local noise."""


def add_white_noise(total: Tensor, noise_std: Tensor, step: Step) -> None:
    """White noise N(0, noise_std[i]²) on every element of row i of ``total`` (k, d), in place; none where it is 0."""
    add_normal(total, noise_std, step.streams, PURPOSE, step.round_index, step.clients, step.step)


@dataclass(frozen=True)
class GaussianMechanism(NoiseMechanism):
    """N(0, (zC)² I) on the sum of gradients clipped to norm C (Abadi et al., CCS 2016).

    Attributes:
        noise_multiplier: z in each round; 0 adds no noise.
    """

    noise_multiplier: Schedule

    @override
    def facts(self) -> MechanismFacts:
        return MechanismFacts(adds_noise=self.noise_multiplier.at(1) > 0)

    @override
    @divisible
    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        multiplier = self.noise_multiplier.at(step.round_index)
        if multiplier:
            self.draw(total, multiplier * sensitivity, step)
        return torch.full_like(sensitivity, multiplier)

    def draw(self, total: Tensor, noise_std: Tensor, step: Step) -> None:
        """Noise of standard deviations (k,) on ``total`` (k, d), in place."""
        add_white_noise(total, noise_std, step)

    def law(self, dimension: int) -> NoiseLaw:
        """Law of the noise on d elements, for the ledger."""
        return WhiteNoise()

    @override
    def release(self, steps: LocalSteps, clipping: ClippingRule) -> DpSgdRelease:
        return DpSgdRelease(
            steps.round_index,
            steps.clients,
            self.noise_multiplier.at(steps.round_index),
            steps.batch_sizes(),
            steps.steps,
            steps.sampling,
            noise=self.law(steps.dimension),
            clipping=clipping.law(),
        )


@dataclass(frozen=True)
class MeanGaussianMechanism(NoiseMechanism):
    """N(0, σ² I) on the mean over a mini-batch, with σ in units of the gradient (the zCDP paper, Algorithm 1).

    On the sum over a batch with divisor γ it is N(0, (γσ)² I): with gradients clipped to G a step is
    2G²/(γ²σ²)-zCDP for one sample replaced.

    Attributes:
        noise_std: σ.

    Raises:
        ValueError: If σ is negative, infinite or not a number.
    """

    noise_std: float

    def __post_init__(self) -> None:
        require_non_negative(noise_std=self.noise_std)

    @override
    def facts(self) -> MechanismFacts:
        return MechanismFacts(adds_noise=self.noise_std > 0)

    @override
    @divisible
    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        noise_std = self.noise_std * step.divisor
        if self.noise_std:
            add_white_noise(total, noise_std, step)
        return noise_std / sensitivity

    @override
    def release(self, steps: LocalSteps, clipping: ClippingRule) -> ZcdpRelease:
        if not isinstance(clipping, FlatClipping):
            raise ValueError(f"noise of absolute size needs flat clipping, found {type(clipping).__name__}")
        precondition(
            steps.sampling != "poisson",
            "noise on the mean of a batch is accounted for shuffled batches only, found poisson",
        )
        return ZcdpRelease(
            steps.round_index,
            steps.clients,
            clipping.clip_norm,
            self.noise_std,
            steps.batch_sizes(),
            steps.steps,
            secure_sum=steps.secure_sum,
            linear_upload=steps.linear_upload,
        )
