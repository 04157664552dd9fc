"""The local models of a block of clients, and their local steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from wirelessfl.conformance import returned
from wirelessfl.learning.cohort.block import Batch, BlockData
from wirelessfl.learning.cohort.execution import full_precision
from wirelessfl.learning.cohort.gradients import SampleGradients
from wirelessfl.learning.cohort.training import (
    CohortBlock,
    GradientTransform,
    LocalTraining,
    PrivateStep,
    StepContext,
    TransformState,
)
from wirelessfl.learning.optimizers import OptimizerState
from wirelessfl.privacy.clipping.base import SMALLEST_NORM
from wirelessfl.transfers import download


class Coordinates(Protocol):
    """k local models in whatever coordinates suit the computation.

    The training loop owns optimizer and schedule; it changes ``trained`` in place between the calls, and only
    the rows of clients that are still active.

    Attributes:
        trained: Matrices (k, m_j) of coordinates, a row a client, that start at ``anchors``.
        accumulated: The accumulated gradient by each of them (k, m_j), which starts at zero.
        anchors: Of each matrix the values (m_j,) or () at the global model, for the proximal term.
        corrections: Of each matrix what is added to every gradient (k, m_j), or None; empty where there is none.
    """

    trained: list[Tensor]
    accumulated: list[Tensor]
    anchors: list[Tensor]
    corrections: Sequence[Tensor | None] = ()

    def updates(self) -> Tensor:
        """(k, d) local minus global model; may overwrite ``trained``."""


class LocalModels(Coordinates, Protocol):
    """k local models and their gradients."""

    def add_gradient(self, batch: Batch, decay: float) -> Tensor:
        """accumulated_j ← decay · accumulated_j + gradient of the mean batch loss, for the active rows.

        Returns:
            (a, b) losses of the samples, arbitrary in padding.
        """


class SampledModels(LocalModels, Protocol):
    """Local models that also give per-sample gradients; ``trained`` is then one (k, d) matrix."""

    def samples(self, batch: Batch) -> SampleGradients:
        """The per-sample gradients of a step."""


class MatrixModels(SampledModels):
    """k local models whose coordinates are their parameters, the rows of one matrix (k, d)."""

    def __init__(self, start: Tensor, data: BlockData, correction: Tensor | None = None) -> None:
        self.data = data
        self.corrections = [correction]
        self.matrix = start.expand(data.clients, -1).clone()
        self.trained = [self.matrix]
        self.accumulated = [torch.zeros_like(self.matrix)]
        self.anchors = [start]

    @override
    def updates(self) -> Tensor:
        return self.matrix.sub_(self.anchors[0])


class _Group(NamedTuple):
    """One matrix of trained coordinates and what its optimizer keeps, all by client."""

    trained: Tensor
    accumulated: Tensor
    anchor: Tensor
    correction: Tensor | None
    state: OptimizerState

    def first(self, active: int) -> Self:
        """The rows of the first ``active`` clients."""
        if active == len(self.trained):
            return self
        state = {name: rows[:active] for name, rows in self.state.items()}
        correction = None if self.correction is None else self.correction[:active]
        trained, accumulated = self.trained[:active], self.accumulated[:active]
        return self._replace(trained=trained, accumulated=accumulated, correction=correction, state=state)


class VoidSteps(Exception):
    """Steps that do not hold, as an assumption made on the way was wrong; see ``PrivateStep.void``."""


@dataclass(frozen=True)
class Trained:
    """k clients that have finished, all of it on the computing device.

    Attributes:
        updates: (k, d), as of ``CohortBlock``; so are the others.
        norm_raw: (k,).
        norm: (k,).
        train_loss: (k,).
        transform_state: Rows (k, ...).
        statistics: Name to (k, S).
        void: (k,) bool, whose steps do not hold, see ``PrivateStep``; None where all do.
    """

    updates: Tensor
    norm_raw: Tensor
    norm: Tensor
    train_loss: Tensor
    transform_state: TransformState = field(default_factory=dict)
    statistics: Mapping[str, Tensor] = field(default_factory=dict)
    void: Tensor | None = None

    def report(self, positions: NDArray[np.int64]) -> CohortBlock:
        """Report for the host, brought there in one copy.

        Args:
            positions: (k,) names the clients.

        Raises:
            VoidSteps: The steps do not hold.
        """
        single = {name: rows for name, rows in self.transform_state.items() if rows.ndim == 1}
        numbers = {"norm_raw": self.norm_raw.double(), "norm": self.norm.double(), "train_loss": self.train_loss}
        found = download(
            numbers
            | {f"state/{name}": rows for name, rows in single.items()}
            | {f"statistics/{name}": values for name, values in self.statistics.items()}
            | ({} if self.void is None else {"void": self.void})
        )
        if "void" in found and found["void"].any():
            raise VoidSteps
        here = {name: torch.from_numpy(found[f"state/{name}"]) for name in single}
        return CohortBlock(
            positions,
            self.updates,
            norm_raw=found["norm_raw"],
            norm=found["norm"],
            train_loss=found["train_loss"],
            transform_state=self.transform_state | here,
            statistics={name: found[f"statistics/{name}"] for name in self.statistics},
        )


class LocalRun:
    """Optimizer state, losses and statistics of k clients while they train."""

    def __init__(self, models: Coordinates, training: LocalTraining, data: BlockData) -> None:
        self.models, self.training, self.data = models, training, data
        corrections = models.corrections or [None] * len(models.trained)
        self.groups = [
            _Group(*parts, training.optimizer.start(parts[0]))
            for parts in zip(models.trained, models.accumulated, models.anchors, corrections, strict=True)
        ]
        self.loss_sum = torch.zeros(data.clients, dtype=torch.float64, device=data.own_rows.device)
        self.transform_state: TransformState = {}
        self.statistics: dict[str, Tensor] = {}
        self.void: Tensor | None = None

    def train(self, add_gradient: Callable[[Batch, float], Tensor]) -> Trained:
        """All local steps on plain batch gradients.

        Args:
            add_gradient: As of ``LocalModels``.
        """
        decay = self.training.optimizer.decay
        for step, batch in enumerate(self.data.batches):
            self._descend(step, batch, add_gradient(batch, decay))
        return self.finished()

    def train_privately(
        self,
        samples_of: Callable[[Batch], SampleGradients],
        transform: GradientTransform,
        state: TransformState,
        context: StepContext,
    ) -> Trained:
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
            self._descend(step, batch, samples.losses)
        return self.finished()

    def _descend(self, step: int, batch: Batch, losses: Tensor) -> None:
        # One optimizer step, with proximal term and correction, which touch no data and need no noise
        training, active = self.training, len(losses)
        self.loss_sum[:active] += losses.where(batch.present, 0.0).sum(1)
        for whole in self.groups:
            group = whole.first(active)
            if training.prox_mu:
                group.accumulated.add_(group.trained - group.anchor, alpha=training.prox_mu)
            if group.correction is not None:
                group.accumulated.add_(group.correction)
            shape = group.trained.shape
            training.optimizer.step(group.trained, group.accumulated, group.state, training.learning_rate, step)
            returned("optimizer", training.optimizer, "step (parameters)", group.trained, shape)

    def _keep(self, out: PrivateStep, step: int) -> None:
        for name, rows in out.state.items():
            kept = self.transform_state[name]
            if rows.shape == kept.shape and rows.dtype == kept.dtype and rows.is_contiguous():
                self.transform_state[name] = rows  # a row of as many numbers as the model has takes a pass to copy
            else:
                if 0 in kept.stride():  # rows that start alike are one in memory
                    kept = self.transform_state[name] = kept.contiguous()
                kept[: len(rows)] = rows
        for name, values in out.statistics.items():
            if name not in self.statistics:
                shape = (self.data.clients, len(self.data.batches))
                self.statistics[name] = torch.full(shape, torch.nan, dtype=torch.float64, device=values.device)
            self.statistics[name][: len(values), step] = values.double()
        if out.void is not None:
            if self.void is None:
                self.void = torch.zeros(self.data.clients, dtype=torch.bool, device=out.void.device)
            self.void[: len(out.void)] |= out.void

    def finished(self) -> Trained:
        """The updates, clipped, and what is reported of them, before anything of it is on the host."""
        updates = self.models.updates()
        norm_raw = torch.linalg.vector_norm(updates, dim=1)
        plain = finished(updates, norm_raw, self.loss_sum, self.training, self.data)
        return replace(plain, transform_state=self.transform_state, statistics=self.statistics, void=self.void)


def finished(updates: Tensor, norm_raw: Tensor, loss_sum: Tensor, training: LocalTraining, data: BlockData) -> Trained:
    """The updates (k, d), clipped in place, their norms (k,) before and after, and mean losses from their sums (k,)."""
    norm = norm_raw if training.clip is None else clip_rows(updates, norm_raw, training.clip)
    return Trained(updates, norm_raw, norm, loss_sum / data.seen)


def clip_rows(updates: Tensor, norm: Tensor, clip: float) -> Tensor:
    """Clipping of the rows (k, d), in place, to norm ``clip``; returns the norms (k,) after.

    A row whose norm is not finite becomes zero: no scaling would bring it inside the ball.
    """
    finite = torch.isfinite(norm)
    scale = (clip / norm.clamp(min=SMALLEST_NORM)).clamp(max=1.0).where(finite, 0.0)
    # A pass over all updates that changes nothing is spared on a CPU, where to look takes no time.
    looks = updates.device.type == "cpu"
    if not looks or bool((scale < 1).any()):
        updates.mul_(scale[:, None])
    if not looks or not bool(finite.all()):
        updates.masked_fill_(~finite[:, None], 0.0)
    return norm.clamp(max=clip).where(finite, 0.0)
