"""How a run is computed, and what a machine cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tests.simulation.scenarios import PLAN, small
from wirelessfl.assembly import build_simulation
from wirelessfl.assembly.plan import Resources, choose_plan, plan_to_look
from wirelessfl.errors import InfeasibleError, InputError
from wirelessfl.learning import CohortBlock, ExecutionPlan
from wirelessfl.learning.cohort import BlockMemory
from wirelessfl.scenario.clients import Clients
from wirelessfl.scenario.sections import Compute
from wirelessfl.scenario.selection import SelectPoisson, SelectUniform
from wirelessfl.simulation.learner import Learner

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


def test_to_look_at_a_scenario_nothing_is_calibrated() -> None:
    assert choose_plan(Compute(), "cpu", None).calibrates
    assert not plan_to_look(Compute()).calibrates
    assert not choose_plan(Compute(chunk=5), "cpu", None).calibrates


def test_on_a_gpu_the_chunk_follows_from_its_memory_and_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = build_simulation(small(), PLAN).deployment.learner
    assert isinstance(learner, Learner)
    block = BlockMemory(learner.model, learner.training, learner.population, learner.algorithm)
    three = 2 * 2**30 + block.resident + -(-10 * block.peak(3) // 9)
    resources = Resources("cuda", 1, "fp32", None)
    assert not resources.calibrates
    for memory, chunk in ((80 * 2**30, 6), (three, 3), (2**30, 1)):
        gpu = SimpleNamespace(total_memory=memory)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device, gpu=gpu: gpu)
        plan = resources.plan(learner.model, learner.training, learner.population, learner.algorithm, 6)
        assert plan == ExecutionPlan("cuda", 1, chunk, "fp32")
        for_several = replace(resources, elsewhere=True)  # GPUs: four blocks at least
        plan = for_several.plan(learner.model, learner.training, learner.population, learner.algorithm, 6)
        assert plan == ExecutionPlan("cuda", 1, min(chunk, 2), "fp32")


def test_a_round_trains_on_average_as_many_clients_as_its_selection_says() -> None:
    assert Clients(count=50).expected == Clients(count=50).most == 50
    uniform = Clients(count=50, selection=SelectUniform(count=7))
    assert uniform.expected == uniform.most == 7
    for rate, expected in ((0.3, 15), (0.001, 1)):
        poisson = Clients(count=50, selection=SelectPoisson(rate=rate))
        assert (poisson.expected, poisson.most) == (expected, 50)


@pytest.mark.parametrize(("chunk", "advice"), [(5, r"set compute\.chunk to 2 or less"), (1, "one client alone")])
def test_a_block_that_a_gpu_does_not_hold_is_refused_with_advice(
    chunk: int, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_memory(*arguments: object, **options: object) -> Iterator[CohortBlock]:
        raise torch.OutOfMemoryError("CUDA out of memory")
        yield

    monkeypatch.setattr("wirelessfl.simulation.local_training.train_cohort", out_of_memory)
    learner = build_simulation(small(), replace(PLAN, chunk=chunk)).deployment.learner
    assert isinstance(learner, Learner)
    state = learner.initial_state(0)
    blocks = learner.train(state.parameters, state, np.arange(6), 1)
    with pytest.raises(InfeasibleError, match=f"does not hold {chunk} clients at a time; {advice}"):
        next(blocks)


@pytest.mark.parametrize("device", ["gpu", "cuda:1", "mps", 3])
def test_other_devices_are_refused_in_words(device: Any) -> None:
    with pytest.raises(InputError, match=r"allowed: auto \| cpu \| cuda"):
        choose_plan(Compute(), device, None)
