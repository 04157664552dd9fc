"""Training from the model of an edge, which is a row of a matrix."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN
from tests.simulation.test_multi_cell import hierarchical
from wirelessfl.assembly import build_simulation

ODD = {"data__dataset": {"name": "synthetic"}, "data__limit": 60, "model": {"name": "logistic"}}
"""A model of 610 parameters: every second row of a matrix of models begins between two multiples of 16 bytes.

With so few samples a client's sums are short enough for BLAS to take another way there; with 280 it does not.
"""


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_training_has_the_same_bits_wherever_its_first_model_lies(offset: int) -> None:
    simulation = build_simulation(hierarchical(2, **ODD), PLAN)
    learner, state, clients = simulation.deployment.learner, simulation.state, np.arange(6)
    model = state.parameters
    assert len(model) == 610
    room = np.zeros(len(model) + 16, dtype=np.float32)
    first = (-room.ctypes.data // 4) % 16 + offset
    shifted = room[first : first + len(model)]
    shifted[:] = model
    assert shifted.ctypes.data % 64 == 4 * offset
    there, here = (list(learner.train(start, state, clients, 1)) for start in (shifted, model))
    for one, other in zip(there, here, strict=True):
        assert one.updates.numpy().tobytes() == other.updates.numpy().tobytes()
