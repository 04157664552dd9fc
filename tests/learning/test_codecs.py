"""Codecs against brute force, closed forms and their papers' bounds; error feedback and codecs in runs."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulation.scenarios import run, small
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.compression import Codec, ErrorFeedback, Qsgd, RandK, RandomRounding, Sign, TopK
from wirelessfl.learning.compression.top_k import index_bits
from wirelessfl.learning.conformance import check_codec
from wirelessfl.radio.modulation.a_dsgd import ADsgd
from wirelessfl.radio.modulation.d_dsgd import DDsgd
from wirelessfl.scenario.loader import resolve_scenario
from wirelessfl.study.content import content_id

CODECS: list[Codec] = [
    TopK(0.2),
    TopK(1.0),
    RandK(0.3),
    RandK(0.3, unbiased=False),
    Qsgd(1),
    Qsgd(7),
    Sign(),
    Sign(0.1),
]


def rows_of(count: int, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)


def carried(codec: Codec, rows: NDArray[np.float32], seed: int = 1) -> NDArray[np.float32]:
    generators = [np.random.default_rng([seed, row]) for row in range(len(rows))]
    return codec.decode(codec.encode(rows, generators))


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_they_conform(codec: Codec) -> None:
    check_codec(codec)


@pytest.mark.parametrize("kept", [1, 3, 6])
def test_no_set_of_places_holds_more_of_a_vector_than_the_largest(kept: int) -> None:
    for row in rows_of(5, 6):
        sent = carried(TopK(kept / 6), row[None])[0]
        best = max(float((row[list(places)] ** 2).sum()) for places in itertools.combinations(range(6), kept))
        assert float((sent**2).sum()) == pytest.approx(best, rel=1e-6)
        assert np.count_nonzero(sent) == kept
        np.testing.assert_array_equal(sent[sent != 0], row[sent != 0])


def test_equal_magnitudes_are_taken_from_the_front() -> None:
    row = np.array([[1, -1, 1, 0.5, -1]], dtype=np.float32)
    np.testing.assert_array_equal(carried(TopK(0.4), row), [[1, -1, 0, 0, 0]])


def test_places_take_the_bits_that_tell_all_sets_apart() -> None:
    for dimension in range(1, 40):
        for kept in range(1, dimension + 1):
            assert index_bits(dimension, kept) == (math.comb(dimension, kept) - 1).bit_length()
    assert index_bits(10_000, 100) == (math.comb(10_000, 100) - 1).bit_length()
    assert index_bits(2**20, 1) == 20


def test_random_places_are_uniform_and_the_same_for_all() -> None:
    """Each of 20 places in 5 of 20 of 4,000 rounds: χ² with 19 degrees of freedom, false alarm 1e-4 at 49.6."""
    codec, found = RandK(0.25), np.zeros(20)
    for number in range(4000):
        sent = carried(codec.drawn(np.random.default_rng(number)), np.ones((2, 20), dtype=np.float32))
        np.testing.assert_array_equal(sent[0], sent[1])
        assert set(np.unique(sent).tolist()) == {0.0, 4.0}  # times d/k
        found += sent[0] > 0
    # Drawing without replacement makes counts vary less than the multinomial's by (1 - 5/20) · 20/19
    statistic = float(((found - 1000) ** 2 / (1000 * 0.75)).sum() * 19 / 20)
    assert statistic < 49.6


@pytest.mark.parametrize("codec", [Qsgd(1), Qsgd(4), RandK(0.25), RandomRounding(3)], ids=repr)
def test_without_bias(codec: Codec) -> None:
    """The mean of 20,000 draws, each coordinate within 4.9 standard errors: false alarm 24 · 1e-6."""
    row, draws = rows_of(1, 24)[0], 20_000
    if isinstance(codec, RandK):
        rounds = (codec.drawn(np.random.default_rng(number)) for number in range(draws))
        sent = np.stack([one.decode(one.encode(row[None], []))[0] for one in rounds])
    else:
        sent = carried(codec, np.repeat(row[None], draws, axis=0))
    error, deviation = sent.mean(axis=0, dtype=np.float64) - row, sent.std(axis=0, dtype=np.float64)
    assert np.all(np.abs(error) <= 4.9 * deviation / math.sqrt(draws) + 1e-6)  # and rounding of single precision


def test_no_level_of_qsgd_is_without_a_codeword() -> None:
    """A single coordinate has the norm for its magnitude and the highest level s for sure, however many there are."""
    codec, rows = Qsgd(2**20), np.ones((1, 2000), dtype=np.float32) * np.eye(1, 2000, 7, dtype=np.float32)
    for seed in range(40):
        level, norms = codec.encode(rows, [np.random.default_rng(seed)]).content
        assert level.max() == 2**20 and norms[0, 0] == 1.0


@pytest.mark.parametrize("share", ["0.07", "0.14", "0.28", "0.55", "0.1"])
def test_a_share_is_the_decimal_that_was_written(share: str) -> None:
    """0.07 of 100 coordinates are 7, although the nearest number of 64 bits times 100 is a hair above."""
    for dimension in range(1, 400):
        kept = math.ceil(Fraction(share) * dimension)
        assert RandK(float(share)).bits(dimension) == 32 * kept
        places = (math.comb(dimension, kept) - 1).bit_length()
        assert TopK(float(share)).bits(dimension) == 32 * kept + places
        assert DDsgd(symbols=float(share)).symbol_count(dimension) == kept
        assert ADsgd(kept=0.05, symbols=float(share)).symbol_count(dimension) == max(2, kept)
        assert ADsgd(kept=0.29, symbols=0.55).coordinates_sent(dimension) == max(1, 29 * dimension // 100)


@pytest.mark.parametrize(("levels", "dimension"), [(1, 10), (4, 100), (30, 100)])
def test_the_variance_of_qsgd_is_what_its_lemma_allows(levels: int, dimension: int) -> None:
    """Lemma 3.1 (ii) bounds the mean; an exact sum over levels says what it is."""
    row = rows_of(1, dimension)[0].astype(np.float64)
    norm = float(np.linalg.norm(row))
    place = np.abs(row) / norm * levels
    exact = float(((place - np.floor(place)) * (1 - place + np.floor(place))).sum()) * (norm / levels) ** 2
    assert exact <= min(dimension / levels**2, math.sqrt(dimension) / levels) * norm**2
    sent = carried(Qsgd(levels), np.repeat(row[None].astype(np.float32), 4000, axis=0))
    found = ((sent - row) ** 2).sum(axis=1)
    assert abs(found.mean() - exact) <= 4.9 * found.std() / math.sqrt(len(found))


def test_bits() -> None:
    assert Qsgd(1).bits(10) == math.ceil(10 * math.log2(3)) + 32
    assert Sign().bits(10) == 42 and Sign(0.1).bits(10) == 10
    assert RandK(0.15).bits(10) == 64
    assert TopK(0.15).bits(10) == 64 + 6  # 45 sets of two places


def test_signs() -> None:
    rows = np.array([[1.0, -3.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(carried(Sign(), rows), [[4 / 3, -4 / 3, 4 / 3]], rtol=1e-6)
    np.testing.assert_array_equal(carried(Sign(0.5), rows), [[1, -1, 1]])
    np.testing.assert_array_equal(Sign(0.5).decided(np.array([0.2, 0.0, -1.0])), [0.5, 0.0, -0.5])


@pytest.mark.parametrize(
    "wrong", [lambda: TopK(0.0), lambda: RandK(1.1), lambda: Qsgd(0), lambda: Sign(0.0), lambda: TopK(math.nan)]
)
def test_numbers_out_of_range(wrong: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        wrong()


def test_nothing_is_lost_for_good_with_error_feedback() -> None:
    """What arrived and what is kept add up to all that was to be sent."""
    feedback, clients, codec = ErrorFeedback(), np.array([4, 9]), TopK(0.1)
    wanted, arrived = np.zeros((2, 50)), np.zeros((2, 50))
    for number in range(12):
        rows = rows_of(2, 50, seed=number)
        whole = feedback.added(clients, rows)
        sent = carried(codec, whole)
        feedback.keep(clients, whole - sent)
        wanted, arrived = wanted + rows, arrived + sent
    left = feedback.added(clients, np.zeros((2, 50), dtype=np.float32))
    np.testing.assert_allclose(arrived + left, wanted, atol=1e-4)
    again = ErrorFeedback()
    again.restore(feedback.state())
    np.testing.assert_array_equal(again.added(clients[:1], rows_of(1, 50)), feedback.added(clients[:1], rows_of(1, 50)))


# --- in a run -----------------------------------------------------------------------------------------------------


def digital(**codec: Any) -> dict[str, Any]:
    return {"kind": "digital", "codec": codec}


def model_after(uplink: dict[str, Any], **changes: Any) -> Any:
    return run(small(uplink=uplink, **{"rounds": 3, **changes}))[0]


@pytest.mark.parametrize(
    "codec",
    [
        {"name": "top_k", "share": 1.0},
        {"name": "rand_k", "share": 1.0},
        {"name": "qsgd", "levels": 2**20},
        {"name": "top_k", "share": 1.0, "error_feedback": True},
    ],
    ids=str,
)
def test_a_codec_that_loses_nothing_changes_nothing(codec: dict[str, Any]) -> None:
    whole, coded = model_after({"kind": "digital"}), model_after(digital(**codec))
    np.testing.assert_allclose(coded.state.parameters, whole.state.parameters, rtol=0, atol=2e-5)


def test_uniform_is_what_bits_was() -> None:
    old, new = model_after({"kind": "digital", "bits": 4}), model_after(digital(name="uniform", bits=4))
    assert old.state.parameters.tobytes() == new.state.parameters.tobytes()
    assert old.deployment.uplink.payload_bits == new.deployment.uplink.payload_bits


def test_the_earlier_name_of_a_key_is_told() -> None:
    resolved = resolve_scenario({"name": "old", "uplink": {"kind": "digital", "bits": 4}})
    assert any("uplink.codec: {name: uniform, bits: 4}" in note for note in resolved.notes)


@pytest.mark.parametrize("bits", [None, 4])
def test_runs_keep_their_identity(bits: int | None) -> None:
    """The key ``error_feedback`` came later: runs of earlier studies are found again."""
    scenario = small(uplink={"kind": "digital", "bits": bits})
    assert content_id(scenario) == {None: "b6f71ca7c35f30f4", 4: "a49b35384663ce59"}[bits]  # as of commit e7cc1fbd


@pytest.mark.parametrize("codec", [{"name": "top_k", "share": 0.05}, {"name": "sign"}], ids=str)
def test_error_feedback_is_a_plain_loop(codec: dict[str, Any]) -> None:
    """One client, one sum: the model is moved by what arrives, and the rest waits in the client's residual."""
    alone: dict[str, Any] = {"clients__count": 1, "clients__selection": {"scheme": "all"}, "rounds": 1}
    plain = model_after({"kind": "digital"}, **alone)
    begin = plain.deployment.learner.initial_state(0).parameters
    coded = model_after(digital(**codec, error_feedback=True), **alone)
    residual = coded.state.memories["error_feedback"]["0"]
    lost = plain.state.parameters - coded.state.parameters
    np.testing.assert_allclose(residual, lost, rtol=0, atol=1e-6)
    assert np.linalg.norm(residual) > 0.1 * np.linalg.norm(plain.state.parameters - begin)


@pytest.mark.parametrize("protocol", ["secagg", "secagg_plus", "pairwise_prf"])
def test_random_coordinates_under_masks_are_those_without(protocol: str) -> None:
    codec = {"name": "rand_k", "share": 0.2}
    masked = {"kind": "secure_aggregation", "clip": 40.0, "bits": 48, "protocol": protocol}
    open_, hidden = model_after({**digital(**codec), "clip": 40.0}), model_after({**masked, "codec": codec})
    np.testing.assert_allclose(hidden.state.parameters, open_.state.parameters, rtol=0, atol=1e-5)
    whole = model_after(masked).deployment.uplink
    sparse, dimension = hidden.deployment.uplink, len(hidden.state.parameters)
    assert whole.payload_bits - sparse.payload_bits == 48 * (dimension - math.ceil(0.2 * dimension))


def test_a_vote_moves_every_coordinate_by_its_step() -> None:
    simulation = model_after(digital(name="sign", vote_step=0.01), rounds=1)
    moved = simulation.state.parameters - simulation.deployment.learner.initial_state(0).parameters
    moves = np.abs(moved) > 0
    np.testing.assert_allclose(np.abs(moved[moves]), 0.01, rtol=1e-4)
    assert np.count_nonzero(moved) > len(moved) / 2  # ties of equal shares move nothing


def test_coding_costs_no_privacy() -> None:
    noisy = {"mechanism": "gaussian", "sampling": "poisson", "noise_multiplier": 1.0, "clip": 1.0}
    found = []
    for uplink in ({"kind": "digital"}, digital(name="top_k", share=0.1, error_feedback=True)):
        _, rounds, _ = run(small(uplink=uplink, training__privacy=noisy, rounds=3))
        found.append([this.values["epsilon_accounted"] for this in rounds])
    assert found[0] == found[1] and math.isfinite(found[0][-1])


@pytest.mark.parametrize(
    ("uplink", "message"),
    [
        (
            {"kind": "secure_aggregation", "codec": {"name": "top_k"}},
            r"codec\.name: found top_k with secure_aggregation",
        ),
        (
            {"kind": "secure_aggregation", "codec": {"name": "rand_k", "error_feedback": True}},
            r"codec\.error_feedback: found true with secure_aggregation",
        ),
        ({"kind": "digital", "bits": 4, "codec": {"name": "sign"}}, r"uplink\.bits: found 4 with the codec sign"),
        ({"kind": "digital", "codec": {"name": "none", "error_feedback": True}}, r"error_feedback: found true"),
        ({"kind": "digital", "codec": {"name": "top_k", "share": 0}}, r"codec\.share: found 0"),
        ({"kind": "digital", "codec": {"name": "qsgd", "levels": 0}}, r"codec\.levels: found 0"),
        (
            {"kind": "digital", "codec": {"name": "sign", "vote_step": 0.1, "error_feedback": True}},
            r"error_feedback: found true with vote_step",
        ),
        ({"kind": "over_the_air", "codec": {"name": "top_k"}}, r"codec"),
    ],
)
def test_what_does_not_go_together(uplink: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        small(uplink=uplink)


def test_a_vote_over_stale_models_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"codec\.vote_step: found a vote with aggregation"):
        small(uplink=digital(name="sign", vote_step=0.1), aggregation__mode="asynchronous")
