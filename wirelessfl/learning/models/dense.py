"""Fully connected models."""

import math
from collections.abc import Callable, Sequence

from torch import nn

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
