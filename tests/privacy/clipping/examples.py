"""Rules to test, and gradients for them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from wirelessfl.privacy.clipping import (
    ClippingRule,
    DynamicClipping,
    FlatClipping,
    Geometric,
    PerLayerClipping,
    PrivateMooClipping,
    PublishedMooClipping,
    QuantileClipping,
    SampleMooClipping,
    per_layer_clipping,
)
from wirelessfl.privacy.clipping.conformance import ExampleStep
from wirelessfl.streams import Streams

PARTS = (6, 4, 3, 1)

RULES: dict[str, ClippingRule] = {
    "flat": FlatClipping(0.7),
    "per_layer": PerLayerClipping((0.5, 2.0), (0, 0, 1, 1)),
    "per_layer_split": per_layer_clipping(0.7, (0, 1, 2, 2)),
    "quantile": QuantileClipping(0.1, 0.3),
    "dynamic": DynamicClipping(Geometric(1.0, 0.5, 10)),
    "moo_published": PublishedMooClipping(1.0, 0.01, 0.1),
    "moo_sample": SampleMooClipping(1.0, 0.01, 0.1),
    "moo_private": PrivateMooClipping(1.0, 0.01, 0.1),
}


def step_of(
    clients: list[int], divisor: float | list[float] = 5.0, step: int = 0, round_index: int = 1, seed: int = 0
) -> ExampleStep:
    divisors = torch.tensor(divisor, dtype=torch.float64).expand(len(clients))
    return ExampleStep(Streams(seed), round_index, step, np.array(clients), divisors)


def vectors(*rows: list[float]) -> Tensor:
    """(1, B, d) gradients of one client."""
    return torch.tensor([rows], dtype=torch.float64)


def everyone(gradients: Tensor) -> Tensor:
    """(k, B) all present."""
    return torch.ones(gradients.shape[:2], dtype=torch.bool)
