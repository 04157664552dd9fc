"""Small data sets and a model whose constants are known, for the convergence bounds; scenarios name them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from wirelessfl.learning import Dataset, Examples, logistic
from wirelessfl.streams import Streams

FEATURES = 3
APART = 2.0
"""Distance of a separated sample from the plane between the classes, along the first axis."""


def overlapping(samples: int = 160) -> Dataset:
    """Two normal clouds, centres 1 apart, standard deviation 1/2: no plane separates them, so f has a minimum."""
    generator = Streams(0).generator("clouds/overlapping")
    targets = np.arange(samples) % 2
    inputs = 0.5 * generator.standard_normal((samples, FEATURES))
    inputs[:, 0] += targets - 0.5
    return _dataset("overlapping clouds", inputs, targets)


def contradicting(samples: int = 160) -> Dataset:
    """Every input once with either label: f is least at zero, where each class alone has a gradient all the same."""
    generator = Streams(0).generator("clouds/contradicting")
    inputs = np.repeat(generator.standard_normal((samples // 2, FEATURES)), 2, axis=0)
    return _dataset("contradicting clouds", inputs, np.arange(samples) % 2)


def separated(samples: int = 80) -> Dataset:
    """Two clouds on either side of a plane, at least 2 from it, within a tube of radius 1/2 about the first axis."""
    generator = Streams(0).generator("clouds/separated")
    targets = np.arange(samples) % 2
    inputs = generator.uniform(-0.25, 0.25, (samples, FEATURES))
    inputs[:, 0] = (2 * targets - 1) * (APART + generator.uniform(0, 0.25, samples))
    return _dataset("separated clouds", inputs, targets)


def zero_logistic(feature_shape: Sequence[int], num_classes: int) -> nn.Module:
    """The library's logistic regression, started at zero, where f is ln C whatever the data."""
    model = logistic(feature_shape, num_classes)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model


def _dataset(name: str, inputs: NDArray[np.float64], targets: NDArray[np.int64]) -> Dataset:
    """Tested on what it is trained on: the bounds are about the training objective."""
    examples = Examples(torch.from_numpy(inputs.astype(np.float32)), torch.from_numpy(targets.astype(np.int64)))
    return Dataset(name, examples, examples, ("left", "right"))
