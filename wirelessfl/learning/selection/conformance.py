"""Check for an availability model of your own: what the simulator relies on.

Call it from a test: it returns nothing where all is well and raises `wirelessfl.errors.CheckFailed` with the
first broken promise.
"""

from copy import deepcopy

import numpy as np

from wirelessfl.errors import require
from wirelessfl.learning.selection.availability import AvailabilityModel
from wirelessfl.memory import resumed_copy
from wirelessfl.streams import Streams


def check_availability(model: AvailabilityModel, clients: int = 200, rounds: int = 5, seed: int = 0) -> None:
    """Checks shape and type, reproducibility, independence of who else is selected, and the state of a checkpoint.

    Args:
        model: the model to check, as before the first round; it is left as it is.
        clients: registered clients of the trial.
        rounds: rounds of the trial, from 1.
        seed: seed of the streams.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(model, AvailabilityModel), "has no method available(clients, round_index, streams)")
    everyone = np.arange(clients, dtype=np.int64)
    some, streams = everyone[1::3], Streams(seed)
    whole, again, part, resumed = (deepcopy(model) for _ in range(4))
    for round_index in range(1, rounds + 1):
        there = whole.available(everyone, round_index, streams)
        require(there.shape == (clients,), f"available returns shape {there.shape} for {clients} clients")
        require(there.dtype == np.bool_, f"available returns {there.dtype}, not booleans")
        same = np.array_equal(there, again.available(everyone, round_index, Streams(seed)))
        require(same, "the same streams give another answer: where does the randomness come from?")
        alone = np.array_equal(there[some], part.available(some, round_index, streams))
        require(alone, "a client's presence depends on which other clients are selected")
        continued = np.array_equal(there, resumed.available(everyone, round_index, streams))
        require(continued, "a model that goes on from its state gives another answer")
        resumed = resumed_copy(resumed, model)
