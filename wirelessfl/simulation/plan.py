"""How a run is computed: device, threads, chunk and precision."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch

from wirelessfl.errors import InfeasibleError
from wirelessfl.learning import ExecutionPlan
from wirelessfl.scenario.bookkeeping import Compute


def choose_plan(compute: Compute, device: str, threads: int | None) -> ExecutionPlan:
    """The plan for a new run on this machine.

    Args:
        compute: what the scenario says.
        device: "auto", "cpu" or "cuda".
        threads: overrides the scenario's; without either, all cores.

    Raises:
        InfeasibleError: there is no GPU where one is asked for.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    plan = ExecutionPlan(
        device=device,
        threads=threads or compute.threads or os.cpu_count() or 1,
        precision=compute.precision,
        **({} if compute.chunk is None else {"chunk": compute.chunk}),
    )
    _check_device(plan.device)
    return plan


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
