"""Execution plan of a run, and the memory that it takes: device, threads, chunk and precision."""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.errors import InfeasibleError, InputError
from wirelessfl.learning import Algorithm, ExecutionPlan, FlatModel, LocalTraining, Population
from wirelessfl.learning.batches import local_steps
from wirelessfl.learning.cohort import (
    BlockMemory,
    ClientDemand,
    GradientTransform,
    Precision,
    cpu_chunks,
    cuda_chunk,
    separate_blocks,
)
from wirelessfl.scenario.sections import MOST_THREADS, Compute
from wirelessfl.trace import available_memory, read_attributes


@dataclass(frozen=True)
class Resources:
    """Resources of a new run; how many clients are trained together follows from model and cohort.

    Attributes:
        device: a torch device name.
        threads: worker threads.
        precision: of matrix products.
        chunk: clients trained together; None lets it be chosen.
        may_calibrate: whether a stopwatch may choose the chunk, as is worth while where a run follows.
        elsewhere: whether blocks are trained by other processes: the chunk is then one for many of them, however many
            there are, and for any number of threads here.
    """

    device: str
    threads: int
    precision: Precision
    chunk: int | None
    may_calibrate: bool = True
    elsewhere: bool = False

    @property
    def calibrates(self) -> bool:
        """Whether a stopwatch chooses the chunk; on a GPU there is nothing to choose from."""
        return (
            self.may_calibrate and not self.elsewhere and self.chunk is None and torch.device(self.device).type == "cpu"
        )

    def plan(
        self,
        model: FlatModel,
        training: LocalTraining,
        population: Population,
        algorithm: Algorithm,
        clients: int,
        transform: GradientTransform | None = None,
    ) -> ExecutionPlan:
        """The plan for rounds of so many clients, without a stopwatch; ``transform`` need not draw its noise."""
        chunk = self.chunk or self._chunk(model, training, population, algorithm, clients, transform)
        return ExecutionPlan(self.device, self.threads, chunk, self.precision)

    def _chunk(
        self,
        model: FlatModel,
        training: LocalTraining,
        population: Population,
        algorithm: Algorithm,
        clients: int,
        transform: GradientTransform | None,
    ) -> int:
        kind = torch.device(self.device).type
        batch = min(training.batch_size, int(np.quantile(population.sizes, 0.9)))
        separate = separate_blocks(model, batch, clients, kind) if self.elsewhere else None
        if kind == "cpu":
            demand = ClientDemand.of(model, training, population, algorithm, private=transform is not None)
            return cpu_chunks(demand, clients, separate or self.threads)[0]
        block = BlockMemory(model, training, population, algorithm, transform)
        # All of its memory and not what is free just now: equal scenarios get equal plans.
        memory = torch.cuda.get_device_properties(self.device).total_memory
        chunk = cuda_chunk(block.peak, clients, memory, block.resident)
        return chunk if separate is None else min(chunk, max(1, -(-clients // separate)))


def choose_plan(compute: Compute, device: str, threads: int | None, *, elsewhere: bool = False) -> Resources:
    """Resources that a new run may use on this machine.

    Args:
        compute: what the scenario says.
        device: "auto", "cpu" or "cuda".
        threads: overrides the scenario's; without either, all cores.
        elsewhere: whether other processes train.

    Raises:
        InputError: the device is none of these, or the threads are no such number.
        InfeasibleError: there is no GPU where one is asked for, or needed for the precision.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"device: found {device!r}; allowed: auto | cpu | cuda (CUDA_VISIBLE_DEVICES says which GPU)")
    if threads is not None and not (type(threads) is int and 1 <= threads <= MOST_THREADS):
        raise InputError(f"threads: found {threads!r}; allowed: a whole number from 1 to {MOST_THREADS:,}, or None")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    _check_device(device, "asked for")
    if compute.precision == "tf32" and device == "cpu":
        raise InfeasibleError("compute.precision: found tf32, which needs a GPU; allowed on a CPU: fp32 | bf16")
    threads = threads or compute.threads or os.cpu_count() or 1
    return Resources(device, threads, compute.precision, compute.chunk, elsewhere=elsewhere)


def plan_to_look(compute: Compute) -> Resources:
    """Resources to look at a scenario and not to run it: the CPU, and no stopwatch.

    Raises:
        InfeasibleError: the precision needs a GPU.
    """
    return replace(choose_plan(compute, "cpu", None), may_calibrate=False)


def recorded_plan(trace: Path) -> ExecutionPlan:
    """The plan of a recorded run, to be followed bit for bit: nothing that it lacks is filled in.

    Raises:
        InfeasibleError: this machine, or this version, cannot follow it.
    """
    text = read_attributes(trace).get("plan")
    if not text:
        raise InfeasibleError(f"{trace}: does not say how the run was computed, so that it cannot be repeated")
    try:
        recorded = json.loads(text)
        if {name: type(value) for name, value in recorded.items()} != _RECORDED:
            raise ValueError("allowed: " + ", ".join(f"{name} ({kind.__name__})" for name, kind in _RECORDED.items()))
        if recorded["precision"] not in get_args(Precision) or recorded["device"] not in _DEVICES:
            raise ValueError(f"allowed: {' | '.join(_DEVICES)} with {' | '.join(get_args(Precision))}")
        plan = ExecutionPlan(**recorded)
    except (TypeError, ValueError) as error:
        raise InfeasibleError(f"{trace}: this version cannot follow the recorded plan {text}: {error}") from error
    _check_device(plan.device, "where the run was computed")
    return plan


_RECORDED = {"device": str, "threads": int, "chunk": int, "precision": str}
_DEVICES = ("cpu", "cuda")


def _check_device(device: str, why: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        raise InfeasibleError(f"device: cuda is {why}, but torch sees no GPU on this machine")


# What is kept of every registered client: samples, weight, place, processor, last use
_BYTES_A_CLIENT = 64
# What a gain takes while a slot is planned: the number itself, that of its path, its estimate, what is made of them
_BYTES_A_GAIN = 8 * 16
# What the plan of a client's batches takes for a sample of a batch: its place in the epoch, and its number
_BYTES_A_DRAW = 16


def check_clients(count: int) -> None:
    """Checks that the registered clients fit into the memory.

    Raises:
        InfeasibleError: they do not.
    """
    _check_memory(f"clients.count: found {count:,} clients, who take", count * _BYTES_A_CLIENT)


def check_gains(clients: int, receivers: int, groups: int, antennas: int) -> None:
    """Checks that the gains of a round's links fit into the memory.

    Raises:
        InfeasibleError: they do not.
    """
    gains = clients * receivers * groups * antennas
    found = (
        f"uplink.receiver.antennas: found {antennas} with {groups} groups of subcarriers, where the gains of a round"
    )
    _check_memory(f"{found} of {clients:,} clients take", gains * _BYTES_A_GAIN)


def check_batches(training: LocalTraining, sizes: NDArray[np.int64]) -> None:
    """Checks that the batches of each single client fit into the memory: they are drawn before its training begins.

    Args:
        training: the clients' local training.
        sizes: (K,) samples of all clients.

    Raises:
        InfeasibleError: they do not.
    """
    steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
    draws = int((steps * np.minimum(sizes, training.batch_size)).max(initial=0))
    name, number = ("steps", training.steps) if training.epochs is None else ("epochs", training.epochs)
    _check_memory(f"training.{name}: found {number:,}, with which the batches of a client take", draws * _BYTES_A_DRAW)


def _check_memory(found: str, needed: int) -> None:
    there = available_memory()
    if needed > there:
        raise InfeasibleError(
            f"{found} about {needed / 2**30:,.0f} GiB; allowed: what memory can take, {there / 2**30:,.0f} GiB"
        )
