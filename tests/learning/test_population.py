"""The clients' data: the same samples whoever else is asked, at small cost."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wirelessfl.learning.batches import plan_batches
from wirelessfl.learning.cohort.block import BlockData
from wirelessfl.learning.data import LogNormalSizes, SharedSource, SkewedSources, load_digits
from wirelessfl.learning.data.synthetic import draw_examples
from wirelessfl.learning.partition import classes_partition
from wirelessfl.learning.population import PartitionedData, Population, Shards, SyntheticPopulation
from wirelessfl.streams import Streams

DIGITS = load_digits()
PARTITION = classes_partition(DIGITS.train.targets.numpy(), 50, 5, np.random.default_rng(0))
POPULATIONS: dict[str, Population] = {
    "partitioned": PartitionedData(DIGITS, PARTITION),
    "synthetic": SyntheticPopulation(Streams(7), 50, SkewedSources()),
    "synthetic iid": SyntheticPopulation(Streams(7), 50, SharedSource()),
}


def samples_of(shards: Shards, position: int) -> tuple[torch.Tensor, torch.Tensor]:
    rows = shards.index[position, : int(shards.sizes[position])]
    return shards.inputs[rows], shards.targets[rows]


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=POPULATIONS.keys())
@given(clients=st.lists(st.integers(0, 49), min_size=1, max_size=6, unique=True))
@settings(max_examples=30)
def test_a_clients_samples_are_the_same_whoever_else_is_asked(population: Population, clients: list[int]) -> None:
    shards = population.shards(np.array(clients))
    assert shards.inputs.dtype == torch.float32
    assert shards.targets.dtype == shards.index.dtype == shards.sizes.dtype == torch.int64
    assert shards.inputs.shape[1:] == population.feature_shape
    assert shards.sizes.tolist() == population.sizes[clients].tolist()
    assert shards.index.shape == (len(clients), population.sizes[clients].max())
    for position, client in enumerate(clients):
        size = int(shards.sizes[position])
        assert (shards.index[position, size:] == 0).all()
        assert len(set(shards.index[position, :size].tolist())) == size
        alone = samples_of(population.shards(np.array([client])), 0)
        together = samples_of(shards, position)
        assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=POPULATIONS.keys())
def test_describes_itself(population: Population) -> None:
    assert population.sizes.shape == (50,)
    assert population.sizes.dtype == np.int64
    assert population.sizes.min() >= 1
    assert population.test.inputs.shape[1:] == population.feature_shape
    assert int(population.test.targets.max()) < population.num_classes == 10


def test_partitioned_shards_copy_no_samples() -> None:
    data = PartitionedData(DIGITS, PARTITION)
    shards = data.shards(np.array([4, 2]))
    assert shards.inputs is DIGITS.train.inputs
    assert shards.targets is DIGITS.train.targets
    assert shards.index[1, : int(shards.sizes[1])].tolist() == PARTITION.rows(2).tolist()
    assert data.test is DIGITS.test


def test_side_by_side_every_client_keeps_its_samples_and_a_block_is_one_view() -> None:
    before = PartitionedData(DIGITS, PARTITION)
    data = before.side_by_side()
    clients = np.array([7, 3, 20])
    for position in range(len(clients)):
        expected = samples_of(before.shards(clients), position)
        assert all(map(torch.equal, samples_of(data.shards(clients), position), expected))
    of_one_size = np.flatnonzero(np.diff(data.sizes) == 0)[:1].repeat(2) + np.arange(2)
    stream = Streams(1).nodes("batch_order", 1, of_one_size)
    sizes = data.sizes[of_one_size]
    batches = plan_batches("shuffle", stream, sizes, np.array([1, 1]), batch_size=8)
    block = BlockData.of(data.shards(of_one_size), batches, torch.zeros(1))
    training_set = data.dataset.train.inputs.untyped_storage()
    assert block.own_inputs().untyped_storage().data_ptr() == training_set.data_ptr()


def test_synthetic_shards_are_the_draws_of_those_clients() -> None:
    population = SyntheticPopulation(Streams(3), 1000, SkewedSources(0.5, 2.0))
    shards = population.shards(np.array([900, 1]))
    expected = draw_examples(SkewedSources(0.5, 2.0), Streams(3), "train", np.array([900]), population.sizes[[900]])
    assert torch.equal(samples_of(shards, 0)[0], expected.inputs)
    assert torch.equal(samples_of(shards, 0)[1], expected.targets)


@pytest.mark.parametrize(("clients", "samples"), [(1, 2000), (7, 1995), (100, 2000), (100_000, 2000)])
def test_synthetic_test_set_is_held_out_bounded_and_even(clients: int, samples: int) -> None:
    law, sizes = SkewedSources(), LogNormalSizes(maximum=60)
    population = SyntheticPopulation(Streams(5), clients, law, sizes)
    assert len(population.test) == samples
    tested = min(clients, 100)
    first = draw_examples(law, Streams(5), "test", np.array([0]), np.array([samples // tested]))
    assert torch.equal(population.test.inputs[: samples // tested], first.inputs)
    trained = {row.numpy().tobytes() for row in population.shards(np.arange(tested)).inputs}
    assert trained.isdisjoint(row.numpy().tobytes() for row in population.test.inputs)


def test_the_seed_decides_the_data() -> None:
    one, other = (SyntheticPopulation(Streams(seed), 20, SkewedSources()) for seed in (1, 2))
    assert not np.array_equal(one.sizes, other.sizes)
    assert not torch.equal(one.test.inputs, other.test.inputs)


def test_a_million_registered_clients_cost_little() -> None:
    """Under two seconds and 200 MiB to register, a few MiB for the samples of 50 active ones."""
    tracemalloc.start()
    try:
        started = time.process_time()
        population = SyntheticPopulation(Streams(1), 1_000_000, SkewedSources())
        assert population.sizes.shape == (1_000_000,)
        assert time.process_time() - started < 2
        held, peak = tracemalloc.get_traced_memory()
        assert peak < 200 * 2**20
        assert held < 10 * 2**20
        tracemalloc.reset_peak()
        clients = np.arange(0, 1_000_000, 20_000)
        shards = population.shards(clients)
        peak = tracemalloc.get_traced_memory()[1]
        samples = int(population.sizes[clients].sum())
        assert peak - held < 3 * samples * 60 * 8
        assert len(shards.inputs) == samples
    finally:
        tracemalloc.stop()


def test_nobody_is_no_population() -> None:
    with pytest.raises(ValueError, match="num_clients"):
        SyntheticPopulation(Streams(0), 0, SkewedSources())
