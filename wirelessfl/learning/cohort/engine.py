"""Local training of a whole cohort: clients stacked on a leading axis, in fixed blocks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import TypeVar

from wirelessfl.learning.algorithms.base import LocalObjective
from wirelessfl.learning.batches import local_steps, plan_batches
from wirelessfl.learning.cohort import softmax_regression
from wirelessfl.learning.cohort.block import BlockData
from wirelessfl.learning.cohort.execution import ExecutionPlan, map_in_order, precision_scope
from wirelessfl.learning.cohort.general import GeneralModels, StackedGradients
from wirelessfl.learning.cohort.looped import LoopedGradients, LoopedModels, trains_client_by_client
from wirelessfl.learning.cohort.run import LocalModels, LocalRun, SampledModels, Trained, VoidSteps
from wirelessfl.learning.cohort.stacked import ActivationSpace, SampleSpace, StackedModels, compile_program
from wirelessfl.learning.cohort.sums import BlockSum, SummedBlock
from wirelessfl.learning.cohort.training import (
    CohortBlock,
    GradientTransform,
    LocalTraining,
    StepContext,
    TransformState,
)
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.layout import image_format
from wirelessfl.learning.population import Population
from wirelessfl.streams import Streams
from wirelessfl.transfers import upload

Block = TypeVar("Block", default=CohortBlock)
Block_co = TypeVar("Block_co", covariant=True, default=CohortBlock)


def train_cohort(
    model: FlatModel,
    start: Tensor,
    population: Population,
    clients: NDArray[np.int64],
    training: LocalTraining,
    streams: Streams,
    round_index: int,
    plan: ExecutionPlan,
    transform: GradientTransform | None = None,
    transform_state: Mapping[str, Tensor] | None = None,
    objective: Callable[[NDArray[np.int64]], LocalObjective] | None = None,
    steps: NDArray[np.int64] | None = None,
    begin: NDArray[np.float32] | None = None,
    elsewhere: "BlockMap[Block] | None" = None,
    finish: Callable[[CohortBlock], CohortBlock | Block] | None = None,
) -> Iterator[CohortBlock | Block]:
    """Updates of ``clients`` that train from the global model, block by block.

    Clients are sorted by their number of local steps, so that those of a block are alike, and each block is
    computed, handed out and forgotten: memory grows with the block and not with the cohort. What is computed
    for a client does not depend on the others beyond float rounding, and the order of blocks is fixed. On a CPU
    the workers begin at once, and the caller may do other things before it asks for the first block.

    Args:
        model: The model.
        start: (d,) the global model w̄; its dtype is that of the computation (float64 to check float32).
        population: The clients' data.
        clients: (n,) the clients to train, each once.
        training: What each of them does.
        streams: Random streams of the run; the purposes used here are ``batch_order`` and ``augmentation``.
        round_index: Communication round, from 1.
        plan: How to compute it.
        transform: Per-sample clipping and noise; None trains on plain batch gradients. Like ``population``, it is
            used from several threads at once.
        transform_state: Rows (n, ...) of the transform's state from earlier rounds, in the order of ``clients``, on
            the host; what is not in it starts anew.
        objective: From positions (k,) among ``clients`` to their local objective, whose proximal weight then counts;
            called by worker threads. None for the loss with the proximal term of ``training``.
        steps: (n,) local steps, of a client's batches the first ones; None for all that ``training`` has.
        begin: (n, d) models that clients begin with in place of w̄, from which updates and the proximal term are counted
            all the same; without a transform.
        elsewhere: Trains the blocks in other processes; None for the threads of this one.
        finish: What becomes of a block that was trained here; on a CPU called by worker threads. None for the block.

    Returns:
        Blocks of at most ``plan.chunk`` clients that together hold each client once.

    Raises:
        torch.OutOfMemoryError: A GPU does not hold a block.
    """
    device = torch.device(plan.device)
    sizes = population.sizes[clients]
    cohort = Cohort(
        model=model,
        start=start if start.device.type == device.type else upload([start.numpy()], device)[0],
        population=population,
        clients=clients,
        steps=local_steps(sizes, training.batch_size, training.epochs, training.steps) if steps is None else steps,
        training=training,
        streams=streams,
        round_index=round_index,
        plan=plan,
        transform=transform,
        transform_state=transform_state,
        objective=objective,
        begin=begin,
    )
    # Before the workers: both run the module and swap its parameters meanwhile, which no two threads may do.
    compile_program(model)
    image_format(model)
    order = np.lexsort((np.arange(len(clients)), -sizes, -cohort.steps))
    blocks = [order[first : first + plan.chunk] for first in range(0, len(order), plan.chunk)]
    if elsewhere is not None:
        return elsewhere(cohort, blocks)
    done = cohort.train_block if finish is None else lambda block: finish(cohort.train_block(block))
    if device.type == "cpu":
        return map_in_order(done, blocks, plan.threads)
    return (done(block) for block in blocks)  # by ``map`` a StopIteration of an algorithm would end the round


class BlockMap(Protocol[Block_co]):
    """Training of the blocks of a cohort in other processes, in their order."""

    def __call__(self, cohort: "Cohort", blocks: Sequence[NDArray[np.int64]]) -> Iterator[Block_co]:
        """The finished blocks, each of the clients at positions (k,), with the bits of `Cohort.train_block`."""


class TrainingElsewhere(BlockMap, Protocol):
    """The same, also for servers that need no single updates."""

    def summing(self, total: BlockSum) -> BlockMap[SummedBlock]:
        """Training of blocks of which the parts of a sum come back."""


@dataclass(frozen=True)
class CohortPart:
    """What a block of k clients needs beside data, model and what all blocks of a round share.

    Attributes:
        positions: (k,) their places among the clients of the round.
        clients: (k,) the clients.
        steps: (k,) local steps.
        transform_state: Rows (k, ...) of the transform's state from earlier rounds; None where there are none.
        prox_mu: μ of their local objective; None for that of the training.
        correction: (k, d) added to their gradients; None for none.
        begin: (k, d) models to begin with; None for the global one.
    """

    positions: NDArray[np.int64]
    clients: NDArray[np.int64]
    steps: NDArray[np.int64]
    transform_state: Mapping[str, NDArray[Any]] | None
    prox_mu: float | None
    correction: NDArray[Any] | None
    begin: NDArray[np.float32] | None


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """What `train_cohort` was given, ``start`` on the device of the plan, and the local steps (n,) of each client."""

    model: FlatModel
    start: Tensor
    population: Population
    clients: NDArray[np.int64]
    steps: NDArray[np.int64]
    training: LocalTraining
    streams: Streams
    round_index: int
    plan: ExecutionPlan
    transform: GradientTransform | None
    transform_state: Mapping[str, Tensor] | None
    objective: Callable[[NDArray[np.int64]], LocalObjective] | None
    begin: NDArray[np.float32] | None

    def part(self, positions: NDArray[np.int64]) -> CohortPart:
        """The part of the clients at ``positions`` (k,)."""
        rows, own = self.transform_state, LocalObjective() if self.objective is None else self.objective(positions)
        return CohortPart(
            positions,
            self.clients[positions],
            self.steps[positions],
            None if rows is None else {name: values.numpy()[positions] for name, values in rows.items()},
            None if self.objective is None else own.prox_mu,
            None if own.correction is None else own.correction.cpu().numpy(),
            None if self.begin is None else self.begin[positions],
        )

    def train_block(self, positions: NDArray[np.int64]) -> CohortBlock:
        """The finished training of the clients at ``positions`` (k,)."""
        members, training = self.clients[positions], self.training
        stream = self.streams.nodes("batch_order", self.round_index, members)
        sizes, steps = self.population.sizes[members], self.steps[positions]
        batches = plan_batches(training.sampling, stream, sizes, steps, training.batch_size)
        correction = None
        if self.objective is not None:
            own = self.objective(positions)
            training, correction = replace(training, prox_mu=own.prox_mu), own.correction
        with torch.no_grad(), precision_scope(self.plan):
            augmentation, changes = training.augmentation, []
            if augmentation is not None:
                stream = self.streams.nodes("augmentation", self.round_index, members)
                changes = [augmentation.drawn(stream, sizes, batches.index)]
            data = BlockData.of(self.population.shards(members), batches, self.start, augmentation, changes)
            if self.transform is None:
                begin = None if self.begin is None else upload([self.begin[positions]], self.start.device)[0]
                return train_plainly(self.model, self.start, training, data, correction, begin).report(positions)
            attempt = partial(self._train_privately, positions, training, data, self.transform, correction)
            with suppress(VoidSteps):
                return attempt(reads_values=self.start.device.type == "cpu")
            # Out here, where no exception holds on to the updates that are void: memory is planned for one block.
            return attempt(reads_values=True)

    def _train_privately(
        self,
        positions: NDArray[np.int64],
        training: LocalTraining,
        data: BlockData,
        transform: GradientTransform,
        correction: Tensor | None,
        *,
        reads_values: bool,
    ) -> CohortBlock:
        members, device = self.clients[positions], self.start.device
        state = _rows_of(self.transform_state, positions, transform.start(members, self.start), device)
        context = StepContext(
            self.streams, self.round_index, 0, members, self.start, training.learning_rate, reads_values
        )
        trained = train_privately(self.model, self.start, training, data, transform, state, context, correction)
        return trained.report(positions)


def train_plainly(
    model: FlatModel,
    start: Tensor,
    training: LocalTraining,
    data: BlockData,
    correction: Tensor | None = None,
    begin: Tensor | None = None,
) -> Trained:
    """All local steps of a block on plain gradients; on a GPU nothing is copied or waited for in here.

    Args:
        model: The model.
        start: (d,) the global model, on the device.
        training: What each client does.
        data: Of the clients.
        correction: (k, d) added to every gradient, on the device; None for none.
        begin: (k, d) models to begin with, on the device; None for the global one.
    """
    program = compile_program(model)
    unchanged = correction is None and begin is None
    if unchanged and program is not None and softmax_regression.takes(program, start, training, data):
        return softmax_regression.train(program, start, training, data)
    in_span = training.optimizer.linear and data.augmentation is None
    models = _linear_models(model, start, data, correction) if in_span and begin is None else None
    models = models or _sampled_models(model, start, data, correction)
    if begin is not None:
        models.trained[0].copy_(begin)
    return LocalRun(models, training, data).train(models.add_gradient)


def train_privately(
    model: FlatModel,
    start: Tensor,
    training: LocalTraining,
    data: BlockData,
    transform: GradientTransform,
    state: TransformState,
    context: StepContext,
    correction: Tensor | None = None,
) -> Trained:
    """The same on gradients that ``transform`` clips and noises.

    Args:
        model: The model.
        start: (d,) the global model, on the device.
        training: What each client does.
        data: Of the clients.
        transform: Clipping and noise.
        state: Rows (k, ...) of its state, on the device; changed in place.
        context: That of the first step, for all clients of the block.
        correction: (k, d) added to every gradient after its noise, on the device; None for none.
    """
    models = _sampled_models(model, start, data, correction)
    return LocalRun(models, training, data).train_privately(models.samples, transform, state, context)


def _linear_models(model: FlatModel, start: Tensor, data: BlockData, correction: Tensor | None) -> LocalModels | None:
    # The local models of a block in the span of its samples or activations, where that costs less; else None
    program = compile_program(model)
    if program is None:
        return None
    if SampleSpace.fits(program):
        space = SampleSpace(program)
        return space.models(start, data, correction) if space.pays_off(data) else None
    # On a GPU its small products were not measured; the correction of a layer within has other inputs in each step
    if start.device.type != "cpu" or correction is not None:
        return None
    activations = ActivationSpace.of(program, data.largest_batch, len(data.batches))
    return None if activations is None else activations.models(start, data)


def _sampled_models(model: FlatModel, start: Tensor, data: BlockData, correction: Tensor | None) -> SampledModels:
    # The local models of a block: in closed forms where all layers have them, else client by client or by ``vmap``
    program = compile_program(model)
    if program is not None:
        return StackedModels(program, start, data, correction)
    own = model.on(start.device)
    if start.device.type == "cpu" and trains_client_by_client(model):
        return LoopedModels(LoopedGradients(own, image_format(model)), start, data, correction)
    return GeneralModels(StackedGradients(own), start, data, correction)


def _rows_of(
    state: Mapping[str, Tensor] | None, positions: NDArray[np.int64], fresh: TransformState, device: torch.device
) -> TransformState:
    # The rows of ``state`` at ``positions`` where there are any, sent to ``device``, else the fresh ones
    kept = {name: state[name] for name in fresh if state is not None and name in state}
    if not kept:
        return fresh
    sent = upload([rows[torch.from_numpy(positions)].numpy() for rows in kept.values()], device)
    return fresh | dict(zip(kept, sent, strict=True))
