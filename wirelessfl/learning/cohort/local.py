"""The local models of one block, as an engine for gradients shows them to the training loop."""

from typing import Protocol

import torch
from torch import Tensor
from typing_extensions import override

from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.transform import SampleGradients


class LocalModels(Protocol):
    """k local models and their gradients, in whatever coordinates suit the computation.

    The training loop owns optimizer and schedule; it changes ``trained`` in place between the calls, and only
    the rows of clients that are still active.

    Attributes:
        trained: Matrices (k, m_j) of coordinates, a row a client, that start at ``anchors``.
        accumulated: The accumulated gradient by each of them (k, m_j), which starts at zero.
        anchors: Of each matrix the values (m_j,) or () at the global model, for the proximal term.
    """

    trained: list[Tensor]
    accumulated: list[Tensor]
    anchors: list[Tensor]

    def add_gradient(self, batch: Batch, decay: float) -> Tensor:
        """accumulated_j ← decay · accumulated_j + gradient of the mean batch loss, for the active rows.

        Returns:
            (a, b) losses of the samples, arbitrary in padding.
        """

    def updates(self) -> Tensor:
        """(k, d) local minus global model; may overwrite ``trained``."""


class SampledModels(LocalModels, Protocol):
    """Local models that also give per-sample gradients; ``trained`` is then one (k, d) matrix."""

    def samples(self, batch: Batch) -> SampleGradients:
        """The per-sample gradients of a step."""


class MatrixModels(SampledModels):
    """k local models whose coordinates are their parameters, the rows of one matrix (k, d)."""

    def __init__(self, start: Tensor, data: BlockData) -> None:
        self.data = data
        self.matrix = start.expand(data.clients, -1).clone()
        self.trained = [self.matrix]
        self.accumulated = [torch.zeros_like(self.matrix)]
        self.anchors = [start]

    @override
    def updates(self) -> Tensor:
        return self.matrix.sub_(self.anchors[0])
