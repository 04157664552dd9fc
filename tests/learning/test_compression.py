"""Codecs of digital uploads: bits on the air, and what arrives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulation.scenarios import run, small
from wirelessfl.errors import CheckFailed, ScenarioError
from wirelessfl.learning.compression import Codec, NoCodec, Payload, RandomRounding
from wirelessfl.learning.conformance import check_codec


class Signs(Codec):
    """One bit a coordinate and the mean magnitude (Bernstein et al., "signSGD", 2018)."""

    def bits(self, dimension: int) -> int:
        return dimension + 32

    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        return Payload((rows >= 0, np.abs(rows).mean(axis=1)), self.bits(rows.shape[1]))

    def decode(self, payload: Payload) -> NDArray[np.float32]:
        positive, scale = payload.content
        return np.asarray(np.where(positive, scale[:, None], -scale[:, None]), dtype=np.float32)


class Liar(Signs):
    """Makes more bits than it says."""

    def bits(self, dimension: int) -> int:
        return 8

    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        payload = Signs().encode(rows, generators)
        return Payload(payload.content, Signs().bits(rows.shape[1]))


class Half(Signs):
    """Says any number of bits for a vector."""

    def __init__(self, said: float = 0.5) -> None:
        self.said = said

    def bits(self, dimension: int) -> int:
        return self.said  # type: ignore[return-value]


class Cut(Signs):
    """Loses a coordinate."""

    def decode(self, payload: Payload) -> NDArray[np.float32]:
        return super().decode(payload)[:, 1:]


class Crowd(Signs):
    """Takes one scale for all clients."""

    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        scale = np.full(len(rows), np.abs(rows).mean())
        return Payload((rows >= 0, scale), self.bits(rows.shape[1]))


class Feedback(Signs):
    """Adds to what a client sends what it lost in the round before, and says nothing of that memory."""

    def __init__(self) -> None:
        self.lost: NDArray[np.float32] = np.zeros((1, 1), dtype=np.float32)

    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        known = rows + self.lost if self.lost.shape == rows.shape else rows
        payload = super().encode(known, generators)
        self.lost = known - self.decode(payload)
        return payload


class Loudest(Signs):
    """Takes the largest scale that it has ever seen, and says nothing of that memory."""

    def __init__(self) -> None:
        self.scale = 0.0

    def encode(self, rows: NDArray[np.float32], generators: Sequence[np.random.Generator]) -> Payload:
        self.scale = max(self.scale, float(np.abs(rows).max()))
        return Payload((rows >= 0, np.full(len(rows), self.scale)), self.bits(rows.shape[1]))


def coded(name: str, **changes: Any) -> dict[str, Any]:
    """A digital uplink with a codec from this file."""
    codec = {"name": f"tests.learning.test_compression:{name}"}
    return {"uplink": {"kind": "digital", "codec": codec}, "rounds": 1, **changes}


def test_its_bits_are_on_the_air_and_its_loss_in_the_model() -> None:
    ours, (first,), _ = run(small(**coded("Signs")))
    plain, (other,), _ = run(small(uplink={"kind": "digital"}, rounds=1))
    dimension = len(ours.state.parameters)
    np.testing.assert_allclose(
        first.slots["tx_time"], other.slots["tx_time"] * (dimension + 32) / (32 * dimension), rtol=1e-9
    )
    learner: Any = plain.deployment.learner
    state = learner.initial_state(0)
    blocks = list(learner.train(state.parameters, state, np.arange(6), 1))
    order = np.argsort(np.concatenate([block.positions for block in blocks]))
    updates = np.concatenate([block.updates.numpy() for block in blocks])[order].astype(np.float64)
    signs = np.where(updates >= 0, 1.0, -1.0) * np.abs(updates).mean(axis=1, keepdims=True)
    weight = learner.population.sizes / learner.population.sizes.sum()
    np.testing.assert_allclose(ours.state.parameters - state.parameters, weight @ signs, rtol=0, atol=1e-6)


def test_each_vector_of_an_upload_is_coded_by_itself() -> None:
    algorithm = {"name": "tests.simulation.scaffold:Scaffold"}
    ours, (first,), _ = run(small(**coded("Signs", training__algorithm=algorithm)))
    _, (other,), _ = run(small(**coded("Signs")))
    np.testing.assert_allclose(first.slots["tx_time"], 2 * other.slots["tx_time"], rtol=1e-9)
    # One client alone would have one magnitude in each vector; of six there are at most 2⁶ sums.
    assert len(np.unique(np.abs(ours.state.server_memory["control"]).round(7))) <= 64


def test_asynchronous_uploads_are_coded_too() -> None:
    simulation, rounds, _ = run(small(**coded("Signs", aggregation__mode="asynchronous", rounds=3)))
    uploads: Any = simulation.deployment.uplink
    assert uploads.uploads.payload_bits == len(simulation.state.parameters) + 32 and len(rounds) == 3


def test_local_noise_protects_what_is_coded() -> None:
    noise = {"mechanism": "gaussian", "noise_multiplier": 1.5, "clip": 1.0}
    _, (own,), _ = run(small(**coded("Signs", training__privacy=noise)))
    _, (other,), _ = run(small(uplink={"kind": "digital"}, rounds=1, training__privacy=noise))
    assert own.values["epsilon_accounted"] == other.values["epsilon_accounted"] < np.inf


@pytest.mark.parametrize("wrong", [Liar, Cut])
def test_a_codec_that_breaks_its_word_is_refused(wrong: type[Codec]) -> None:
    with pytest.raises(ScenarioError, match=rf"uplink\.codec\.name: {wrong.__name__} makes payloads of"):
        run(small(**coded(wrong.__name__)))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (0.5, r"Half\.bits returned a float, needs an int"),
        ("many", r"Half\.bits returned a str, needs an int"),
        (0, r"bits of Half are 0; allowed: 1, 2"),
        (-8, r"bits of Half are -8; allowed: 1, 2"),
    ],
)
def test_bits_are_a_positive_whole_number(said: object, words: str) -> None:
    codec = {"name": f"{__name__}:Half", "options": {"said": said}}
    with pytest.raises(ScenarioError, match=rf"uplink\.codec\.name: .*{words}"):
        run(small(uplink={"kind": "digital", "codec": codec}, rounds=1))


@pytest.mark.parametrize(
    ("uplink", "words"),
    [
        ({"kind": "secure_aggregation"}, r"uplink\.codec\.name: .*masks cancel.*allowed: none"),
        ({"kind": "digital", "bits": 4}, r"uplink\.bits: found 4 with the codec .*allowed: null"),
        ({"kind": "over_the_air"}, r"uplink\.codec"),
        ({"kind": "ideal"}, r"uplink\.codec"),
    ],
)
def test_where_no_payload_is_sent_it_is_refused(uplink: dict[str, Any], words: str) -> None:
    codec = {"codec": {"name": "tests.learning.test_compression:Signs"}}
    with pytest.raises(ScenarioError, match=words):
        small(uplink=uplink | codec)


def test_conformance() -> None:
    for codec in (NoCodec(), RandomRounding(4), Signs()):
        check_codec(codec)
    for wrong in (Liar(), Cut(), Crowd()):
        with pytest.raises(CheckFailed, match="not conforming"):
            check_codec(wrong)


@pytest.mark.parametrize("wrong", [Feedback, Loudest])
def test_what_a_codec_remembers_between_rounds_is_found(wrong: type[Codec]) -> None:
    with pytest.raises(CheckFailed, match="hidden state"):
        check_codec(wrong())
