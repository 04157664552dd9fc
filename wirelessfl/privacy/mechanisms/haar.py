"""Noise on Haar wavelet coefficients (DP-SGD-WAV), and the norms in which gradients may be clipped for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import pad

from wirelessfl.privacy.clipping import ClippingRule, Schedule, Step
from wirelessfl.privacy.clipping.base import shrink
from wirelessfl.privacy.mechanisms.base import Divisible, LocalSteps, PerSampleGradients, standard_normals
from wirelessfl.privacy.mechanisms.gaussian import PURPOSE
from wirelessfl.privacy.noise_laws import ClipDomain, HaarNoise
from wirelessfl.privacy.releases import DpSgdRelease
from wirelessfl.privacy.wavelet import haar_weights, inverse_haar


def padded_length(dimension: int) -> int:
    """m, the smallest power of two that is not below ``dimension``."""
    return 1 << max(dimension - 1, 0).bit_length()


def haar_squared_norms(vectors: Tensor, clip_domain: Literal["coefficients", "weighted"]) -> Tensor:
    """Squared norms of the Haar coefficients of zero-padded vectors, without forming the coefficients.

    A level-l coefficient is a difference of sums over blocks of 2^(l−1) elements, divided by 2^l.

    Args:
        vectors: (..., d).
        clip_domain: ``coefficients`` for ‖H‖², ``weighted`` for ‖W∘H‖².

    Returns:
        (...).
    """
    level_factor = {"coefficients": 0.25, "weighted": 1.0}[clip_domain]
    sums, factor = vectors, 1.0
    total = vectors.new_zeros(vectors.shape[:-1])
    while sums.shape[-1] > 1:
        if sums.shape[-1] % 2:
            sums = pad(sums, (0, 1))
        left, right = sums[..., 0::2], sums[..., 1::2]
        factor *= level_factor
        total += factor * torch.linalg.vector_norm(left - right, dim=-1).square()
        sums = left + right
    return total + factor * sums[..., 0].square()


def clip_by_haar_norm(
    vectors: Tensor, clip: float, clip_domain: Literal["coefficients", "weighted"]
) -> tuple[Tensor, Tensor]:
    """Vectors (k, d) scaled to Haar norm ``clip`` where they exceed it, and their (k,) norms before.

    A vector whose norm is not finite becomes zero.
    """
    norms = haar_squared_norms(vectors, clip_domain).sqrt()
    weights = shrink(norms, norms.new_tensor(clip))[:, None]
    return (vectors * weights).where(weights > 0, 0.0), norms


def standard_haar_noise(purpose: str, step: Step, like: Tensor) -> Tensor:
    """(k, d) noise whose Haar coefficients, before it is cut to length d, are N(0, 1/W²); ``like`` is (k, d)."""
    clients, dimension = like.shape
    length = padded_length(dimension)
    coefficients = standard_normals(purpose, step, like.new_empty(clients, length))
    coefficients /= torch.from_numpy(haar_weights(length)).to(coefficients)
    return inverse_haar(coefficients)[:, :dimension]


@dataclass(frozen=True)
class HaarMechanism(Divisible):
    """N(0, (σC/W)²) on the Haar coefficients of the sum (wavelet-dp-fl, Algorithm 1).

    The flat gradient is padded with zeros to m = 2^k elements and the noised one cut back. As the transform is linear,
    clipping the coefficients of a sample scales its gradient, and noise on the coefficients of the sum is noise in
    gradient space, of variance σ²C²(1/m² + Σ_l 4^−l) per element.

    Attributes:
        noise_multiplier: σ in each round.
        clip_domain: The norm that is clipped to C: ``coefficients`` ‖H‖ (the paper's Algorithm 1), ``weighted``
            ‖W∘H‖, ``gradient`` ‖g‖. The true noise multiplier is σ/m, σ and σ/√m.
        reading: Which claim of the paper the ledger's published column takes, see ``HaarNoise``.

    Raises:
        ValueError: If the clip domain or the reading is unknown.
    """

    noise_multiplier: Schedule
    clip_domain: ClipDomain = "coefficients"
    reading: Literal["algorithm_1", "lemma_2"] = "algorithm_1"

    def __post_init__(self) -> None:
        if self.clip_domain not in get_args(ClipDomain):
            raise ValueError(
                f"clip_domain must be one of {', '.join(get_args(ClipDomain))}, found {self.clip_domain!r}"
            )
        if self.reading not in ("algorithm_1", "lemma_2"):
            raise ValueError(f"reading must be algorithm_1 or lemma_2, found {self.reading!r}")

    def squared_norms(self, gradients: PerSampleGradients) -> Tensor:
        """(k, B, 1) in the domain of Haar coefficients, (k, B, L) for ``gradient``."""
        if self.clip_domain == "gradient":
            return gradients.squared_norms()
        norms = [haar_squared_norms(part, self.clip_domain) for _, part in gradients.formed()]
        return torch.cat(norms, dim=1)[..., None]

    def add(self, total: Tensor, sensitivity: Tensor, step: Step) -> Tensor:
        """See ``NoiseMechanism.add``; the sensitivity is that of the clip domain, C."""
        multiplier = torch.full_like(sensitivity, self.noise_multiplier.at(step.round_index))
        total += standard_haar_noise(PURPOSE, step, total) * (multiplier * sensitivity)[:, None]
        return multiplier

    def release(self, steps: LocalSteps, clipping: ClippingRule) -> DpSgdRelease:
        """See ``NoiseMechanism.release``."""
        return DpSgdRelease(
            steps.round_index,
            steps.clients,
            self.noise_multiplier.at(steps.round_index),
            steps.batch_sizes(),
            steps.steps,
            steps.sampling,
            steps.steps_before,
            noise=HaarNoise(padded_length(steps.dimension), self.clip_domain, self.reading),
            clipping=clipping.law(),
            caveat=steps.caveat,
        )
