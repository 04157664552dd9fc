"""The local models of one block, as an engine for gradients shows them to the training loop."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from wirelessfl.learning.cohort.transform import SampleGradients


class LocalModels(Protocol):
    """k local models and their gradients, in whatever coordinates suit the computation.

    The training loop owns optimizer and schedule; it changes ``trained`` in place between the calls.

    Attributes:
        trained: Matrices (k, m_j) of coordinates, a row a client, that start at ``anchors``.
        anchors: Of each matrix the values (m_j,) at the global model, for the proximal term.
    """

    trained: list[Tensor]
    anchors: list[Tensor]

    def add_gradient(self, step: int, into: list[Tensor], decay: float) -> Tensor:
        """into_j ← decay · into_j + gradient of the mean batch loss by ``trained[j]``, for the active rows.

        Returns:
            (a, b) losses of the samples, arbitrary in padding.
        """
        ...

    def updates(self) -> Tensor:
        """(k, d) local minus global model; may overwrite ``trained``."""
        ...


class SampledModels(LocalModels, Protocol):
    """Local models that also give per-sample gradients; ``trained`` is then one (k, d) matrix."""

    def samples(self, step: int) -> SampleGradients:
        """The per-sample gradients of the batches of ``step``."""
        ...
