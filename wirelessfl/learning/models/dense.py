"""Fully connected models, and the tempered sigmoid, which torch lacks."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from wirelessfl.errors import precondition


def logistic(feature_shape: Sequence[int], num_classes: int) -> nn.Sequential:
    """Multinomial logistic regression: one linear layer on the flattened features."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(feature_shape), num_classes))


def mlp(
    feature_shape: Sequence[int],
    num_classes: int,
    hidden: Sequence[int] = (32,),
    activation: Callable[[], nn.Module] = nn.ReLU,
) -> nn.Sequential:
    """A multilayer perceptron on the flattened features.

    Args:
        feature_shape: Shape of one sample.
        num_classes: Number of logits.
        hidden: Width of each hidden layer, in order; at least one, each at least 1.
        activation: Makes the non-linearity that follows each hidden layer.

    Raises:
        ValueError: if there is no hidden layer (that is ``logistic``) or a width is below 1.
    """
    precondition(
        hidden and min(hidden) >= 1, f"hidden must name at least one layer of width 1 or more, not {list(hidden)}"
    )
    layers: list[nn.Module] = [nn.Flatten()]
    width = math.prod(feature_shape)
    for next_width in hidden:
        layers += [nn.Linear(width, next_width), activation()]
        width = next_width
    return nn.Sequential(*layers, nn.Linear(width, num_classes))


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
