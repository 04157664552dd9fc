"""What the device does at its best: square matrix products in each precision, and copying a vector."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.gpu.setting import Measure, Measured, Setting
from benchmarks.machine import best_seconds
from wirelessfl.learning.cohort import Precision

GEMM: dict[Precision, str] = {"fp32": "GEMM, fp32", "tf32": "GEMM, TF32", "bf16": "GEMM, bf16"}
COPY = "copy"


def _side(setting: Setting) -> int:
    return 64 if setting.tiny else 8192


def _floats(setting: Setting) -> int:
    return 10_000 if setting.tiny else 2**29


def _lasting_s(setting: Setting) -> float:
    return 0.01 if setting.tiny else 2.0


def gemm_operations(setting: Setting) -> float:
    """Floating-point operations of the product that is timed, a multiply-add as two."""
    return 2.0 * _side(setting) ** 3


def copy_bytes(setting: Setting) -> float:
    """Bytes that are read plus bytes that are written by the copy that is timed."""
    return 8.0 * _floats(setting)


def measure_gemm(precision: Precision, setting: Setting) -> Measured:
    """Seconds of the fastest product; TF32 is fp32 on a CPU, which has none."""
    side, dtype = _side(setting), torch.bfloat16 if precision == "bf16" else torch.float32
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        left, right, out = (torch.randn(side, side, device=setting.device, dtype=dtype) for _ in range(3))

        def multiply() -> None:
            torch.mm(left, right, out=out)
            setting.synchronise()

        seconds = best_seconds(multiply, _lasting_s(setting))
    finally:
        torch.set_float32_matmul_precision(before)
    return Measured(seconds, detail=f"{1e-12 * gemm_operations(setting) / seconds:.3g} TFLOP/s")


def measure_copy(setting: Setting) -> Measured:
    """Seconds of the fastest copy within the device's memory."""
    source = torch.ones(_floats(setting), device=setting.device)
    target = torch.empty_like(source)

    def copy() -> None:
        target.copy_(source)
        setting.synchronise()

    seconds = best_seconds(copy, _lasting_s(setting))
    return Measured(seconds, detail=f"{1e-12 * copy_bytes(setting) / seconds:.3g} TB/s, read and written")


WORKLOADS: dict[str, Measure] = {
    **{name: partial(measure_gemm, precision) for precision, name in GEMM.items()},
    COPY: measure_copy,
}
