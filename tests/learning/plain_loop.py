"""The slow, obvious reference: one client after the other with nn.Module, autograd and torch.optim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wirelessfl.learning.batches import local_steps, plan_batches
from wirelessfl.learning.cohort import LocalTraining
from wirelessfl.learning.data.examples import Examples
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.optimizers import SGD, AdaGrad, Adam, Optimizer
from wirelessfl.learning.population import Shards
from wirelessfl.streams import Streams

GradientRule = Callable[[nn.Module, Tensor, Tensor, float, int, int], list[Tensor]]


@dataclass(frozen=True)
class RandomPopulation:
    """Clients with normal inputs and random labels, whatever the shape."""

    sizes: NDArray[np.int64]
    feature_shape: tuple[int, ...] = (12,)
    num_classes: int = 3
    seed: int = 0
    lasting_bytes: int = 0
    validation: Examples | None = None
    test_owners: NDArray[np.int64] | None = None
    vocabulary: tuple[str, ...] | None = None

    @property
    def test(self) -> Examples:
        return self._examples(0, 7)

    def _examples(self, client: int, count: int) -> Examples:
        generator = torch.Generator().manual_seed(self.seed * 1000 + client)
        inputs = torch.randn(count, *self.feature_shape, generator=generator)
        return Examples(inputs, torch.randint(self.num_classes, (count,), generator=generator))

    def of_client(self, client: int) -> Examples:
        return self._examples(client, int(self.sizes[client]))

    def shards(self, clients: NDArray[np.int64]) -> Shards:
        own = [self.of_client(int(client)) for client in clients]
        sizes = self.sizes[clients]
        index = torch.zeros(len(clients), int(sizes.max()), dtype=torch.int64)
        for row, first in enumerate(np.cumsum(sizes) - sizes):
            index[row, : sizes[row]] = torch.arange(int(first), int(first + sizes[row]))
        return Shards(
            torch.cat([examples.inputs for examples in own]),
            torch.cat([examples.targets for examples in own]),
            index,
            torch.from_numpy(sizes),
        )


def torch_optimizer(optimizer: Optimizer, parameters: list[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    match optimizer:
        case SGD():
            return torch.optim.SGD(parameters, lr=lr, momentum=optimizer.momentum)
        case Adam():
            return torch.optim.Adam(parameters, lr=lr, betas=(optimizer.beta1, optimizer.beta2), eps=optimizer.eps)
        case AdaGrad():
            return torch.optim.Adagrad(parameters, lr=lr, eps=optimizer.eps)
    raise AssertionError(optimizer)


def batch_gradient(
    module: nn.Module, inputs: Tensor, targets: Tensor, divisor: float, client: int, step: int
) -> list[Tensor]:
    """The gradient of the batch loss; zero for an empty batch."""
    loss = nn.functional.cross_entropy(module(inputs), targets, reduction="sum") / divisor
    return list(torch.autograd.grad(loss, [one for one in module.parameters() if one.requires_grad]))


@dataclass
class LoopResult:
    """Update before and after clipping, and mean loss over the samples seen."""

    raw: Tensor
    update: Tensor
    train_loss: float


def train_client(
    model: FlatModel,
    start: Tensor,
    population: RandomPopulation,
    client: int,
    training: LocalTraining,
    streams: Streams,
    round_index: int,
    gradient_rule: GradientRule = batch_gradient,
    dtype: torch.dtype = torch.float64,
) -> LoopResult:
    """Train one client, by default in double precision."""
    module = model.module.to(dtype)
    parameters = [one for one in module.parameters() if one.requires_grad]  # of the others the module has the values
    for parameter, value in zip(parameters, model.unflatten(start).values(), strict=True):
        parameter.data = value.to(dtype).clone()
    optimizer = torch_optimizer(training.optimizer, parameters, training.learning_rate)
    data = population.of_client(client)
    sizes = np.array([len(data)])
    steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
    stream = streams.nodes("batch_order", round_index, np.array([client]))
    batches = plan_batches(training.sampling, stream, sizes, steps, training.batch_size)
    losses: list[float] = []
    for step in range(int(steps[0])):
        rows = torch.from_numpy(batches.index[step, 0, : batches.counts[step, 0]])
        inputs, targets = data.inputs[rows].to(dtype), data.targets[rows]
        with torch.no_grad():
            losses += nn.functional.cross_entropy(module(inputs), targets, reduction="none").tolist()
        gradients = gradient_rule(module, inputs, targets, float(batches.divisor[step, 0]), client, step)
        for parameter, gradient, anchor in zip(parameters, gradients, model.unflatten(start).values(), strict=True):
            parameter.grad = gradient + training.prox_mu * (parameter.detach() - anchor)
        optimizer.step()
    raw = torch.cat([parameter.detach().flatten() for parameter in parameters]) - start
    update = raw if training.clip is None else raw * min(1.0, training.clip / float(raw.norm()))
    model.module.float()
    return LoopResult(raw, update, float(np.mean(losses)) if losses else float("nan"))


def with_sampling(training: LocalTraining, sampling: str) -> LocalTraining:
    return replace(training, sampling=sampling)  # type: ignore[arg-type]
