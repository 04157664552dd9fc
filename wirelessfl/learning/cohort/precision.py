"""Numerical precision of the products, as a plan asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from wirelessfl.learning.cohort.training import ExecutionPlan


@contextmanager
def precision_scope(plan: ExecutionPlan) -> Iterator[None]:
    """Within the scope, matrix products and convolutions run in ``plan.precision``; outside nothing changes.

    On CUDA ``fp32`` also switches off TF32 convolutions, which torch allows by default.
    """
    device = torch.device(plan.device).type
    before = torch.get_float32_matmul_precision()
    with ExitStack() as scope:
        if device == "cuda":
            scope.enter_context(
                torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=plan.precision == "tf32")
            )
        if plan.precision == "bf16":
            scope.enter_context(torch.autocast(device, dtype=torch.bfloat16))
        torch.set_float32_matmul_precision("high" if plan.precision == "tf32" else "highest")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)
