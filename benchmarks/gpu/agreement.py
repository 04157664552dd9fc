"""The device's updates beside those of the CPU: equal within a tolerance without noise, in distribution with it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from benchmarks.gpu.setting import Device, Measure, Measured, Setting
from benchmarks.gpu.tasks import CNN_CIFAR10, W1, W2, W2_WAVELET, Task
from benchmarks.gpu.training import learner_of
from benchmarks.recorded import prepare
from benchmarks.workloads import dp_sgd
from wirelessfl.learning import ExecutionPlan, train_cohort
from wirelessfl.learning.cohort import Precision

TOLERANCE: dict[Precision, float] = {"fp32": 1e-4, "tf32": 2e-2, "bf16": 5e-2}
"""Of the relative error of all updates together: those of docs/how-to/gpu.md.

A GPU cuts the operands of TF32 products after ten bits. W1 on a CPU with operands cut so has an error of 1.53e-2
(``tests/benchmarks/test_gpu_tolerance.py``), an H200 has 1.5e-2.
"""

LEAST_P = 1e-4
"""Agreement in distribution fails below it: one time in ten thousand where the laws are the same."""

_APART = 64
"""Only every 64th coordinate is compared: wavelet noise is correlated, of these by less than a thousandth."""


def measure_equality(task: Task, setting: Setting) -> Measured:
    """The largest difference of a coordinate from an update in double precision on the CPU."""
    here = task.at(setting)
    exact = updates(here, "cpu", torch.float64)
    found = updates(here, setting.device, torch.float32).double()
    error = float((found - exact).norm() / exact.norm())
    bound = TOLERANCE[here.precision]
    told = f"relative error {error:.1e}, allowed {bound:.0e}"
    largest = float((found - exact).abs().max())
    if not error <= bound:  # also where it is NaN
        return Measured(max_abs_diff_cpu=largest, failure=told)
    return Measured(max_abs_diff_cpu=largest, detail=told)


def measure_distribution(task: Task, setting: Setting) -> Measured:
    """The noise that one local step adds on the device, and the same on the CPU."""
    here = task.at(setting)
    return compare_laws(noise_of_a_step(here, setting.device), noise_of_a_step(here, "cpu"))


def compare_laws(found: NDArray[np.float64], expected: NDArray[np.float64]) -> Measured:
    """The two-sample test of Kolmogorov and Smirnov on independent samples."""
    if not np.isfinite(found).all():
        return Measured(failure="the noise is not finite")
    p = float(stats.ks_2samp(found, expected, method="asymp").pvalue)
    told = f"{len(found):,} coordinates, p at least {LEAST_P:g}"
    return Measured(ks_p=p, detail=told) if p >= LEAST_P else Measured(ks_p=p, failure=told)


def noise_of_a_step(task: Task, device: Device) -> NDArray[np.float64]:
    """Every 64th coordinate of the noised updates less the same without noise, after one step on one batch."""
    silent = replace(task, privacy={**task.privacy, "noise_multiplier": 0.0})
    noised, clipped = (updates(each, device, torch.float32, steps=1) for each in (task, silent))
    thinned: NDArray[np.float64] = (noised - clipped).double()[:, ::_APART].flatten().numpy()
    return thinned


def updates(task: Task, device: Device, dtype: torch.dtype, steps: int | None = None) -> Tensor:
    """(K, d) updates of round 1 on the host, after all local steps, or after so many and then not clipped as a whole.

    In double precision there is no lower precision of products: that is what others are compared with.
    """
    exact = dtype == torch.float64
    if exact:
        task = replace(task, precision="fp32")
    simulation = prepare(task.scenario(), 1 if device == "cuda" else None, device)
    learner = learner_of(simulation)
    start = torch.from_numpy(simulation.state.parameters).to(dtype)
    training = learner.training if steps is None else replace(learner.training, epochs=None, steps=steps, clip=None)
    transform = None if learner.private is None else learner.private.gradients
    plan: ExecutionPlan = learner.plan
    blocks = train_cohort(
        learner.model,
        start,
        learner.population,
        np.arange(task.clients),
        training,
        learner.streams,
        1,
        plan,
        transform,
    )
    result = torch.zeros(task.clients, len(start), dtype=dtype)
    for block in blocks:
        result[torch.from_numpy(block.positions)] = block.updates.cpu()
    return result


def _at(precision: Precision, **changes: Any) -> Task:
    return replace(W1, name=f"W1, {precision}", precision=precision, **changes)


_CLIPPED = replace(W2, name="W2, clipped without noise", privacy=dp_sgd(noise_multiplier=0.0))
_FEW_IMAGES = replace(CNN_CIFAR10, name="cnn_cifar10, 8 × 40", clients=8, samples=40)

WORKLOADS: dict[str, Measure] = {
    **{
        task.name: partial(measure_equality, task)
        for task in (_at("fp32"), _at("tf32"), _at("bf16"), _CLIPPED, _FEW_IMAGES)
    },
    "W2, noise": partial(measure_distribution, W2),
    "W2, wavelet noise": partial(measure_distribution, W2_WAVELET),
}
