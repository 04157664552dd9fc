"""Mini-batches: epochs are permutations, Poisson batches follow their law, clients do not influence each other."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.statistics import assert_counts, assert_probability, shifted
from wirelessfl.learning.batches import Batches, Sampling, local_steps, plan_batches
from wirelessfl.streams import Streams


def batches_of(
    sampling: Sampling,
    clients: list[int],
    sizes: list[int],
    steps: list[int],
    batch_size: int,
    seed: int = 3,
    round_index: int = 4,
) -> Batches:
    stream = Streams(seed).nodes("batch_order", round_index, np.array(clients))
    return plan_batches(sampling, stream, np.array(sizes), np.array(steps), batch_size)


def own_batches(batches: Batches, row: int) -> list[NDArray[np.int64]]:
    return [batches.index[step, row, : batches.counts[step, row]] for step in range(int(batches.steps[row]))]


def test_local_steps() -> None:
    sizes = np.array([0, 1, 20, 21, 100])
    np.testing.assert_array_equal(local_steps(sizes, 20, 3, None), [0, 3, 3, 6, 15])
    np.testing.assert_array_equal(local_steps(sizes, 20, None, 7), [0, 7, 7, 7, 7])


def test_each_epoch_is_a_fresh_permutation_and_the_last_batch_is_smaller() -> None:
    batches = batches_of("shuffle", [8, 2, 5], [23, 20, 4], [9, 6, 3], 10)
    for row, (size, per_epoch) in enumerate([(23, 3), (20, 2), (4, 1)]):
        own = own_batches(batches, row)
        epochs = [np.concatenate(own[e * per_epoch : (e + 1) * per_epoch]) for e in range(3)]
        for order in epochs:
            np.testing.assert_array_equal(np.sort(order), np.arange(size))
        assert [len(b) for b in own[:per_epoch]] == {23: [10, 10, 3], 20: [10, 10], 4: [4]}[size]
        assert (size == 4) == np.array_equal(epochs[0], epochs[1])
    np.testing.assert_array_equal(batches.divisor[:2], batches.counts[:2])


def test_batches_of_all_samples_are_not_shuffled() -> None:
    sizes, steps = [7, 10, 1, 0], [4, 3, 2, 0]
    batches = batches_of("shuffle", [8, 2, 5, 1], sizes, steps, 10)
    for row, (size, own_steps) in enumerate(zip(sizes, steps, strict=True)):
        own = own_batches(batches, row)
        assert len(own) == own_steps
        for batch in own:
            np.testing.assert_array_equal(batch, np.arange(size))
    assert batches.index.shape == (4, 4, 10)
    places = np.arange(10) < batches.counts[:, :, None]
    np.testing.assert_array_equal(batches.index, np.where(places, np.arange(10), 0))


def test_one_large_client_among_small_ones_costs_its_own_samples() -> None:
    """Counted by the steps of the large one over those of an epoch of the small, 20,000 epochs of it were drawn."""
    sizes = np.array([100_000, 3])
    steps = local_steps(sizes, 10, 2, None)
    tracemalloc.start()
    try:
        batches = plan_batches("shuffle", Streams(1).nodes("batch_order", 1, np.arange(2)), sizes, steps, 10)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * 8 * 2 * 100_000  # a hundred vectors of two epochs, of 40,000 that it was
    for epoch in np.split(batches.index[:, 0], 2):
        np.testing.assert_array_equal(np.sort(epoch, axis=None), np.arange(100_000))


def test_steps_may_end_inside_an_epoch() -> None:
    own = own_batches(batches_of("shuffle", [1], [23], [5], 10), 0)
    assert [len(b) for b in own] == [10, 10, 3, 10, 10]
    assert len(np.unique(np.concatenate(own[3:]))) == 20


@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
def test_a_clients_batches_do_not_depend_on_who_else_is_trained(sampling: Sampling) -> None:
    clients, sizes, steps = [9, 4, 70_000_000_000, 2], [31, 23, 9, 1], [8, 6, 3, 2]
    together = batches_of(sampling, clients, sizes, steps, 8)
    for row in range(4):
        alone = batches_of(sampling, clients[row : row + 1], sizes[row : row + 1], steps[row : row + 1], 8)
        for ours, theirs in zip(own_batches(together, row), own_batches(alone, 0), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    assert together.counts[np.arange(8)[:, None] >= np.array(steps)].sum() == 0


@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
def test_batches_change_with_seed_round_and_client(sampling: Sampling) -> None:
    def first(**change: int) -> list[int]:
        arguments = {"seed": 3, "round_index": 4, **change}
        client = arguments.pop("client", 6)
        return [int(i) for i in own_batches(batches_of(sampling, [client], [50], [1], 25, **arguments), 0)[0]]

    draws = [first(), first(seed=4), first(round_index=5), first(client=7)]
    assert len({tuple(draw) for draw in draws}) == 4


def test_all_orders_of_an_epoch_are_equally_likely() -> None:
    trials = 4_800
    batches = batches_of("shuffle", list(range(trials)), [4] * trials, [2] * trials, 2, seed=shifted(1))
    orders = batches.index.transpose(1, 0, 2).reshape(trials, 4) @ 4 ** np.arange(4)
    _, counts = np.unique(orders, return_counts=True)
    assert len(counts) == 24
    assert_counts(counts, np.full(24, 1 / 24))


def test_poisson_batches_follow_their_law() -> None:
    clients, size, steps, batch_size = 200, 30, 50, 6
    batches = batches_of(
        "poisson", list(range(clients)), [size] * clients, [steps] * clients, batch_size, seed=shifted(2)
    )
    chosen = np.zeros((steps, clients, size), dtype=np.int64)
    for row in range(clients):
        for step, own in enumerate(own_batches(batches, row)):
            assert len(np.unique(own)) == len(own)
            chosen[step, row, own] = 1
    law = stats.binom(size, batch_size / size)
    bins = np.arange(1, 13)  # sizes below 1 and above 12 share a bin with these
    sizes = np.clip(batches.counts, 1, 12).ravel()
    expected = np.concatenate([[law.cdf(1)], law.pmf(bins[1:-1]), [law.sf(11)]])
    assert_counts(np.bincount(sizes, minlength=13)[1:], expected)
    # Every sample, the first and the last of the line included, and neighbours independently.
    for sample in range(size):
        assert_probability(int(chosen[:, :, sample].sum()), steps * clients, 0.2, 1e-6 / size)
    both = int((chosen[:, :, 1:] * chosen[:, :, :-1]).sum(axis=(0, 1))[::2].sum())
    assert_probability(both, steps * clients * 15, 0.04)
    across_steps = int((chosen[1::2, :, 0] * chosen[::2, :, -1]).sum())
    assert_probability(across_steps, steps // 2 * clients, 0.04)
    np.testing.assert_array_equal(batches.divisor, float(batch_size))


def test_poisson_with_more_batch_than_samples_takes_all() -> None:
    batches = batches_of("poisson", [1, 2], [5, 3], [4, 4], 5)
    np.testing.assert_array_equal(batches.counts, [[5, 3]] * 4)
    np.testing.assert_array_equal(batches.divisor, [[5.0, 3.0]] * 4)
    np.testing.assert_array_equal(batches.index[2, 1, :3], np.arange(3))


def test_poisson_batches_may_be_empty() -> None:
    batches = batches_of("poisson", [1], [40], [200], 1)
    assert batches.counts.min() == 0
    assert np.all(batches.divisor == 1.0)


def test_a_client_without_samples_takes_no_step() -> None:
    steps = local_steps(np.array([5, 0]), 2, 1, None)
    for sampling in ("shuffle", "poisson"):
        stream = Streams(1).nodes("batch_order", 0, np.array([3, 4]))
        batches = plan_batches(sampling, stream, np.array([5, 0]), steps, 2)
        assert batches.counts[:, 1].sum() == 0


@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
def test_a_block_may_have_no_samples_at_all(sampling: Sampling) -> None:
    batches = batches_of(sampling, [3, 4], [0, 0], [0, 0], 2)
    assert batches.index.shape[:2] == (0, 2)
    assert batches.counts.shape == (0, 2)


def test_clients_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="descending"):
        batches_of("shuffle", [1, 2], [5, 10], [1, 2], 5)
