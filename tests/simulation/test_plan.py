"""How a run is computed, and what a machine cannot do."""

from __future__ import annotations

import pytest
import torch

from wirelessfl.errors import InfeasibleError
from wirelessfl.scenario.bookkeeping import Compute
from wirelessfl.simulation.plan import choose_plan

NO_GPU = not torch.cuda.is_available()


def test_the_command_line_overrides_the_scenario() -> None:
    compute = Compute(threads=3, chunk=5, precision="bf16")
    assert choose_plan(compute, "cpu", None).threads == 3
    assert choose_plan(compute, "cpu", 2).threads == 2
    assert (choose_plan(compute, "cpu", 2).chunk, choose_plan(compute, "cpu", 2).precision) == (5, "bf16")


@pytest.mark.skipif(not NO_GPU, reason="there is a GPU")
def test_without_a_gpu_auto_is_the_cpu_and_insisting_is_refused() -> None:
    assert choose_plan(Compute(), "auto", None).device == "cpu"
    with pytest.raises(InfeasibleError, match="no GPU"):
        choose_plan(Compute(), "cuda", None)


def test_tf32_needs_a_gpu() -> None:
    with pytest.raises(InfeasibleError, match=r"compute\.precision.*fp32 \| bf16"):
        choose_plan(Compute(precision="tf32"), "cpu", None)
