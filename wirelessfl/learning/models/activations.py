"""Activation functions that torch lacks."""

import torch
from torch import Tensor, nn

from wirelessfl.errors import precondition


class TemperedSigmoid(nn.Module):
    """φ(x) = s · sigmoid(T x) − o, bounded activations that keep gradients small under clipping.

    Source: Papernot, Thakurta, Song, Chien, Erlingsson, "Tempered sigmoid activations for deep learning with
    differential privacy", AAAI 2021, eq. (2). The defaults s = 2, T = 2, o = 1 are tanh.

    Args:
        scale: s, above 0.
        temperature: T, the inverse temperature, above 0.
        offset: o.

    Raises:
        ValueError: if scale or temperature is not positive.
    """

    def __init__(self, scale: float = 2.0, temperature: float = 2.0, offset: float = 1.0) -> None:
        super().__init__()
        precondition(
            scale > 0 and temperature > 0,
            f"a tempered sigmoid needs scale > 0 and temperature > 0, not {scale} and {temperature}",
        )
        self.scale = scale
        self.temperature = temperature
        self.offset = offset

    def forward(self, inputs: Tensor) -> Tensor:
        """φ of every element."""
        return self.scale * torch.sigmoid(self.temperature * inputs) - self.offset

    def extra_repr(self) -> str:
        """The three constants, for ``print(module)``."""
        return f"scale={self.scale}, temperature={self.temperature}, offset={self.offset}"
