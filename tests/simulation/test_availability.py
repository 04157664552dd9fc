"""Who is there: laws, persistence, recordings, and models of the user's own."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import run, small
from tests.simulation.test_build import variants
from tests.statistics import assert_probability, shifted
from wirelessfl.assembly.simulation import build_availability
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.faults import AvailabilityModel, GilbertElliott, RecordedAvailability
from wirelessfl.scenario.clients import Availability
from wirelessfl.streams import Streams
from wirelessfl.trace import EventKind, Status

STREAMS = Streams(shifted(101))
COUNT = 40_000
CLIENTS = np.arange(COUNT)


@pytest.mark.parametrize("variant", variants(Availability))
def test_every_model_can_be_built_and_looks_at_nobody_else(variant: type[Any], tmp_path: Path) -> None:
    file = tmp_path / "there.csv"
    file.write_text(
        "round,client,available\n" + "".join(f"{m},{i},{(m + i) % 2}\n" for m in (1, 2, 3) for i in range(6))
    )
    own = {"file": str(file)} if variant().model == "recorded" else {}
    together, alone = (
        build_availability(small(faults__availability={"model": variant().model, **own})) for _ in range(2)
    )
    assert isinstance(together, AvailabilityModel)
    for round_index in (1, 3):
        everyone = together.available(np.arange(6), round_index, STREAMS)
        assert everyone.dtype == np.bool_ and everyone.shape == (6,)
        np.testing.assert_array_equal(alone.available(np.array([4]), round_index, STREAMS), everyone[4:5])


def test_gilbert_elliott_stays_and_returns_as_stated() -> None:
    """Transition frequencies in one step, and in three steps at once, against the powers of the matrix."""
    leave, back = 0.2, 0.5
    chain = GilbertElliott(leave, back)
    matrix = np.array([[1 - leave, leave], [back, 1 - back]])
    first = chain.available(CLIENTS, 1, STREAMS)
    assert_probability(int(first.sum()), COUNT, back / (leave + back))
    states = [first, chain.available(CLIENTS, 2, STREAMS), chain.available(CLIENTS, 5, STREAMS)]
    for (before, after), steps in zip(pairwise(states), (1, 3), strict=True):
        power = np.linalg.matrix_power(matrix, steps)
        assert_probability(int(after[before].sum()), int(before.sum()), power[0, 0])
        assert_probability(int(after[~before].sum()), int((~before).sum()), power[1, 0])


def test_limits_of_gilbert_elliott() -> None:
    always = GilbertElliott(0.0, 0.0)
    assert always.available(CLIENTS, 1, STREAMS).all() and always.available(CLIENTS, 9, STREAMS).all()
    never = GilbertElliott(1.0, 0.0)
    assert not never.available(CLIENTS, 1, STREAMS).any()
    alternating = GilbertElliott(1.0, 1.0)
    first = alternating.available(CLIENTS, 1, STREAMS)
    np.testing.assert_array_equal(alternating.available(CLIENTS, 2, STREAMS), ~first)
    np.testing.assert_array_equal(alternating.available(CLIENTS, 4, STREAMS), ~first)
    np.testing.assert_array_equal(alternating.available(CLIENTS, 4, STREAMS), ~first)


def test_recorded_presence_is_what_the_file_says() -> None:
    presence = np.zeros((3, 4), dtype=np.bool_)
    presence[2, 1] = True
    model = RecordedAvailability(presence)
    assert model.available(np.array([3, 1]), 2, STREAMS).tolist() == [False, True]


def test_who_is_gone_has_its_status_and_its_event() -> None:
    _, rounds, events = run(small(rounds=6, faults__availability={"model": "gilbert_elliott", "p_leave": 0.5}))
    gone = [this.clients[this.round.with_status(Status.UNAVAILABLE)] for this in rounds]
    assert any(len(clients) for clients in gone)
    for clients, batch in zip(gone, events, strict=True):
        noted = np.asarray(batch.node)[np.asarray(batch.kind) == EventKind.UNAVAILABLE]
        np.testing.assert_array_equal(noted, clients)


class OddRounds:
    """Nobody is there in even rounds."""

    def available(self, clients: np.ndarray, round_index: int, streams: Streams) -> np.ndarray:
        return np.full(len(clients), round_index % 2 == 1)


def test_a_model_of_the_users_own() -> None:
    own = {"model": "tests.simulation.test_availability:OddRounds"}
    _, rounds, _ = run(small(faults__availability=own))
    assert [this.values["participants"] for this in rounds] == [6, 0, 6]
    with pytest.raises(ScenarioError, match=r"faults\.availability\.model: .* is no AvailabilityModel"):
        run(small(faults__availability={"model": "wirelessfl.radio:Rayleigh"}))


def test_a_recording_needs_its_file() -> None:
    with pytest.raises(ScenarioError, match=r"faults\.availability\.file: found null"):
        small(faults__availability={"model": "recorded"})
