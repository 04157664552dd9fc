"""Selection at the cost of the clients that are known, against the same rules over all registered clients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.simulation.scenarios import run, small
from wirelessfl.learning.selection import (
    RoundFeedback,
    SelectBestChannel,
    Selection,
    SelectionContext,
    SelectOldest,
    SelectOort,
    SelectPowerOfChoice,
    SelectProportionalFair,
)
from wirelessfl.learning.selection.draws import largest_of, weighted
from wirelessfl.learning.selection.sparse import SparseVector, others
from wirelessfl.memory import OrderedMemory
from wirelessfl.streams import Streams


def dense_largest(score: NDArray[np.float64], count: int, generator: np.random.Generator) -> list[int]:
    """Clients sorted by their scores, ties at the edge by positions drawn among them."""
    if count >= len(score):
        return list(range(len(score)))
    edge = sorted(score.tolist(), reverse=True)[count - 1]
    above = [client for client, own in enumerate(score.tolist()) if own > edge]
    ties = [client for client, own in enumerate(score.tolist()) if own == edge]
    if len(ties) > count - len(above):
        drawn = generator.choice(len(ties), size=count - len(above), replace=False, shuffle=False)
        ties = [ties[place] for place in drawn]
    return sorted(above + ties)


def dense_weighted(weights: NDArray[np.float64], count: int, generator: np.random.Generator) -> list[int]:
    """Positions of the smallest exponential times, all of them sorted."""
    times = generator.standard_exponential(len(weights)) / weights
    return sorted(np.argsort(times)[:count].tolist())


def some(generator: np.random.Generator, size: int) -> NDArray[np.int64]:
    """Ascending numbers of none, few or all."""
    return np.flatnonzero(generator.random(size) < generator.choice([0.0, 0.2, 0.7, 1.0])).astype(np.int64)


def test_the_largest_of_a_sparse_vector_are_those_of_the_dense_one_bit_for_bit() -> None:
    generator = np.random.default_rng(1)
    for case in range(1500):
        size = int(generator.integers(1, 14))
        clients = some(generator, size)
        vector = SparseVector(
            size,
            clients,
            generator.integers(0, 4, len(clients)).astype(float),
            float(generator.choice([-1, 1, 2, 5, np.inf])),
        )
        count = int(generator.integers(1, size + 3))
        found = largest_of(vector, count, np.random.default_rng(case))
        assert found.clients.tolist() == dense_largest(vector.dense(), count, np.random.default_rng(case)), vector
        assert found.score is not None and found.clients.dtype == np.int64
        np.testing.assert_array_equal(found.score, vector.dense()[found.clients])


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
def test_weighted_draws_are_those_of_all_times_sorted_bit_for_bit(spread: float) -> None:
    """Also where the weights differ by many powers of ten, so that the first bound on the times leaves too few."""
    generator = np.random.default_rng(2)
    for case in range(400):
        size = int(generator.integers(1, 60))
        weights, without = np.exp(spread * generator.standard_normal(size)), some(generator, size)
        left = np.setdiff1d(np.arange(size), without)
        count = int(generator.integers(0, len(left) + 1))
        expected = left[dense_weighted(weights[left], count, np.random.default_rng(case))]
        found = weighted(weights, count, np.random.default_rng(case), without)
        assert found.tolist() == expected.tolist() and found.dtype == np.int64


def test_infinite_weights_are_drawn_first() -> None:
    weights = np.where(np.arange(9) == 4, np.inf, 1.0)
    for count in (1, 3):
        drawn = weighted(weights, count, np.random.default_rng(1))
        assert 4 in drawn and len(drawn) == count


def test_oort_explores_evenly_where_training_takes_no_time() -> None:
    oort = {"clients__selection": {"scheme": "oort", "count": 2}, "timing__cycles_per_sample": 0, "rounds": 1}
    first = [run(small(seed=seed, **oort))[1][0].clients for seed in range(1, 13)]
    hits = np.bincount(np.concatenate(first), minlength=6)
    assert stats.chisquare(hits).pvalue > 1e-4 and len({tuple(clients.tolist()) for clients in first}) > 3


def test_draws_among_many_are_uniform() -> None:
    """χ² of ten classes of 100,000 clients, 300 left out, in 40 draws of 250: false alarm of 10⁻⁶."""
    without = np.sort(np.random.default_rng(3).choice(100_000, 300, replace=False))
    weights, generator, hits = np.ones(100_000), np.random.default_rng(4), np.zeros(10)
    for _ in range(40):
        drawn = weighted(weights, 250, generator, without)
        assert len(np.unique(drawn)) == 250 and not np.isin(drawn, without).any()
        hits += np.bincount(drawn // 10_000, minlength=10)
    expected = 10_000 - np.bincount(without // 10_000, minlength=10)
    assert stats.chisquare(hits, hits.sum() * expected / expected.sum()).pvalue > 1e-6


def test_ranks_among_those_that_are_not_left_out() -> None:
    generator = np.random.default_rng(5)
    for _ in range(100):
        out = some(generator, 12)
        left = np.setdiff1d(np.arange(12), out)
        assert others(out, np.arange(len(left))).tolist() == left.tolist()


def test_numbers_of_some_clients() -> None:
    generator = np.random.default_rng(6)
    for _ in range(200):
        clients, asked = some(generator, 12), some(generator, 12)
        vector = SparseVector(12, clients, generator.random(len(clients)), -1.0)
        np.testing.assert_array_equal(vector.at(asked), vector.dense()[asked])


@dataclass
class Dense:
    """What is known of all clients, as full vectors of NaN where nothing is."""

    heard_in: NDArray[np.float64]
    gains: NDArray[np.float64]
    losses: NDArray[np.float64]
    samples: NDArray[np.float64]
    speed: NDArray[np.float64]

    @classmethod
    def nothing(cls, size: int, generator: np.random.Generator) -> Dense:
        """Before the first round."""
        nan = np.full(size, np.nan)
        return cls(nan, nan.copy(), nan.copy(), generator.integers(1, 50, size).astype(float), generator.random(size))

    def context(self, index: int, streams: Streams) -> SelectionContext:
        """The same for a rule."""
        sources = {"age": index - self.heard_in} | {
            name: getattr(self, name) for name in ("gains", "losses", "samples", "speed")
        }
        return SelectionContext(
            len(self.gains),
            index,
            streams,
            {name: lambda vector=vector: vector for name, vector in sources.items()},  # type: ignore[misc]
        )


def expected_of(rule: Selection, known: Dense, index: int, count: int, streams: Streams) -> list[int]:
    """The clients of a rule by vectors over all registered ones."""
    generator = streams.generator("selection", index)
    if isinstance(rule, SelectOldest):
        return dense_largest(np.nan_to_num(index - known.heard_in, nan=float(index)), count, generator)
    if isinstance(rule, SelectBestChannel):
        return dense_largest(np.nan_to_num(known.gains, nan=np.inf), count, generator)
    if isinstance(rule, SelectPowerOfChoice):
        asked = dense_weighted(known.samples, rule.candidates, generator)
        ties = streams.generator("selection_ties", index)
        best = dense_largest(np.nan_to_num(known.losses[asked], nan=np.inf), count, ties)
        return [asked[place] for place in best]
    if isinstance(rule, SelectProportionalFair):
        average = rule.average(len(known.gains), index).dense()
        rate = np.log2(1 + 0.5 * rule.snr * np.nan_to_num(known.gains, nan=np.inf))
        return dense_largest(rate / np.maximum(average, 1e-6), count, generator)
    assert isinstance(rule, SelectOort)
    utility = rule.utility(len(known.gains), index).dense()
    heard, new = np.flatnonzero(~np.isnan(utility)), np.flatnonzero(np.isnan(utility))
    explored = min(len(new), max(round(rule.exploring(index) * count), count - len(heard)))
    exploited = min(count - explored, len(heard))
    clients = new[dense_weighted(known.speed[new], explored, generator)]
    if exploited:
        edge = np.sort(utility[heard])[-exploited]
        admitted = heard[utility[heard] >= rule.cutoff * edge]
        drawn = dense_weighted(np.maximum(utility[admitted], 1e-12), exploited, generator)
        clients = np.concatenate([clients, admitted[drawn]])
    return sorted(clients.tolist())


@pytest.mark.parametrize(
    "rule",
    [
        SelectOldest(),
        SelectBestChannel("last"),
        SelectProportionalFair(5.0, 3.0, "last"),
        SelectPowerOfChoice(12, "last"),
        SelectOort(),
    ],
    ids=lambda rule: type(rule).__name__,
)
@pytest.mark.parametrize(("registered", "present"), [(30, 0.6), (400, 0.9), (400, 0.1)])
def test_every_rule_is_that_of_full_vectors_bit_for_bit(rule: Selection, registered: int, present: float) -> None:
    """Over rounds in which only some of those selected are heard, until all are known."""
    generator, streams, count = np.random.default_rng(7), Streams(8), 9
    known = Dense.nothing(registered, generator)
    for index in range(1, 31):
        found = rule.select(known.context(index, streams), count)
        assert found.tolist() == expected_of(rule, known, index, count, streams), index
        heard = found[generator.random(len(found)) < present]
        known.gains[found] = generator.exponential(size=len(found))
        known.heard_in[heard], known.losses[heard] = index, generator.gamma(2.0, size=len(heard))
        duration = generator.exponential(size=len(heard))
        if isinstance(rule, SelectOort | SelectProportionalFair):
            numbers = known.gains[heard], known.losses[heard], known.samples[heard].astype(np.int64), duration
            rule.learn(RoundFeedback(registered, index, heard, *numbers))


def test_a_million_registered_are_not_looked_at_by_age() -> None:
    """Of 10¹² clients; a vector of them would not fit into memory."""
    heard = SparseVector(10**12, np.array([3, 10**11]), np.array([1.0, 2.0]), rest=7.0)
    clients = largest_of(heard, 50, np.random.default_rng(1)).clients
    assert len(clients) == 50 and clients.max() > 10**11


def test_an_ordered_table_against_a_dictionary() -> None:
    generator, table = np.random.default_rng(9), OrderedMemory(a=np.nan, b=0.0)
    plain: dict[int, list[float]] = {}
    for _ in range(40):
        nodes = some(generator, 25)
        values = generator.random(len(nodes))
        table.write(nodes, a=values)
        for node, value in zip(nodes.tolist(), values.tolist(), strict=True):
            plain.setdefault(node, [np.nan, 0.0])[0] = value
        few = nodes[::3]
        table.write(few, b=np.ones(len(few)))
        for node in few.tolist():
            plain[node][1] = 1.0
        again = OrderedMemory(a=np.nan, b=0.0)
        again.restore(table.state())
        for one in (table, again):
            assert one.nodes.tolist() == sorted(plain)
            assert one.column("a").tolist() == [plain[node][0] for node in sorted(plain)]
            assert one.column("b").tolist() == [plain[node][1] for node in sorted(plain)]
    with pytest.raises(ValueError, match="read-only"):
        table.column("a")[0] = 1.0
    with pytest.raises(ValueError, match="expected"):
        table.restore({"nodes": np.array([2, 1]), "a": np.zeros(2), "b": np.zeros(2)})
