"""Where a workload runs and how large it is, and what comes out of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

Device = Literal["cuda", "cpu"]


@dataclass(frozen=True)
class Setting:
    """The real thing on a GPU, or its rehearsal.

    Attributes:
        device: "cuda"; "cpu" in a rehearsal.
        tiny: Whether sizes are so small that a CPU takes seconds, to see that everything works.
    """

    device: Device
    tiny: bool = False

    def synchronise(self) -> None:
        """Wait until the device has done what it was asked for."""
        if self.device == "cuda":
            torch.cuda.synchronize()


@dataclass(frozen=True)
class Measured:
    """The numbers of one workload; see ``Row`` for their meaning, NaN where one does not apply.

    Attributes:
        detail: What the numbers do not tell.
        failure: Why they do not stand; empty where they do.
    """

    seconds: float = math.nan
    rounds_per_s: float = math.nan
    kernel_share: float = math.nan
    launch_share: float = math.nan
    copy_share: float = math.nan
    max_abs_diff_cpu: float = math.nan
    ks_p: float = math.nan
    detail: str = ""
    failure: str = ""


Measure = Callable[[Setting], Measured]
