"""Parts of sums in place of updates: who asks for them, how large they are, and no bit of a run depends on them."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import wirelessfl as wfl
from tests.cluster.test_training import require_same
from tests.simulation.scenarios import small
from wirelessfl.assembly import build_simulation
from wirelessfl.cluster.worker import RoundOnWorkers, RunOnWorkers, sum_part, train_part
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import BlockSum, CohortBlock, ExecutionPlan
from wirelessfl.learning.cohort import BlockMap, Cohort, SummedBlock
from wirelessfl.radio import LateArrival, Superposition
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import Simulation, local_training
from wirelessfl.simulation.rehearsal import without_training

PLAN = ExecutionPlan("cpu", 1, 4)
SUM, ROWS = "sum", "rows"


def sent(value: Any) -> Any:
    """What arrives of a value."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - written a moment ago


class Pickled:
    """Blocks trained by the workers' own functions, everything pickled on the way; counts what came back."""

    def __init__(self, scenario: Scenario, learner: Any) -> None:
        self.run = RunOnWorkers.of(scenario, learner.population)
        self.kinds, self.largest = set[str](), 0

    def __call__(self, cohort: Cohort, blocks: Sequence[NDArray[np.int64]]) -> Iterator[CohortBlock]:
        for found, positions in zip(self._done(train_part, cohort, blocks, None), blocks, strict=True):
            self.kinds.add(ROWS)
            yield found.block(positions, cohort.start.device)

    def summing(self, total: BlockSum) -> BlockMap[SummedBlock]:
        def summed(cohort: Cohort, blocks: Sequence[NDArray[np.int64]]) -> Iterator[SummedBlock]:
            self.kinds.add(SUM)
            yield from self._done(sum_part, cohort, blocks, total)

        return summed

    def _done(
        self, task: Callable[..., Any], cohort: Cohort, blocks: Sequence[NDArray[np.int64]], total: BlockSum | None
    ) -> Iterator[Any]:
        shared = RoundOnWorkers.of(self.run, cohort, total)
        for positions in blocks:
            found = sent(task(sent(shared), sent(cohort.part(positions))))
            self.largest = max(self.largest, len(pickle.dumps(found)))
            yield found


def compared(scenario: Scenario) -> Pickled:
    """What came back in a run whose checkpoint has the bits of the run without other processes."""
    made: list[Pickled] = []

    def elsewhere(given: Scenario, learner: Any) -> Pickled:
        made.append(Pickled(given, learner))
        return made[0]

    require_same_run(build_simulation(scenario, PLAN, elsewhere=elsewhere), build_simulation(scenario, PLAN))
    return made[0]


def require_same_run(ours: Simulation, theirs: Simulation) -> None:
    rounds, others = list[Any](), list[Any]()
    ours.run(lambda this, _: rounds.append(this.round))
    theirs.run(lambda this, _: others.append(this.round))
    require_same(ours.state.as_mapping(), theirs.state.as_mapping())
    for one, other in zip(rounds, others, strict=True):
        for name in ("training", "transmissions"):
            records = [getattr(this, name) for this in (one, other)]
            for ours_, theirs_ in zip(*records, strict=True):
                require_same(vars(ours_), vars(theirs_))


DP = {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 1.0, "sampling": "poisson"}
CENTRAL = {"mechanism": "central", "clip": 1.0, "noise_multiplier": 1.0}
IDEAL = {"uplink": {"kind": "ideal"}}
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("quickstart", IDEAL, SUM),
    ("quickstart", {}, SUM),
    ("quickstart", {"training.privacy": DP}, SUM),
    ("quickstart", {"training.privacy.mechanism": "none", "uplink.iq_packing": True}, SUM),
    ("quickstart", {"uplink.power_control": {"policy": "privacy_for_free"}}, SUM),
    ("gbma", {"uplink.power_control": {"policy": "weakest_inversion"}}, SUM),
    ("dp-fedavg-wavelet", {}, SUM),
    ("moo-private", {}, SUM),
    ("ris-fl", {}, SUM),
    ("eavesdropper", {}, SUM),
    ("partial-work", {"training.algorithm.name": "fedavg"}, SUM),
    ("quickstart", {**IDEAL, "evaluate.client_drift": True}, ROWS),
    ("quickstart", {**IDEAL, "training.robust": {"rule": "median"}}, ROWS),
    ("quickstart", {**IDEAL, "training.algorithm.name": "scaffold"}, ROWS),
    ("slot-groups-median", {}, ROWS),
    ("byzantine-median", {}, ROWS),
    ("a-dsgd", {}, ROWS),
    ("d-dsgd", {}, ROWS),
    ("imported-street", {}, ROWS),
    ("urban-macro-deadline", {"data.limit": 2000}, ROWS),
]
QUICK = ("quickstart", "dp-fedavg-wavelet", "ris-fl", "slot-groups-median", "a-dsgd")


EACH_CASE = pytest.mark.parametrize(
    ("name", "changes", "kind"),
    [pytest.param(*case, marks=() if case[0] in QUICK and not case[1] else pytest.mark.slow) for case in CASES],
)


@pytest.mark.filterwarnings("ignore::wirelessfl.errors.ModelWarning")
@EACH_CASE
def test_sums_come_back_where_single_updates_are_not_needed(name: str, changes: dict[str, Any], kind: str) -> None:
    scenario = wfl.load_scenario(name, overrides={"rounds": 2, "data.limit": 300, **changes})
    assert compared(scenario).kinds == {kind}


@pytest.mark.filterwarnings("ignore::wirelessfl.errors.ModelWarning")
@EACH_CASE
def test_threads_sum_their_blocks_to_the_same_bits(
    name: str, changes: dict[str, Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = wfl.load_scenario(name, overrides={"rounds": 2, "data.limit": 300, **changes})
    monkeypatch.setattr(local_training, "_SUMMED", PLAN.chunk)
    summed, of = list[int](), SummedBlock.of

    def noted(total: BlockSum, lasting: Any, block: CohortBlock) -> SummedBlock:
        summed.append(threading.get_ident())
        return of(total, lasting, block)

    monkeypatch.setattr(SummedBlock, "of", noted)
    require_same_run(build_simulation(scenario, replace(PLAN, threads=2)), build_simulation(scenario, PLAN))
    assert bool(summed) == (kind == SUM)
    assert threading.get_ident() not in summed


def test_blocks_of_few_clients_are_summed_as_they_come() -> None:
    learner = build_simulation(wfl.load_scenario("quickstart", overrides={"data.limit": 300}), PLAN).deployment.learner
    for threads, chunk, expected in ((2, 8, True), (2, 7, False), (1, 8, False)):
        assert replace(learner, plan=ExecutionPlan("cpu", threads, chunk)).sums_blocks == expected


def test_a_rehearsal_trains_nobody_whatever_the_threads_and_blocks() -> None:
    scenario = small(uplink={"kind": "ideal"}, training__privacy={"mechanism": "none"}, clients__count=12)
    simulation = build_simulation(scenario, ExecutionPlan("cpu", 2, 12))
    before = simulation.state.parameters.copy()
    assert simulation.deployment.learner.sums_blocks
    without_training(simulation)
    simulation.run(lambda *_: None)
    np.testing.assert_array_equal(simulation.state.parameters, before)


def test_a_part_is_one_vector_whatever_the_clients() -> None:
    scenario = wfl.load_scenario("quickstart", overrides={"rounds": 1, "data.limit": 300, "clients.count": 12})
    vector = 4 * build_simulation(scenario, PLAN).deployment.learner.dimension
    assert vector < compared(scenario).largest < 1.5 * vector


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_parts_of_a_superposition_add_up_to_its_bits(kind: str, packed: bool, late: bool) -> None:
    numbers = np.random.default_rng(5)
    updates = numbers.standard_normal((9, 37)).astype(np.float32)
    gains = numbers.standard_normal(9) + 1j * numbers.standard_normal(9)
    offset = LateArrival(numbers.random(9), None) if late else None
    whole, merged = Superposition(37, packed), Superposition(37, packed)
    for mine in (slice(0, 4), slice(4, 5), slice(5, 9)):
        rows: Any = updates[mine] if kind == "numpy" else torch.from_numpy(updates[mine])
        alone, given = Superposition(37, packed), (rows, gains[mine], None if offset is None else offset[mine])
        alone.add(*given)
        whole.add(*given)
        merged.merge(alone.parts())
    np.testing.assert_array_equal(np.asarray(merged.received()), np.asarray(whole.received()))
    nobody = Superposition(37, packed)
    nobody.merge(Superposition(37, packed).parts())
    np.testing.assert_array_equal(nobody.received(), np.zeros(37))


def test_a_sum_that_cannot_be_pickled_is_refused() -> None:
    class Held:
        held = staticmethod(lambda: None)

        def part(self, block: CohortBlock) -> Any: ...

    scenario = wfl.load_scenario("quickstart", overrides={"rounds": 1, "data.limit": 300})
    made: list[Any] = []

    def elsewhere(given: Scenario, learner: Any) -> Any:
        run = RunOnWorkers.of(given, learner.population)

        def refused(cohort: Cohort, blocks: Sequence[NDArray[np.int64]]) -> Iterator[SummedBlock]:
            RoundOnWorkers.of(run, cohort, Held())
            raise AssertionError("it was taken")

        made.append(type("One", (), {"summing": lambda self, total: refused})())
        return made[0]

    with pytest.raises(ScenarioError, match="uplink: how clients send cannot be told to workers"):
        build_simulation(scenario, PLAN, elsewhere=elsewhere).run(lambda *_: None)
