"""DP-SGD by Opacus, one client after the other, in the three ways that its users have; where it is installed.

The numbers of samples, steps, clip and noise are those of ``plain_loop``; batches come in a fixed order.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
from collections.abc import Iterable
from typing import Any, Literal, assert_never

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.plain_loop import PlainTask
from benchmarks.recorded import Clock, RoundTimes

Way = Literal["made per client", "module reused", "ghost clipping"]
WAYS: tuple[Way, ...] = ("made per client", "module reused", "ghost clipping")


def is_installed() -> bool:
    """Whether there is an Opacus to compare with."""
    return importlib.util.find_spec("opacus") is not None


def train_with_opacus(task: PlainTask, rounds: int, threads: int, way: Way) -> RoundTimes:
    """Federated averaging, client by client.

    Args:
        task: with a clip.
        rounds: of the run.
        threads: of torch.
        way: a ``PrivacyEngine`` for each client and round, with per-sample gradients or with ghost clipping; or one
            ``GradSampleModule`` for all, with an optimizer for each.
    """
    torch.set_num_threads(threads)
    model, clients, clock = task.module(), len(task.inputs), Clock()
    reused = importlib.import_module("opacus").GradSampleModule(copy.deepcopy(model))
    for _ in range(rounds):
        total = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
        for client in range(clients):
            local = reused if way == "module reused" else copy.deepcopy(model)
            trained = _train(local, model, task, client, way)
            for name, value in zip(total, trained.parameters(), strict=True):
                total[name] += value.detach()
        model.load_state_dict({name: value / clients for name, value in total.items()})
        clock.lap()
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(task.inputs.flatten(0, 1)), task.targets.flatten())
    return clock.times(float(loss))


def _train(local: Any, start: nn.Module, task: PlainTask, client: int, way: Way) -> nn.Module:
    optimizer: Any = torch.optim.SGD(local.parameters(), lr=task.learning_rate, momentum=task.momentum)
    criterion: Any = nn.CrossEntropyLoss()
    noise = {"noise_multiplier": task.noise_multiplier, "max_grad_norm": task.clip}
    batches: Iterable[tuple[Tensor, Tensor]]
    match way:
        case "module reused":
            private_optimizer = importlib.import_module("opacus.optimizers").DPOptimizer
            optimizer = private_optimizer(optimizer, expected_batch_size=task.batch, **noise)
            batches = task.batches(client)
        case "made per client" | "ghost clipping":
            loader = DataLoader(TensorDataset(task.inputs[client], task.targets[client]), batch_size=task.batch)
            engine = importlib.import_module("opacus").PrivacyEngine()
            parts = {"module": local, "optimizer": optimizer, "data_loader": loader, "poisson_sampling": False, **noise}
            if way == "ghost clipping":
                made = engine.make_private(criterion=criterion, grad_sample_mode="ghost", **parts)
                local, optimizer, criterion, batches = made
            else:
                local, optimizer, batches = engine.make_private(**parts)
        case _:
            assert_never(way)
    with torch.no_grad():
        for own, value in zip(local.parameters(), start.parameters(), strict=True):
            own.copy_(value)
    for inputs, targets in batches:
        optimizer.zero_grad()
        criterion(local(inputs), targets).backward()
        optimizer.step()
    trained: nn.Module = local
    return trained
