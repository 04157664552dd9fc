"""Numerical precision of the products, as a plan asks for it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from wirelessfl.learning.cohort.training import ExecutionPlan


@contextmanager
def precision_scope(plan: ExecutionPlan) -> Iterator[None]:
    """Within the scope, this thread's matrix products and convolutions run in ``plan.precision``.

    On CUDA, TF32 is on for ``tf32`` only; torch allows it in convolutions by default.
    """
    device = torch.device(plan.device).type
    with ExitStack() as scope:
        if plan.precision == "bf16":
            scope.enter_context(torch.autocast(device, dtype=torch.bfloat16))
        if device == "cuda":
            scope.enter_context(_cuda_tf32(plan.precision == "tf32"))
        yield


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """A scope in which products are rounded to neither bfloat16 nor TF32: a clip that is off by 1 % protects less.

    The gradients that are measured are then those that are summed, and their norms are exact to single precision.
    """
    with ExitStack() as scope:
        if torch.amp.is_autocast_available(device.type):
            scope.enter_context(torch.autocast(device.type, enabled=False))
        if device.type == "cuda":
            scope.enter_context(_cuda_tf32(False))
        yield


@contextmanager
def _cuda_tf32(allowed: bool) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    try:
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=allowed):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
