"""Checks for an availability model or a correlation in time of your own: what the simulator relies on.

Call them from a test: they return nothing where all is well and raise `wirelessfl.errors.CheckFailed` with the
first broken promise.
"""

from __future__ import annotations

from copy import deepcopy
from statistics import NormalDist
from typing import TypeVar

import numpy as np

from wirelessfl.errors import CheckFailed
from wirelessfl.simulation.availability import AvailabilityModel
from wirelessfl.simulation.propagation import Fading, Memory, Moment
from wirelessfl.streams import Streams

Model = TypeVar("Model")

ROUNDING = 1e-9
"""Relative error that floating point may leave."""


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
    _require(isinstance(model, AvailabilityModel), "has no method available(clients, round_index, streams)")
    everyone = np.arange(clients, dtype=np.int64)
    some, streams = everyone[1::3], Streams(seed)
    whole, again, part, resumed = (deepcopy(model) for _ in range(4))
    for round_index in range(1, rounds + 1):
        there = whole.available(everyone, round_index, streams)
        _require(there.shape == (clients,), f"available returns shape {there.shape} for {clients} clients")
        _require(there.dtype == np.bool_, f"available returns {there.dtype}, not booleans")
        same = np.array_equal(there, again.available(everyone, round_index, Streams(seed)))
        _require(same, "the same streams give another answer: where does the randomness come from?")
        alone = np.array_equal(there[some], part.available(some, round_index, streams))
        _require(alone, "a client's presence depends on which other clients are selected")
        continued = np.array_equal(there, resumed.available(everyone, round_index, streams))
        _require(continued, "a model that goes on from its state gives another answer")
        resumed = _taken_up(resumed, model)


def check_correlation(fading: Fading, count: int = 20_000, false_alarm: float = 1e-6, rounds: int = 3) -> None:
    """Checks shape and type, mean power 1, one answer a round, slots, and the state of a checkpoint.

    Args:
        fading: the object to check, as before the first round; it is left as it is.
        count: links for the mean power.
        false_alarm: probability with which a correct one would be refused.
        rounds: rounds of the trial, half a second apart.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    _require(isinstance(fading, Fading), "lacks a part of Fading")
    nodes, sight = np.arange(count, dtype=np.int64), np.ones(count, dtype=np.bool_)
    offsets = np.array([0.0, 1e-3, 2e-3])
    whole, part, resumed = (deepcopy(fading) for _ in range(3))
    for round_index in range(1, rounds + 1):
        moment = Moment(round_index, 0.5 * round_index)
        gains = whole.gains(nodes, sight, moment)
        _require(gains.shape == (count,), f"gains has shape {gains.shape} for {count} links")
        _require(gains.dtype == np.complex128, f"gains returns {gains.dtype}, not complex128")
        power = np.abs(gains) ** 2
        tolerance = NormalDist().inv_cdf(1 - false_alarm / (2 * rounds)) * power.std() / np.sqrt(count) + ROUNDING
        found = f"mean power is {power.mean():.5f}, not 1 within {tolerance:.5f}"
        _require(bool(abs(power.mean() - 1) <= tolerance), found)
        _require(np.array_equal(gains, whole.gains(nodes, sight, moment)), "asked twice in a round, gains differ")
        slot = whole.over(nodes, sight, moment, offsets)
        _require(slot.shape == (count, len(offsets)), f"over has shape {slot.shape} for {count} links and 3 times")
        _require(np.allclose(slot[:, 0], gains, rtol=ROUNDING), "a slot does not begin with the gains of its beginning")
        known = whole.specular(nodes, sight, moment, offsets)
        _require(known.shape == slot.shape, f"specular has shape {known.shape}, over {slot.shape}")
        _require(bool(np.all(whole.shift_hz(nodes, moment) >= 0)), "shift_hz is negative")
        alone = part.gains(nodes[1::3], sight[1::3], moment)
        _require(np.allclose(alone, gains[1::3], rtol=ROUNDING), "a link's gain depends on which others are asked for")
        continued = np.array_equal(gains, resumed.gains(nodes, sight, moment))
        _require(continued, "a model that goes on from its state gives other gains")
        resumed = _taken_up(resumed, fading)


def _taken_up(model: Model, fresh: Model) -> Model:
    """The model as a resumed run has it: made anew, with the state of the checkpoint."""
    if not isinstance(model, Memory):
        return model
    again = deepcopy(fresh)
    assert isinstance(again, Memory), "a copy of one that remembers"
    again.restore(model.state())
    return again


def _require(holds: bool, found: str) -> None:
    if not holds:
        raise CheckFailed(f"not a conforming model: {found}")
