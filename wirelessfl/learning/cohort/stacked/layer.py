"""What a layer is to the stacked engine: k clients, each with parameters of its own and a batch of B samples."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

Saved: TypeAlias = Any  # what a layer keeps from forward for backward; its own business
Weights: TypeAlias = Sequence[Tensor]  # its parameters (k, *shape), in the module's order


class Layer(Protocol):
    """A layer without parameters, or the part of any layer that concerns its inputs.

    Samples are stacked as (k, B, ...), or as images in the layout of ``spatial``. Nothing is changed in place: a
    layer may keep its inputs or outputs for the backward pass.
    """

    def forward(self, weights: Weights, inputs: Tensor) -> tuple[Tensor, Saved]:
        """The outputs, and what the backward pass needs."""

    def backward(self, weights: Weights, saved: Saved, delta: Tensor) -> Tensor:
        """The derivative by the inputs, from ``delta``, that by the outputs.

        A layer without parameters may overwrite ``delta``: nobody else holds it.
        """


class TrainedLayer(Layer, Protocol):
    """A layer with parameters.

    ``deltas`` holds one derivative by the outputs for each parameter. They are the same where samples are
    weighted alike in all parameters.
    """

    def weighted(self, delta: Tensor, weights: Tensor) -> Tensor:
        """A new ``delta`` with client i's sample b times ``weights[i, b]`` (k, B)."""

    def add_gradient(self, saved: Saved, deltas: Sequence[Tensor], into: Weights, decay: float) -> None:
        """Sets into ← decay · into + Σ_b gradient of sample b, for each parameter."""

    def squared_norms(self, saved: Saved, delta: Tensor) -> list[Tensor]:
        """(k, B) squared norm of each sample's gradient by each parameter (Goodfellow 2015 for linear layers)."""

    def products(self, saved: Saved, delta: Tensor) -> list[tuple[Tensor, Tensor]] | None:
        """Of each parameter the gradients as outer products (k, B, m), (k, B, n); by default None: they are none."""
        return None

    def sample_gradients(self, saved: Saved, delta: Tensor, part: slice) -> list[Tensor]:
        """(k, b, *shape) gradient by each parameter of each sample in ``part``."""


def squared_norm(rows: Tensor) -> Tensor:
    """(k, B) squared norms of (k, B, n)."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=-1)
    return norms.square_()
