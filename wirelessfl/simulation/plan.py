"""How a run is computed: device, threads, chunk and precision."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from wirelessfl.errors import InfeasibleError
from wirelessfl.learning import ExecutionPlan, FlatModel, LocalTraining, automatic_chunk
from wirelessfl.learning.cohort import Precision
from wirelessfl.scenario.bookkeeping import Compute


@dataclass(frozen=True)
class Resources:
    """What a new run may use; how many clients are trained together follows from model and cohort.

    Attributes:
        device: a torch device name.
        threads: worker threads.
        precision: of matrix products.
        chunk: clients trained together; None lets it be chosen.
    """

    device: str
    threads: int
    precision: Precision
    chunk: int | None

    def plan(self, model: FlatModel, training: LocalTraining, clients: int) -> ExecutionPlan:
        """The plan for rounds of so many clients."""
        chunk = self.chunk or automatic_chunk(model, training, clients, self.device, self.threads)
        return ExecutionPlan(self.device, self.threads, chunk, self.precision)


def choose_plan(compute: Compute, device: str, threads: int | None) -> Resources:
    """What a new run on this machine may use.

    Args:
        compute: what the scenario says.
        device: "auto", "cpu" or "cuda".
        threads: overrides the scenario's; without either, all cores.

    Raises:
        InfeasibleError: there is no GPU where one is asked for, or needed for the precision.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    _check_device(device)
    if compute.precision == "tf32" and device == "cpu":
        raise InfeasibleError("compute.precision: found tf32, which needs a GPU; allowed on a CPU: fp32 | bf16")
    return Resources(device, threads or compute.threads or os.cpu_count() or 1, compute.precision, compute.chunk)


def recorded_plan(recorded: Mapping[str, Any]) -> ExecutionPlan:
    """The plan of a recorded run, to be repeated bit for bit.

    Raises:
        InfeasibleError: this machine cannot follow it.
    """
    plan = ExecutionPlan(**recorded)
    _check_device(plan.device)
    return plan


def _check_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        raise InfeasibleError("device: cuda is asked for, but torch sees no GPU on this machine; allowed here is cpu")
