"""Noise on Haar wavelet coefficients (DP-SGD-WAV), and clipping in their norms."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.privacy import ClipDomain, HaarNoise, NoiseLaw, WaveletReading, padded_length
from wirelessfl.privacy.clipping import Step, shrink
from wirelessfl.privacy.costs import require_choices
from wirelessfl.privacy.mechanisms.base import PerSampleGradients
from wirelessfl.privacy.mechanisms.gaussian import PURPOSE, GaussianMechanism
from wirelessfl.privacy.mechanisms.haar_noise import add_haar_noise
from wirelessfl.privacy.mechanisms.haar_norms import haar_squared_norms, haar_squared_norms_of_pieces


def clip_by_haar_norm(
    vectors: Tensor, clip: float, clip_domain: Literal["coefficients", "weighted"]
) -> tuple[Tensor, Tensor]:
    """Vectors (k, d) scaled to Haar norm ``clip`` where they exceed it, and their (k,) norms before.

    A vector whose norm is not finite becomes zero.
    """
    norms = haar_squared_norms(vectors, clip_domain).sqrt()
    weights = shrink(norms, norms.new_full((), clip))[:, None]
    return (vectors * weights).where(weights > 0, 0.0), norms


@dataclass(frozen=True)
class HaarMechanism(GaussianMechanism):
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

    clip_domain: ClipDomain = "coefficients"
    reading: WaveletReading = "algorithm_1"

    def __post_init__(self) -> None:
        require_choices(self, clip_domain=ClipDomain, reading=WaveletReading)

    @override
    def squared_norms(self, gradients: PerSampleGradients) -> Tensor:
        if self.clip_domain == "gradient":
            return gradients.squared_norms()
        norms = [haar_squared_norms_of_pieces(pieces, self.clip_domain) for pieces in gradients.pieces()]
        return torch.cat(norms, dim=1)[..., None]

    @override
    def draw(self, total: Tensor, noise_std: Tensor, step: Step) -> None:
        add_haar_noise(total, noise_std, PURPOSE, step)

    @override
    def law(self, dimension: int) -> NoiseLaw:
        return HaarNoise(padded_length(dimension), self.clip_domain, self.reading)
