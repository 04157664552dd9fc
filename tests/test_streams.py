"""The random streams: known answers, independence of the caller's circumstances, and the laws they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tests.statistics import assert_counts, assert_follows, assert_uncorrelated, assert_variance_gaussian, shifted
from wirelessfl.streams import NodeStream, Streams, philox4x32

COUNT = 100_000


def stream(count: int = COUNT, purpose: str = "test", round_index: int = 3) -> NodeStream:
    return Streams(shifted(11)).nodes(purpose, round_index, np.arange(count))


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_philox_known_answers(counter: str, key: str, expected: str) -> None:
    """The vectors of Random123's kat_vectors for philox4x32-10."""
    words = tuple(np.array([int(word, 16)], dtype=np.uint64) for word in counter.split())
    first, second = (int(word, 16) for word in key.split())
    found = " ".join(f"{int(word[0]):08x}" for word in philox4x32(words, (first, second)))
    assert found == expected


@given(nodes=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=8, unique=True), keep=st.data())
def test_a_draw_does_not_depend_on_who_else_is_active(nodes: list[int], keep: st.DataObject) -> None:
    streams = Streams(5)
    together = streams.nodes("fading", 2, np.array(nodes)).uniform(3)
    index = keep.draw(st.permutations(range(len(nodes))))
    some = [nodes[i] for i in index[: 1 + len(index) // 2]]
    apart = streams.nodes("fading", 2, np.array(some)).uniform(3)
    np.testing.assert_array_equal(apart, together[index[: len(some)]])


def test_streams_of_several_purposes_are_those_of_each() -> None:
    """Also from a block of its own on in each row, and of some rows alone."""
    streams, nodes, prefixes = Streams(5), np.array([7, 2**40, 3]), ("", "antenna1_", "antenna2_tap3_")
    together = streams.each(prefixes, "fading", 4, np.tile(nodes, 3))
    apart = [streams.nodes(f"{prefix}fading", 4, nodes) for prefix in prefixes]
    np.testing.assert_array_equal(together.normal(5), np.concatenate([each.normal(5) for each in apart]))
    begin, rows = np.array([2, 0, 9, 1]), np.array([8, 0, 4, 3])
    later = together.at_block(rows, begin).complex_normal(3)
    expected = [apart[row // 3].at_block(np.array([row % 3]), begin[i : i + 1]) for i, row in enumerate(rows.tolist())]
    np.testing.assert_array_equal(later, np.concatenate([each.complex_normal(3) for each in expected]))
    assert streams.each(prefixes, "fading", 4, nodes[:0]).uniform(2).shape == (0, 2)


@pytest.mark.parametrize("count", [1, 3])
def test_long_draws_hold_the_numbers_of_short_ones(count: int) -> None:
    """Rows are drawn in parts; each is the same from 32,768 on as alone, also from a block of its own on."""
    nodes = 2**33 + 3 * np.arange(40_000)
    whole = Streams(5).nodes("fading", 2, nodes)
    for at in (0, 10_922, 10_923, 32_767, 32_768, 39_999):
        own = Streams(5).nodes("fading", 2, nodes[at : at + 1])
        np.testing.assert_array_equal(whole.uniform(count)[at], own.uniform(count)[0])
        np.testing.assert_array_equal(whole.complex_normal(count)[at], own.complex_normal(count)[0])
        later = whole.at_block(slice(None), np.arange(40_000) % 7)
        expected = own.at_block(slice(None), np.array([at % 7]))
        np.testing.assert_array_equal(later.normal(count)[at], expected.normal(count)[0])


@pytest.mark.parametrize("draw", [NodeStream.uniform, NodeStream.exponential, NodeStream.complex_normal])
def test_a_longer_draw_extends_a_shorter_one(draw: object) -> None:
    assert callable(draw)
    np.testing.assert_array_equal(draw(stream(4), 5)[:, :3], draw(stream(4), 3))


def test_normal_of_odd_length_extends_too() -> None:
    np.testing.assert_array_equal(stream(4).normal(6)[:, :5], stream(4).normal(5))


def test_no_nodes_give_empty_draws() -> None:
    assert stream(0).uniform(2).shape == (0, 2)
    assert stream(0).complex_normal().shape == (0, 1)


def test_repeating_a_call_repeats_the_numbers() -> None:
    np.testing.assert_array_equal(stream(10).normal(4), stream(10).normal(4))


def test_no_word_repeats_over_seeds_purposes_rounds_and_nodes() -> None:
    """240,000 words of 64 bits: a repetition among independent ones has probability 240,000²/2⁶⁵ = 2e-9."""
    words = [
        Streams(seed).nodes(purpose, round_index, np.arange(1000)).uniform(4).ravel()
        for seed in (0, 1, 12)
        for purpose in ("fading", "fading/1", "csi", "jammer")
        for round_index in (0, 1, 2, 2**32 - 1, 7)
    ]
    drawn = np.concatenate(words)
    assert len(np.unique(drawn)) == len(drawn)


def test_generators_differ_by_seed_purpose_round_and_node() -> None:
    first = {
        Streams(seed).generator(purpose, round_index, node).integers(2**63)
        for seed in (1, 2)
        for purpose in ("noise", "batches")
        for round_index in (0, 1, 2)
        for node in (0, 1, 2, 2**62)
    }
    assert len(first) == 2 * 2 * 3 * 4


def test_generators_of_neighbouring_nodes_do_not_overlap() -> None:
    streams = Streams(1)
    draws = [streams.generator("noise", 0, node).integers(2**63, size=50_000) for node in range(3)]
    assert len(np.unique(np.concatenate(draws))) == 150_000


def test_torch_seeds_are_distinct_and_fit_63_bits() -> None:
    seeds = {Streams(seed).torch_seed(p, m, i) for seed in (1, 2) for p in "ab" for m in range(20) for i in range(20)}
    assert len(seeds) == 2 * 2 * 20 * 20
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_uniform_law() -> None:
    drawn = stream().uniform(2)
    assert drawn.min() > 0
    assert drawn.max() < 1
    assert_follows(drawn, stats.uniform.cdf)


@pytest.mark.parametrize("shift", [0, 8, 20, 44])
def test_bits_of_the_uniform_numbers_are_even(shift: int) -> None:
    """The lowest kept bits are as even as the highest: 256 cells for each of four bytes of the mantissa."""
    words = (stream().uniform(1)[:, 0] * 2.0**52).astype(np.uint64)
    cells = (words >> np.uint64(shift)) & np.uint64(255)
    assert_counts(np.bincount(cells.astype(np.int64), minlength=256), np.full(256, 1 / 256))


def test_normal_law() -> None:
    drawn = stream().normal(3)
    assert_follows(drawn, stats.norm.cdf)
    assert_variance_gaussian(drawn, 1.0)


def test_complex_normal_law() -> None:
    drawn = stream().complex_normal(2)
    assert_variance_gaussian(drawn.real, 0.5)
    assert_variance_gaussian(drawn.imag, 0.5)
    assert_follows(np.abs(drawn) ** 2, stats.expon.cdf)
    assert_follows(np.angle(drawn), stats.uniform(-np.pi, 2 * np.pi).cdf)
    assert_uncorrelated(drawn.real.ravel(), drawn.imag.ravel())


def test_exponential_law() -> None:
    assert_follows(stream().exponential(2), stats.expon.cdf)


def pair_counts(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.bincount((first * 16).astype(int) * 16 + (second * 16).astype(int), minlength=256)


def test_neighbours_in_every_direction_are_independent() -> None:
    """Uniform pairs fill a 16 by 16 grid evenly, whichever index separates the two."""
    here = stream().uniform(2)
    other = {
        "draw": here[:, 1],
        "node": stream(COUNT + 1).uniform(1)[1:, 0],
        "round": stream(round_index=4).uniform(1)[:, 0],
        "purpose": stream(purpose="tests").uniform(1)[:, 0],
        "seed": Streams(shifted(12)).nodes("test", 3, np.arange(COUNT)).uniform(1)[:, 0],
    }
    for there in other.values():
        assert_uncorrelated(here[:, 0], there)
        assert_counts(pair_counts(here[:, 0], there), np.full(256, 1 / 256))


def test_the_grid_test_sees_a_shared_stream() -> None:
    here = stream().uniform(1)[:, 0]
    with pytest.raises(AssertionError, match="chi-square"):
        assert_counts(pair_counts(here, here), np.full(256, 1 / 256))


def test_a_stream_goes_on_at_any_block() -> None:
    """A block is two words: rows that begin at block b are the columns from 2b on."""
    whole = stream(5)
    part = whole.at_block(np.array([4, 1]), np.array([0, 3]))
    assert part.nodes.tolist() == [4, 1]
    np.testing.assert_array_equal(part.uniform(3), [whole.uniform(3)[4], whole.uniform(9)[1, 6:]])
