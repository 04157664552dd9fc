"""Noise on Haar wavelet coefficients (DP-SGD-WAV), and the norms in which gradients may be clipped for it."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.privacy.clipping import Step
from wirelessfl.privacy.clipping.base import shrink
from wirelessfl.privacy.mechanisms.base import PerSampleGradients
from wirelessfl.privacy.mechanisms.gaussian import PURPOSE, GaussianMechanism
from wirelessfl.privacy.mechanisms.haar_norms import haar_squared_norms, haar_squared_norms_of_products
from wirelessfl.privacy.mechanisms.normals import add_normal
from wirelessfl.privacy.noise_laws import ClipDomain, HaarNoise, NoiseLaw
from wirelessfl.privacy.wavelet import inverse_haar

_DRAWN_BYTES = 2**22  # of coefficients at a time: the inverse transform passes over them while they are in the cache
_DRAWN_BYTES_ON_DEVICE = 2**28  # there launches count; the transform holds four times as much meanwhile


def padded_length(dimension: int) -> int:
    """m, the smallest power of two that is not below ``dimension``."""
    return 1 << max(dimension - 1, 0).bit_length()


def clip_by_haar_norm(
    vectors: Tensor, clip: float, clip_domain: Literal["coefficients", "weighted"]
) -> tuple[Tensor, Tensor]:
    """Vectors (k, d) scaled to Haar norm ``clip`` where they exceed it, and their (k,) norms before.

    A vector whose norm is not finite becomes zero.
    """
    norms = haar_squared_norms(vectors, clip_domain).sqrt()
    weights = shrink(norms, norms.new_full((), clip))[:, None]
    return (vectors * weights).where(weights > 0, 0.0), norms


def add_haar_noise(total: Tensor, noise_std: Tensor, step: Step) -> None:
    """Addition to row i of ``total`` (k, d), in place, of noise with coefficients N(0, (σ_i/W)²) before it is cut to d.

    Args:
        total: (k, d).
        noise_std: (k,) σ.
        step: Whose and which step this is.
    """
    clients, dimension = total.shape
    length = padded_length(dimension)
    scale = _inverse_weights(length, total.dtype, total.device)
    drawn = _DRAWN_BYTES if total.device.type == "cpu" else _DRAWN_BYTES_ON_DEVICE
    at_once = max(1, drawn // (total.element_size() * length))
    for first in range(0, clients, at_once):
        rows = slice(first, first + at_once)
        whose = step.clients[rows]
        coefficients = total.new_zeros(len(whose), length)
        add_normal(coefficients, noise_std[rows], step.streams, PURPOSE, step.round_index, whose, step.step)
        total[rows] += inverse_haar(coefficients.mul_(scale))[:, :dimension]


@lru_cache(maxsize=4)
def _inverse_weights(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    # (m,) 1/W of ``haar_weights``, filled in on the device: a copy would make the host wait.
    inverse = torch.full((length,), 1 / length, dtype=dtype, device=device)
    for level in range(1, length.bit_length()):
        inverse[length >> level : 2 * length >> level].fill_(2.0**-level)
    return inverse


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
    reading: Literal["algorithm_1", "lemma_2"] = "algorithm_1"

    def __post_init__(self) -> None:
        precondition(
            self.clip_domain in get_args(ClipDomain),
            f"clip_domain must be one of {', '.join(get_args(ClipDomain))}, found {self.clip_domain!r}",
        )
        precondition(
            self.reading in ("algorithm_1", "lemma_2"),
            f"reading must be algorithm_1 or lemma_2, found {self.reading!r}",
        )

    @override
    def squared_norms(self, gradients: PerSampleGradients) -> Tensor:
        if self.clip_domain == "gradient":
            return gradients.squared_norms()
        products = gradients.products()
        if products is not None:
            return haar_squared_norms_of_products(products, self.clip_domain)[..., None]
        norms = [haar_squared_norms(part, self.clip_domain) for _, part in gradients.formed()]
        return torch.cat(norms, dim=1)[..., None]

    @override
    def draw(self, total: Tensor, noise_std: Tensor, step: Step) -> None:
        add_haar_noise(total, noise_std, step)

    @override
    def law(self, dimension: int) -> NoiseLaw:
        return HaarNoise(padded_length(dimension), self.clip_domain, self.reading)
