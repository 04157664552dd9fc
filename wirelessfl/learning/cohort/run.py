"""The local steps of one block of clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.local import LocalModels
from wirelessfl.learning.cohort.precision import full_precision
from wirelessfl.learning.cohort.training import CohortBlock, LocalTraining
from wirelessfl.learning.cohort.transform import (
    GradientTransform,
    PrivateStep,
    SampleGradients,
    StepContext,
    TransformState,
)
from wirelessfl.learning.optimizers import OptimizerState


class _Group(NamedTuple):
    """One matrix of trained coordinates and what its optimizer keeps, all by client."""

    trained: Tensor
    accumulated: Tensor
    anchor: Tensor
    state: OptimizerState

    def first(self, active: int) -> _Group:
        """The rows of the first ``active`` clients."""
        if active == len(self.trained):
            return self
        state = {name: rows[:active] for name, rows in self.state.items()}
        return _Group(self.trained[:active], self.accumulated[:active], self.anchor, state)


class LocalRun:
    """Optimizer state, losses and statistics of k clients while they train."""

    def __init__(self, models: LocalModels, training: LocalTraining, data: BlockData) -> None:
        self.models = models
        self.training = training
        self.data = data
        self.groups = [
            _Group(matrix, accumulated, anchor, training.optimizer.start(matrix))
            for matrix, accumulated, anchor in zip(models.trained, models.accumulated, models.anchors, strict=True)
        ]
        self.loss_sum = torch.zeros(data.clients, dtype=torch.float64, device=data.own_rows.device)
        self.transform_state: TransformState = {}
        self.statistics: dict[str, Tensor] = {}

    def train(self) -> None:
        """All local steps on plain batch gradients."""
        decay = self.training.optimizer.decay
        for step, batch in enumerate(self.data.batches):
            self._add_losses(batch, self.models.add_gradient(batch, decay))
            self._descend(step, len(batch.rows))

    def train_privately(
        self,
        samples_of: Callable[[Batch], SampleGradients],
        transform: GradientTransform,
        state: TransformState,
        context: StepContext,
    ) -> None:
        """All local steps on gradients that ``transform`` clips and noises.

        Args:
            samples_of: Gives the per-sample gradients of a step at the current parameters, one (k, d) matrix.
            transform: Clipping and noise.
            state: Rows (k, ...) of its state, updated in place.
            context: That of the first step, for all clients of the block.
        """
        self.transform_state = state
        decay = self.training.optimizer.decay
        for step, batch in enumerate(self.data.batches):
            active = len(batch.rows)
            samples = samples_of(batch)
            now = replace(context, step=step, clients=context.clients[:active], divisor=batch.divisor)
            rows = {name: values[:active] for name, values in state.items()}
            with full_precision(samples.losses.device):
                stepped = transform(samples, rows, now, self.models.accumulated[0][:active], decay)
            self._keep(stepped, step)
            self._add_losses(batch, samples.losses)
            self._descend(step, active)

    def _descend(self, step: int, active: int) -> None:
        """Add the proximal term, which touches no data and needs no noise, and take one optimizer step."""
        training = self.training
        for whole in self.groups:
            group = whole.first(active)
            if training.prox_mu:
                group.accumulated.add_(group.trained - group.anchor, alpha=training.prox_mu)
            training.optimizer.step(group.trained, group.accumulated, group.state, training.learning_rate, step)

    def _add_losses(self, batch: Batch, losses: Tensor) -> None:
        self.loss_sum[: len(losses)] += losses.where(batch.present, 0.0).sum(1)

    def _keep(self, out: PrivateStep, step: int) -> None:
        for name, rows in out.state.items():
            self.transform_state[name][: len(rows)] = rows
        for name, values in out.statistics.items():
            if name not in self.statistics:
                shape = (self.data.clients, len(self.data.batches))
                self.statistics[name] = torch.full(shape, torch.nan, dtype=torch.float64, device=values.device)
            self.statistics[name][: len(values), step] = values.double()

    def finish(self, positions: NDArray[np.int64]) -> CohortBlock:
        """The updates, clipped, and what is reported of them; ``positions`` (k,) names the clients."""
        updates = self.models.updates()
        norm_raw = torch.linalg.vector_norm(updates, dim=1)
        norm = norm_raw if self.training.clip is None else _clip_rows(updates, norm_raw, self.training.clip)
        return CohortBlock(
            positions,
            updates,
            norm_raw=norm_raw.double().cpu().numpy(),
            norm=norm.double().cpu().numpy(),
            train_loss=(self.loss_sum / self.data.seen).cpu().numpy(),
            transform_state=self.transform_state,
            statistics={name: values.cpu().numpy() for name, values in self.statistics.items()},
        )


def _clip_rows(updates: Tensor, norm: Tensor, clip: float) -> Tensor:
    """Scale the rows (k, d) in place to norm ``clip`` where they exceed it, and give the norms (k,) after.

    A row whose norm is not finite becomes zero: no scaling would bring it inside the ball.
    """
    finite = torch.isfinite(norm)
    scale = (clip / norm).clamp(max=1.0).where(finite, 0.0)
    if bool((scale < 1).any()):  # otherwise a pass over all updates would change nothing
        updates.mul_(scale[:, None])
    if not bool(finite.all()):
        updates.masked_fill_(~finite[:, None], 0.0)
    return norm.clamp(max=clip).where(finite, 0.0)
