"""The least time that a round of local training could take at the machine's peaks.

Counted from the model alone, in closed form. Operations are those of matrix products and convolutions, a multiply-add
as two: forward, by the weights, and by the inputs of all trained layers but the first. Clipping and noise count
nothing, as far as they can be done within these passes.

Bytes are those that leave the chip at least when a step is a step on the weights: parameters and momentum are read and
written once a step and client, samples are read once an epoch, and what a trained layer puts out is written once and
read once. A program that keeps some of that in a cache, or trains in other coordinates, can be faster than this bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.gpu.peaks import COPY, GEMM, copy_bytes, gemm_operations
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.table import Row
from benchmarks.gpu.tasks import TRAINED, Task
from benchmarks.workloads import CLASSES

_FLOAT = 4  # bytes


@dataclass(frozen=True)
class LayerCost:
    """A trained layer and one sample.

    Attributes:
        products: Multiply-adds of the forward pass.
        outputs: Numbers that it puts out.
    """

    products: int
    outputs: int


def layer_costs(module: nn.Module, shape: tuple[int, ...]) -> list[LayerCost]:
    """Linear and convolutional layers of a module on the meta device, in the order in which a sample passes them."""
    costs: list[LayerCost] = []

    def count(layer: nn.Module, inputs: Any, output: Tensor) -> None:
        weight: Tensor = layer.weight  # type: ignore[assignment]
        costs.append(LayerCost(output[0].numel() * weight[0].numel(), output[0].numel()))

    for layer in module.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            layer.register_forward_hook(count)
    module(torch.zeros(1, *shape, device="meta"))
    return costs


@dataclass(frozen=True)
class RoundWork:
    """Floating-point operations and bytes of local training in one round."""

    operations: float
    bytes: float

    def seconds(self, operations_per_s: float, bytes_per_s: float) -> float:
        """The larger of both times at these peaks."""
        return max(self.operations / operations_per_s, self.bytes / bytes_per_s)


def round_work(task: Task) -> RoundWork:
    """What all clients of a round have to do."""
    with torch.device("meta"):  # shapes alone: no parameter is drawn and nothing is computed
        module = task.build(task.shape, CLASSES)
    dimension = sum(parameter.numel() for parameter in module.parameters())
    costs = layer_costs(module, task.shape)
    products = 3 * sum(cost.products for cost in costs) - costs[0].products
    passed = task.clients * task.samples * task.epochs
    steps = task.clients * task.epochs * -(-task.samples // task.batch)
    vectors = 2 * (2 if task.momentum else 1)
    numbers = steps * vectors * dimension + passed * (math.prod(task.shape) + 2 * sum(cost.outputs for cost in costs))
    return RoundWork(2.0 * products * passed, float(_FLOAT * numbers))


def with_shares(rows: Sequence[Row], setting: Setting) -> list[Row]:
    """The rows with ``share_of_peak`` where the peaks of the same GPU, driver and torch are among them."""
    tasks = {task.name: task for task in TRAINED}
    return [
        replace(row, share_of_peak=_share(row, tasks[row.workload].at(setting), rows, setting))
        if row.workload in tasks and row.rounds_per_s == row.rounds_per_s
        else row
        for row in rows
    ]


def _share(row: Row, task: Task, rows: Sequence[Row], setting: Setting) -> float:
    seconds = {peak.workload: peak.seconds for peak in rows if peak.part == "peaks" and peak.is_of(row)}
    gemm, copy = seconds.get(GEMM[task.precision], math.nan), seconds.get(COPY, math.nan)
    if math.isnan(gemm) or math.isnan(copy):
        return math.nan
    return round_work(task).seconds(gemm_operations(setting) / gemm, copy_bytes(setting) / copy) / row.seconds
