"""Several threads at once, from the very first block of a model on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from tests.learning.plain_loop import RandomPopulation
from wirelessfl.learning import SGD, ExecutionPlan, FlatModel, LocalTraining, mlp, train_cohort
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
