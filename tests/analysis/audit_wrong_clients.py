"""Clipping and noise at clients that are wrong on purpose: what they record is not what they do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning import LocalTraining
from wirelessfl.learning.cohort import StepContext
from wirelessfl.privacy import Release, SecureSum
from wirelessfl.privacy.clipping import Clipped, ClippingState, FlatClipping, QuantileClipping, Samples, Step
from wirelessfl.privacy.mechanisms import GaussianMechanism, HaarMechanism, MeanGaussianMechanism
from wirelessfl.simulation.local_privacy import LocalPrivacy
from wirelessfl.streams import Streams


class OneNoiseForAll(GaussianMechanism):
    """Draws all noise for client 0."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """As it should be for one client."""
        assert isinstance(step, StepContext)
        return super().add(total, sensitivity, replace(step, clients=np.zeros_like(step.clients)))


class OneNoiseForAllSteps(GaussianMechanism):
    """Draws the noise of the first step in every step of a round."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """As it should be in step 0."""
        assert isinstance(step, StepContext)
        return super().add(total, sensitivity, replace(step, step=0))


class OneNoiseForAllRounds(GaussianMechanism):
    """Draws the noise of the first round in every round."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """As it should be in round 1."""
        assert isinstance(step, StepContext)
        return super().add(total, sensitivity, replace(step, round_index=1))


class OneNoiseForAllSeeds(GaussianMechanism):
    """Draws noise that everybody knows, from a seed of its own."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """As it should be with seed 1."""
        assert isinstance(step, StepContext)
        return super().add(total, sensitivity, replace(step, streams=Streams(1)))


class NoiseOnEverySecondCoordinate(GaussianMechanism):
    """Forgets every second coordinate, and makes up for the variance in the others."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """√2 times the noise on half of the coordinates."""
        noisy = total.clone()
        multiplier = super().add(noisy, sensitivity, step)
        total[:, 1::2] += (noisy - total)[:, 1::2] * 2**0.5
        return multiplier


class UniformNoise(GaussianMechanism):
    """Noise of the right variance with a bounded law."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """The normal quantiles of the right noise, made uniform."""
        noisy = total.clone()
        multiplier = super().add(noisy, sensitivity, step)
        std = (multiplier * sensitivity)[:, None]
        total += std * 12**0.5 * (torch.special.ndtr((noisy - total) / std) - 0.5)
        return multiplier


class BareCount(QuantileClipping):
    """Releases the count of clipped samples as it is."""

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """As with next to no standard deviation."""
        bare = QuantileClipping(self.clip_norm, self.quantile, self.lr, 1e-12)
        return bare.clip(samples, state, step)


class HalvedCountNoise(QuantileClipping):
    """Half of the noise on the count that it says."""

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """As with half the standard deviation."""
        less = QuantileClipping(self.clip_norm, self.quantile, self.lr, self.count_noise_std / 2)
        return less.clip(samples, state, step)


class RepeatedCountNoise(QuantileClipping):
    """One number as the noise of all counts of a round."""

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """As in step 0."""
        assert isinstance(step, StepContext)
        return super().clip(samples, state, replace(step, step=0))


class ForgottenClip(FlatClipping):
    """Says that it clips, and does not."""

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """As it should be, with weights 1."""
        clipped = super().clip(samples, state, step)
        return replace(clipped, weights=clipped.weights.new_ones(clipped.weights.shape))


class ForgottenNoise(GaussianMechanism):
    """Says that it adds noise, and does not."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """The multiplier of the record only."""
        return super().add(total.clone(), sensitivity, step)


class HalvedNoise(GaussianMechanism):
    """Half of the noise that it says."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """Scales to half the sensitivity."""
        return super().add(total, sensitivity / 2, step)


class HalvedHaarNoise(HaarMechanism):
    """Half of the noise that it says."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """Scales to half the sensitivity."""
        return super().add(total, sensitivity / 2, step)


class UnweightedHaarNorm(HaarMechanism):
    """Clips the gradient where its record says that it clips weighted coefficients."""

    def squared_norms(self, gradients: Any) -> Tensor:
        """Of the gradients as they are."""
        norms: Tensor = gradients.squared_norms()
        return norms


class NoiseOnTheSum(MeanGaussianMechanism):
    """Takes the noise meant for the mean and adds it to the sum, γ times too little."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """As it should be, divided by γ."""
        noisy = total.clone()
        multiplier = super().add(noisy, sensitivity, step)
        total += (noisy - total) / step.divisor[:, None]
        return multiplier


class RarerThanItSays(LocalPrivacy):
    """Records half the batch size that is drawn, and so half the sampling rate."""

    def releases(
        self,
        training: LocalTraining,
        samples: NDArray[np.int64],
        clients: NDArray[np.int64],
        round_index: int,
        secure_sum: SecureSum | None,
        steps: NDArray[np.int64] | None = None,
    ) -> tuple[Release, ...]:
        """As if batches were half as large, in as many steps."""
        halved = replace(training, batch_size=training.batch_size // 2, epochs=None, steps=4)
        return super().releases(halved, samples, clients, round_index, secure_sum)


class RoundsAlikeEverySeven(GaussianMechanism):
    """Draws in round r + 7 the noise of round r."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """As it should be in one of the first seven rounds."""
        assert isinstance(step, StepContext)
        return super().add(total, sensitivity, replace(step, round_index=1 + (step.round_index - 1) % 7))


class LessInTheLastLayer(GaussianMechanism):
    """Too little noise on the last 90 coordinates, and more elsewhere."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """0.9 of the noise there, 1.02 of it elsewhere."""
        noisy = total.clone()
        multiplier = super().add(noisy, sensitivity, step)
        scale = torch.full_like(total[0], 1.02)
        scale[-90:] = 0.9
        total += (noisy - total) * scale
        return multiplier


class LessInTheFirstStep(GaussianMechanism):
    """Nine tenths of the noise in the first step of every round."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """Scales to a smaller sensitivity there."""
        assert isinstance(step, StepContext)
        return super().add(total, sensitivity * 0.9 if step.step == 0 else sensitivity, step)


class LessUnderGradients(GaussianMechanism):
    """Half of the noise where any gradient is not zero."""

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """Scales the noise by the sum."""
        noisy = total.clone()
        multiplier = super().add(noisy, sensitivity, step)
        total += (noisy - total) * torch.where(total.abs().amax(1, keepdim=True) > 0, 0.5, 1.0)
        return multiplier


class SomeUnclipped(FlatClipping):
    """Clips nine of ten clients."""

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """Weights 1 for every tenth client."""
        assert isinstance(step, StepContext)
        clipped = super().clip(samples, state, step)
        weights = clipped.weights.clone()
        weights[torch.from_numpy(step.clients % 10 == 3)] = 1.0
        return replace(clipped, weights=weights)


class LastBatchUnclipped(FlatClipping):
    """Clips no batch that is smaller than the others."""

    def clip(self, samples: Samples, state: ClippingState, step: Step) -> Clipped:
        """Weights 1 in batches of fewer than 7."""
        clipped = super().clip(samples, state, step)
        small = (step.divisor < 7)[:, None]
        return replace(clipped, weights=torch.where(small, torch.ones_like(clipped.weights), clipped.weights))
