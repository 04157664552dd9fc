"""The local steps of one block of clients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.general import GeneralGradients
from wirelessfl.learning.cohort.training import CohortBlock, LocalTraining
from wirelessfl.learning.cohort.transform import GradientTransform, PrivateSum, StepContext, TransformState


class LocalRun:
    """Parameters, optimizer state and losses of k clients while they train."""

    def __init__(self, gradients: GeneralGradients, start: Tensor, training: LocalTraining, data: BlockData) -> None:
        clients = data.counts.shape[1]
        self.gradients = gradients
        self.start = start
        self.training = training
        self.data = data
        self.parameters = start.expand(clients, -1).clone()
        self.accumulated = torch.zeros_like(self.parameters)
        self.optimizer_state = training.optimizer.start(self.parameters)
        self.loss_sum = torch.zeros(clients, dtype=torch.float64, device=start.device)
        self.transform_state: TransformState = {}
        self.statistics: dict[str, Tensor] = {}

    def train(self) -> None:
        """All local steps on plain batch gradients."""
        for step in range(len(self.data.active)):
            batch = self.data.batch(step)
            parameters, accumulated = self._active_rows(batch)
            gradient, losses = self.gradients.weighted(
                parameters, batch.inputs, batch.targets, batch.present / batch.divisor
            )
            self._add_losses(batch, losses)
            self._descend(parameters, accumulated, gradient, step)

    def train_privately(self, transform: GradientTransform, state: TransformState, context: StepContext) -> None:
        """All local steps on gradients that ``transform`` clips and noises.

        Args:
            transform: Clipping and noise.
            state: Rows (k, ...) of its state, updated in place.
            context: That of the first step, for all clients of the block.
        """
        self.transform_state = state
        for step in range(len(self.data.active)):
            batch = self.data.batch(step)
            parameters, accumulated = self._active_rows(batch)
            samples = self.gradients.of_samples(parameters, batch.inputs, batch.targets, batch.present)
            now = replace(context, step=step, clients=context.clients[: len(parameters)], divisor=batch.divisor[:, 0])
            out = transform(samples, {name: rows[: len(parameters)] for name, rows in state.items()}, now)
            self._keep(out, step)
            self._add_losses(batch, samples.losses)
            self._descend(parameters, accumulated, out.total.div_(batch.divisor), step)

    def _active_rows(self, batch: Batch) -> tuple[Tensor, Tensor]:
        active = len(batch.targets)
        return self.parameters[:active], self.accumulated[:active]

    def _descend(self, parameters: Tensor, accumulated: Tensor, gradient: Tensor, step: int) -> None:
        """Add the proximal term, which touches no data and needs no noise, and take one optimizer step."""
        training = self.training
        accumulated.mul_(training.optimizer.decay).add_(gradient)
        if training.prox_mu:
            accumulated.add_(parameters - self.start, alpha=training.prox_mu)
        state = {name: rows[: len(parameters)] for name, rows in self.optimizer_state.items()}
        training.optimizer.step(parameters, accumulated, state, training.learning_rate, step)

    def _add_losses(self, batch: Batch, losses: Tensor) -> None:
        self.loss_sum[: len(losses)] += losses.where(batch.present, 0.0).sum(dim=1)

    def _keep(self, out: PrivateSum, step: int) -> None:
        for name, rows in out.state.items():
            self.transform_state[name][: len(rows)] = rows
        for name, values in out.statistics.items():
            if name not in self.statistics:
                shape = self.data.counts.T.shape
                self.statistics[name] = torch.full(shape, torch.nan, dtype=torch.float64, device=values.device)
            self.statistics[name][: len(values), step] = values.double()

    def finish(self, positions: NDArray[np.int64]) -> CohortBlock:
        """The updates, clipped, and what is reported of them; ``positions`` (k,) names the clients."""
        updates = self.parameters.sub_(self.start)
        norm_raw = torch.linalg.vector_norm(updates, dim=1)
        norm = norm_raw if self.training.clip is None else _clip_rows(updates, norm_raw, self.training.clip)
        train_loss = self.loss_sum / self.data.counts.sum(dim=0)
        return CohortBlock(
            positions,
            updates,
            norm_raw=norm_raw.double().cpu().numpy(),
            norm=norm.double().cpu().numpy(),
            train_loss=train_loss.double().cpu().numpy(),
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
