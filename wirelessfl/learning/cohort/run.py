"""The local steps of one block of clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning.cohort.block import BlockData
from wirelessfl.learning.cohort.local import LocalModels
from wirelessfl.learning.cohort.training import CohortBlock, LocalTraining
from wirelessfl.learning.cohort.transform import (
    GradientTransform,
    PrivateSum,
    SampleGradients,
    StepContext,
    TransformState,
)


class LocalRun:
    """Optimizer state, losses and statistics of k clients while they train."""

    def __init__(self, models: LocalModels, training: LocalTraining, data: BlockData) -> None:
        self.models = models
        self.training = training
        self.data = data
        self.accumulated = [torch.zeros_like(matrix) for matrix in models.trained]
        self.optimizer_states = [training.optimizer.start(matrix) for matrix in models.trained]
        self.losses = torch.zeros_like(data.weights)
        self.transform_state: TransformState = {}
        self.statistics: dict[str, Tensor] = {}

    def train(self) -> None:
        """All local steps on plain batch gradients."""
        decay = self.training.optimizer.decay
        for step, active in enumerate(self.data.active):
            accumulated = [matrix[:active] for matrix in self.accumulated]
            losses = self.models.add_gradient(step, accumulated, decay)
            self.data.of_step(step, self.losses).copy_(losses)
            self._descend(step, active)

    def train_privately(
        self,
        samples_of: Callable[[int], SampleGradients],
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
        for step, active in enumerate(self.data.active):
            samples = samples_of(step)
            divisor = self.data.divisor[step, :active]
            now = replace(context, step=step, clients=context.clients[:active], divisor=divisor)
            out = transform(samples, {name: rows[:active] for name, rows in state.items()}, now)
            self._keep(out, step)
            self.data.of_step(step, self.losses).copy_(samples.losses)
            gradient = out.total.div_(divisor[:, None])
            self.accumulated[0][:active].mul_(self.training.optimizer.decay).add_(gradient)
            self._descend(step, active)

    def _descend(self, step: int, active: int) -> None:
        """Add the proximal term, which touches no data and needs no noise, and take one optimizer step."""
        training = self.training
        for matrix, anchor, whole, state in zip(
            self.models.trained, self.models.anchors, self.accumulated, self.optimizer_states, strict=True
        ):
            parameters, accumulated = matrix[:active], whole[:active]
            if training.prox_mu:
                accumulated.add_(parameters - anchor, alpha=training.prox_mu)
            rows = {name: values[:active] for name, values in state.items()}
            training.optimizer.step(parameters, accumulated, rows, training.learning_rate, step)

    def _keep(self, out: PrivateSum, step: int) -> None:
        for name, rows in out.state.items():
            self.transform_state[name][: len(rows)] = rows
        for name, values in out.statistics.items():
            if name not in self.statistics:
                shape = (self.data.clients, self.data.steps)
                self.statistics[name] = torch.full(shape, torch.nan, dtype=torch.float64, device=values.device)
            self.statistics[name][: len(values), step] = values.double()

    def finish(self, positions: NDArray[np.int64]) -> CohortBlock:
        """The updates, clipped, and what is reported of them; ``positions`` (k,) names the clients."""
        updates = self.models.updates()
        norm_raw = torch.linalg.vector_norm(updates, dim=1)
        norm = norm_raw if self.training.clip is None else _clip_rows(updates, norm_raw, self.training.clip)
        present = self.data.present
        seen = self.losses.where(present, 0.0).sum((0, 2), dtype=torch.float64)
        return CohortBlock(
            positions,
            updates,
            norm_raw=norm_raw.double().cpu().numpy(),
            norm=norm.double().cpu().numpy(),
            train_loss=(seen / present.sum((0, 2))).cpu().numpy(),
            transform_state=self.transform_state,
            statistics={name: values.cpu().numpy() for name, values in self.statistics.items()},
        )


def _clip_rows(updates: Tensor, norm: Tensor, clip: float) -> Tensor:
    """Scale the rows (k, d) in place to norm ``clip`` where they exceed it, and give the norms (k,) after.

    A row whose norm is not finite becomes zero: no scaling would bring it inside the ball.
    """
    finite = torch.isfinite(norm)
    updates.mul_((clip / norm).clamp(max=1.0).where(finite, 0.0)[:, None])
    updates[~finite] = 0.0
    return norm.clamp(max=clip).where(finite, 0.0)
