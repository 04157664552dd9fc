"""The tolerance of TF32, from its arithmetic on a CPU: operands of products cut after ten bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.gpu.agreement import TOLERANCE, updates
from benchmarks.gpu.tasks import W1
from wirelessfl.learning.cohort.block import Batch
from wirelessfl.learning.cohort.run import LocalRun, Trained

_ADDENDS = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1, "aten::baddbmm_": 1, "aten::addmm_": 1}
_BITS_CUT = 13  # of the 23 of single precision


class TF32Products(TorchDispatchMode):
    """Products in single precision whose operands are cut to TF32."""

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        addends = _ADDENDS.get(func._schema.name)
        if addends is not None:
            args = (*args[:addends], *map(cut, args[addends:]))
        return func(*args, **(kwargs or {}))


def cut(operand: Tensor) -> Tensor:
    """Single precision with ten bits after the leading one."""
    return (operand.contiguous().view(torch.int32) >> _BITS_CUT << _BITS_CUT).view(torch.float32)


def test_cut_keeps_ten_bits() -> None:
    exact = 1 + torch.arange(1024) / 1024
    torch.testing.assert_close(cut(exact), exact, rtol=0, atol=0)
    torch.testing.assert_close(cut(-exact - 1 / 1025), -exact, rtol=0, atol=0)


def test_the_tolerance_is_that_of_products_of_operands_cut_after_ten_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = updates(W1, "cpu", torch.float64)
    train = LocalRun.train

    def roughly(run: LocalRun, add_gradient: Callable[[Batch, float], Tensor]) -> Trained:
        with TF32Products():
            return train(run, add_gradient)

    monkeypatch.setattr(LocalRun, "train", roughly)
    error = float((updates(W1, "cpu", torch.float32).double() - exact).norm() / exact.norm())
    assert TOLERANCE["tf32"] / 2 < error < TOLERANCE["tf32"]
