"""Several threads at once, from the very first block of a model on."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Generator, Iterator
from functools import partial

import numpy as np
import pytest

from tests.learning.plain_loop import RandomPopulation
from wirelessfl.learning import SGD, ExecutionPlan, FlatModel, LocalTraining, mlp, train_cohort
from wirelessfl.learning.cohort.execution import map_in_order
from wirelessfl.streams import Streams


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads change places as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_the_first_blocks_of_a_model_may_be_trained_by_several_threads() -> None:
    population = RandomPopulation(np.full(8, 6))
    training = LocalTraining(SGD(), 0.1, 3, epochs=1)
    for _ in range(20):
        model = FlatModel(partial(mlp, (12,), 3, (8,)), (12,), 3)
        blocks = train_cohort(
            model,
            model.initial(0),
            population,
            np.arange(8),
            training,
            Streams(1),
            1,
            ExecutionPlan(threads=4, chunk=1),
        )
        assert sum(len(block.positions) for block in blocks) == 8


def test_results_come_in_order_from_the_same_workers_every_time() -> None:
    def who(item: int) -> tuple[int, int]:
        return item, threading.get_ident()

    first, second = (list(map_in_order(who, range(40), 2)) for _ in range(2))
    assert [item for item, _ in first] == list(range(40)) == [item for item, _ in second]
    workers = {worker for _, worker in first + second}
    assert len(workers) <= 2 and threading.get_ident() not in workers


def test_a_closed_map_leaves_nothing_running() -> None:
    begun, ended = [], []
    gate = threading.Event()

    def work(item: int) -> int:
        begun.append(item)
        gate.wait(0.05 if item else 0.0)
        ended.append(item)
        return item

    results = map_in_order(work, range(100), 2)
    assert next(results) == 0
    results.close()
    assert sorted(begun) == sorted(ended) and len(ended) <= 4
    assert list(map_in_order(work, range(3), 2)) == [0, 1, 2]


def test_an_error_reaches_the_caller_and_the_workers_live_on() -> None:
    results = map_in_order(lambda item: 1 // item, [1, 0, 1], 2)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(map_in_order(str, [1], 2)) == ["1"]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_makes_workers_of_its_own() -> None:
    assert list(map_in_order(str, [1, 2], 2)) == ["1", "2"]
    child = multiprocessing.get_context("fork").Process(target=_map_once, daemon=True)
    child.start()
    child.join(30)
    assert child.exitcode == 0


def _map_once() -> None:
    assert list(map_in_order(str, [1, 2], 2)) == ["1", "2"]


def test_a_worker_that_gives_up_its_own_results_does_not_wait_for_itself() -> None:
    given, ended = threading.Event(), threading.Event()
    left: list[Generator[int, None, None]] = []

    def work(item: int) -> int:
        if item:  # as the collection of garbage does with the generator of a run that has failed
            given.wait(10)
            left.pop().close()
            ended.set()
        return item

    results = map_in_order(work, [0, 1], 1)
    assert next(results) == 0
    left.append(results)
    given.set()
    assert ended.wait(10)
