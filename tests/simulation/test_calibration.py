"""When a stopwatch chooses the chunk, when it does not, and that it changes nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.simulation.scenarios import run, small
from wirelessfl.api import make_plan, plot_topology, simulate
from wirelessfl.assembly import build_simulation, calibration, choose_plan, plan_to_look
from wirelessfl.errors import RunInterrupted
from wirelessfl.learning import CohortBlock, ExecutionPlan, LocalTraining, train_cohort
from wirelessfl.learning.cohort import planning
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.learner import Learner

CANDIDATES = (6, 3, 2)
"""Of six clients with some 2 MB each, by one thread."""


PRIVATE = {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0}


def worth_it(**overrides: Any) -> Scenario:
    """A scenario long and large enough for a calibration."""
    return small(**{"model__hidden": [2000], "rounds": 1000, "evaluate__every": 1000, **overrides})


def built(scenario: Scenario) -> Simulation:
    """The simulation of a new run on one thread."""
    return build_simulation(scenario, choose_plan(scenario.compute, "cpu", 1))


def learner_of(simulation: Simulation) -> Learner:
    """Its learner."""
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner)
    return learner


class Stopwatch:
    """Shows 3 s for a round in blocks of three, 6 s for others, and counts."""

    def __init__(self) -> None:
        """Nothing measured yet."""
        self.calls = 0

    def __call__(self, learner: Learner, state: object, by_size: object, chunk: int, steps: int) -> float:
        """One measurement."""
        self.calls += 1
        return {6: 6e-3, 3: 1.5e-3, 2: 2e-3}[chunk]


@pytest.fixture
def stopwatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stopwatch:
    """In place of the real one, with a cache of its own."""
    watch = Stopwatch()
    monkeypatch.setattr(calibration, "seconds_of_blocks", watch)
    monkeypatch.setenv("WIRELESSFL_CACHE", str(tmp_path / "cache"))
    return watch


def test_the_fastest_chunk_is_found_once_and_then_known(stopwatch: Stopwatch) -> None:
    assert learner_of(built(worth_it())).plan == ExecutionPlan("cpu", 1, 3, "fp32")
    assert stopwatch.calls > 0
    stopwatch.calls = 0
    assert learner_of(built(worth_it())).plan.chunk == 3
    assert stopwatch.calls == 0


def test_clients_with_weights_in_common_may_be_trained_together(
    stopwatch: Stopwatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a block else holds one client, in the plan without a stopwatch and with it."""
    monkeypatch.setattr(planning, "_ALL_BLOCKS", 1)
    monkeypatch.setattr(planning, "_CEILING", 1)
    short = small()
    assert (learner_of(built(worth_it())).plan.chunk, learner_of(built(short)).plan.chunk) == (1, 1)
    assert stopwatch.calls == 0
    of = planning.ClientDemand.of

    def of_three(*args: Any, private: bool) -> planning.ClientDemand:
        return replace(of(*args, private=private), together=3)

    monkeypatch.setattr(planning.ClientDemand, "of", of_three)
    assert learner_of(built(short)).plan.chunk == 3
    assert stopwatch.calls == 0
    assert learner_of(built(worth_it())).plan.chunk == 3
    assert stopwatch.calls > 0


@pytest.mark.parametrize(
    "same",
    [{"seed": 12}, {"training__optimizer": {"name": "sgd", "lr": 0.3}}, {"name": "other"}, {"rounds": 2000}],
)
def test_what_does_not_matter_is_not_measured_again(stopwatch: Stopwatch, same: dict[str, Any]) -> None:
    built(worth_it())
    stopwatch.calls = 0
    assert learner_of(built(worth_it(**same))).plan.chunk == 3
    assert stopwatch.calls == 0


@pytest.mark.parametrize(
    "other",
    [
        {"model__hidden": [2001]},
        {"model__activation": {"name": "tanh"}},
        {"training__batch_size": 7},
        {"training__optimizer": {"name": "sgd", "momentum": 0.0}},
        {"training__optimizer": {"name": "adagrad"}},
        {"training__epochs": 9},
        {"training__algorithm": {"name": "fedprox", "mu": 0.1}},
        {"training__privacy": {**PRIVATE, "sampling": "shuffle"}},
        {"compute__precision": "bf16"},
    ],
)
def test_what_matters_is_measured_anew(stopwatch: Stopwatch, other: dict[str, Any]) -> None:
    built(worth_it())
    stopwatch.calls = 0
    built(worth_it(**other))
    assert stopwatch.calls > 0


def test_another_processor_or_torch_measures_anew(stopwatch: Stopwatch, monkeypatch: pytest.MonkeyPatch) -> None:
    built(worth_it())
    calibration = "wirelessfl.assembly.calibration"
    for name, value in ((f"{calibration}.processor_name", lambda: "Z80"), ("torch.__version__", "9.9")):
        stopwatch.calls = 0
        monkeypatch.setattr(name, value)
        built(worth_it())
        assert stopwatch.calls > 0


@pytest.mark.parametrize(
    "scenario",
    [worth_it(compute__chunk=4), worth_it(model__hidden=[8]), worth_it(rounds=2, evaluate__every=2)],
    ids=["given", "small", "short"],
)
def test_nothing_is_measured_where_nothing_is_to_be_gained(stopwatch: Stopwatch, scenario: Scenario) -> None:
    assert learner_of(built(scenario)).plan.chunk == (scenario.compute.chunk or 6)
    assert stopwatch.calls == 0


def test_nothing_is_measured_to_look_at_a_scenario(stopwatch: Stopwatch, tmp_path: Path) -> None:
    scenario = worth_it(rounds=40, training__epochs=40, evaluate__every=40, compute__threads=1)
    assert learner_of(build_simulation(scenario, plan_to_look(scenario.compute))).plan.chunk == 6
    make_plan(scenario)
    plot_topology(scenario, tmp_path / "topology.png")
    assert stopwatch.calls == 0
    built(scenario)
    assert stopwatch.calls > 0


def test_a_resumed_run_keeps_its_plan(stopwatch: Stopwatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_LEAST_WORK", 0)
    scenario = worth_it(rounds=3, evaluate__every=3)

    def stop(this: object) -> None:
        raise RunInterrupted("enough")

    with pytest.raises(RunInterrupted):
        simulate(scenario, tmp_path / "run", device="cpu", threads=1, pictures=False, on_round=stop)
    stopwatch.calls = 0
    monkeypatch.setenv("WIRELESSFL_CACHE", str(tmp_path / "empty"))
    result = simulate(scenario, tmp_path / "run", resume=True, pictures=False)
    assert stopwatch.calls == 0
    assert '"chunk": 3' in result.dataset.attrs["plan"]
    result.dataset.close()


def test_without_a_place_to_keep_it_nothing_is_measured_so_that_plans_stay_equal(
    stopwatch: Stopwatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("WIRELESSFL_CACHE", str(tmp_path / "file"))
    assert learner_of(built(worth_it())).plan.chunk == 6
    assert stopwatch.calls == 0


def test_a_damaged_entry_is_measured_anew(stopwatch: Stopwatch, tmp_path: Path) -> None:
    built(worth_it())
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_text('{"chunk": 5}')  # none of the candidates
    stopwatch.calls = 0
    assert learner_of(built(worth_it())).plan.chunk == 3
    assert stopwatch.calls > 0


@pytest.mark.parametrize(
    "training",
    [
        {},
        {"training__privacy": PRIVATE},
        {"training__privacy": {**PRIVATE, "clipping": {"name": "quantile"}}},
        {
            "data__limit": 200,
            "training__privacy": {
                **PRIVATE,
                "clipping": {"name": "median", "proxy_samples": 50, "calibration_rounds": 1},
            },
        },
    ],
    ids=["plain", "private", "with memory", "with public data"],
)
def test_a_calibrated_run_is_bit_for_bit_the_run_with_that_chunk(
    training: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "_LEAST_WORK", 0)
    monkeypatch.setenv("WIRELESSFL_CACHE", str(tmp_path))
    scenario = worth_it(rounds=2, evaluate__every=2, **training)
    generator = torch.get_rng_state()
    simulation = built(scenario)
    assert torch.equal(torch.get_rng_state(), generator)
    assert len(list(tmp_path.iterdir())) == 1  # the real stopwatch was at work
    plan = learner_of(simulation).plan
    assert plan.chunk in CANDIDATES
    simulation.run(lambda *_: None)
    expected = run(scenario, plan)[0]
    np.testing.assert_array_equal(simulation.state.parameters, expected.state.parameters)
    assert simulation.state.proxy_clip == pytest.approx(expected.state.proxy_clip, rel=0, nan_ok=True)
    for name, rows in expected.state.clipping.items():
        np.testing.assert_array_equal(simulation.state.clipping[name], rows)


def test_the_stopwatch_trains_clients_of_middle_size_for_so_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = small(data={"dataset": {"name": "synthetic"}, "partition": {"scheme": "natural"}}, clients__count=60)
    learner = learner_of(build_simulation(scenario, ExecutionPlan("cpu", 2, 10)))
    asked: list[tuple[NDArray[np.int64], LocalTraining, ExecutionPlan]] = []

    def note(*arguments: Any, **options: Any) -> Iterator[CohortBlock]:
        asked.append((arguments[3], arguments[4], arguments[7]))
        return train_cohort(*arguments, **options)

    monkeypatch.setattr("wirelessfl.simulation.local_training.train_cohort", note)
    sizes = learner.population.sizes
    by_size = np.argsort(sizes, kind="stable")
    assert calibration.seconds_of_blocks(learner, learner.initial_state(0), by_size, 5, 3) > 0
    ((clients, training, plan),) = asked
    np.testing.assert_array_equal(clients, np.sort(by_size[25:35]))
    assert (training.steps, training.epochs, plan.chunk, plan.threads) == (3, None, 5, 2)
