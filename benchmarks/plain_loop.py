"""What a researcher writes by hand: one client after the other, a module, autograd, ``torch.optim.SGD``.

With a clip it is DP-SGD as one writes it in PyTorch today: per-sample gradients by ``torch.func``, each scaled to the
clip norm, Gaussian noise on their sum, one client after the other. The package gives at most the module.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from benchmarks.recorded import Clock, RoundTimes


def perceptron(*widths: int) -> nn.Module:
    """Linear layers of these widths, from the features to the classes, with ReLU between them."""
    layers: list[nn.Module] = []
    for width_in, width_out in pairwise(widths):
        layers += [nn.Linear(width_in, width_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@dataclass(frozen=True)
class PlainTask:
    """What to train.

    Attributes:
        inputs: (K, n, *feature), a row a client.
        targets: (K, n).
        network: makes the module.
        batch: samples in a mini-batch.
        epochs: local epochs in a round.
        learning_rate: of SGD.
        momentum: of SGD; starts anew in every round.
        clip: norm that per-sample gradients are scaled to; None trains without privacy.
        noise_multiplier: standard deviation of the noise over the clip.
    """

    inputs: Tensor
    targets: Tensor
    network: Callable[[], nn.Module]
    batch: int
    epochs: int
    learning_rate: float
    momentum: float
    clip: float | None = None
    noise_multiplier: float = 1.0

    def module(self, seed: int = 1) -> nn.Module:
        """The model, always with the same initial parameters."""
        torch.manual_seed(seed)
        return self.network()

    def batches(self, client: int) -> Iterator[tuple[Tensor, Tensor]]:
        """All mini-batches of a client's round, in a fixed order."""
        for _ in range(self.epochs):
            for first in range(0, self.inputs.shape[1], self.batch):
                yield self.inputs[client, first : first + self.batch], self.targets[client, first : first + self.batch]


def train_plainly(task: PlainTask, rounds: int, threads: int) -> RoundTimes:
    """Federated averaging, client by client."""
    torch.set_num_threads(threads)
    model, clients = task.module(), len(task.inputs)
    train_client = _train if task.clip is None else _train_privately
    clock = Clock()
    for _ in range(rounds):
        total = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
        for client in range(clients):
            for name, value in train_client(model, task, client).state_dict().items():
                total[name] += value
        model.load_state_dict({name: value / clients for name, value in total.items()})
        clock.lap()
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(task.inputs.flatten(0, 1)), task.targets.flatten())
    return clock.times(float(loss))


def _train(model: nn.Module, task: PlainTask, client: int) -> nn.Module:
    local = copy.deepcopy(model)
    optimizer = torch.optim.SGD(local.parameters(), lr=task.learning_rate, momentum=task.momentum)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in task.batches(client):
        optimizer.zero_grad()
        criterion(local(inputs), targets).backward()
        optimizer.step()
    return local


def _train_privately(model: nn.Module, task: PlainTask, client: int) -> nn.Module:
    local = copy.deepcopy(model)
    optimizer = torch.optim.SGD(local.parameters(), lr=task.learning_rate, momentum=task.momentum)
    parameters = dict(local.named_parameters())

    def loss(values: dict[str, Tensor], sample: Tensor, target: Tensor) -> Tensor:
        return nn.functional.cross_entropy(functional_call(local, values, (sample[None],)), target[None])

    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))
    clip = task.clip or 0.0
    for inputs, targets in task.batches(client):
        gradients = per_sample({name: value.detach() for name, value in parameters.items()}, inputs, targets)
        norm = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in gradients.values()]).norm(dim=0)
        factor = (clip / norm).clamp(max=1.0)
        for name, value in parameters.items():
            total = torch.einsum("b,b...->...", factor, gradients[name])
            noise = task.noise_multiplier * clip * torch.randn_like(total)
            value.grad = (total + noise) / len(inputs)
        optimizer.step()
    return local
