"""Every partition is one, and follows its law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tests.statistics import assert_mean, assert_probability, shifted, standard_errors
from wirelessfl.errors import DataError
from wirelessfl.learning.partition import (
    Partition,
    check_shares,
    classes_partition,
    dirichlet_partition,
    iid_partition,
    natural_partition,
    padded_positions,
    power_law_partition,
)

Labels = NDArray[np.int64]
Scheme = Callable[[Labels, int, np.random.Generator], Partition]

COVERING: dict[str, Scheme] = {
    "iid": lambda labels, clients, generator: iid_partition(len(labels), clients, generator),
    "power_law": lambda labels, clients, generator: power_law_partition(len(labels), clients, 1.3, generator),
    "dirichlet": lambda labels, clients, generator: dirichlet_partition(labels, clients, 0.3, generator),
    "dirichlet, one class a client": lambda labels, clients, generator: dirichlet_partition(
        labels, clients, 1e-4, generator
    ),
}

labels_strategy = st.lists(st.sampled_from([0, 1, 2, 5, 9]), min_size=1, max_size=80).map(np.array)


def random(seed: int) -> np.random.Generator:
    return np.random.default_rng(shifted(seed))


def assert_disjoint_and_nonempty(partition: Partition, num_samples: int, num_clients: int) -> None:
    assert len(partition.sizes) == num_clients
    assert partition.offsets.dtype == partition.order.dtype == np.int64
    assert partition.offsets[0] == 0
    assert partition.offsets[-1] == len(partition.order)
    assert (partition.sizes >= 1).all()
    assert len(set(partition.order.tolist())) == len(partition.order)
    assert set(partition.order.tolist()) <= set(range(num_samples))


@pytest.mark.parametrize("scheme", COVERING.values(), ids=COVERING.keys())
@given(labels=labels_strategy, data=st.data())
def test_is_a_partition_of_all_samples(scheme: Scheme, labels: Labels, data: st.DataObject) -> None:
    clients = data.draw(st.integers(1, len(labels)))
    seed = data.draw(st.integers(0, 1000))
    partition = scheme(labels, clients, np.random.default_rng(seed))
    assert_disjoint_and_nonempty(partition, len(labels), clients)
    assert len(partition.order) == len(labels)
    again = scheme(labels, clients, np.random.default_rng(seed))
    np.testing.assert_array_equal(again.order, partition.order)
    np.testing.assert_array_equal(again.offsets, partition.offsets)


@pytest.mark.parametrize("scheme", COVERING.values(), ids=COVERING.keys())
def test_another_generator_gives_another_partition(scheme: Scheme) -> None:
    labels = np.arange(500) % 7
    first, second = (scheme(labels, 20, random(seed)) for seed in (1, 2))
    assert not np.array_equal(first.order, second.order)


@pytest.mark.parametrize("scheme", COVERING.values(), ids=COVERING.keys())
def test_more_clients_than_samples_is_an_error(scheme: Scheme) -> None:
    with pytest.raises(DataError, match=r"clients\.count: 4 clients cannot share 3 training samples"):
        scheme(np.array([0, 1, 2]), 4, random(0))
    with pytest.raises(ValueError, match="num_clients must be ≥ 1"):
        scheme(np.array([0, 1, 2]), 0, random(0))


def test_rows_and_padding() -> None:
    partition = Partition(np.array([0, 2, 3, 6]), np.array([10, 11, 12, 13, 14, 15]))
    assert [partition.rows(client).tolist() for client in range(3)] == [[10, 11], [12], [13, 14, 15]]
    assert partition.padded_rows(np.array([2, 0])).tolist() == [[13, 14, 15], [10, 11, 0]]
    assert partition.padded_rows(np.array([1])).tolist() == [[12]]
    assert partition.padded_rows(np.array([], dtype=np.int64)).shape == (0, 0)
    assert padded_positions(np.array([4, 0]), np.array([1, 2])).tolist() == [[4, -1], [0, 1]]


@given(samples=st.integers(1, 500), data=st.data())
def test_iid_sizes_differ_by_at_most_one(samples: int, data: st.DataObject) -> None:
    clients = data.draw(st.integers(1, samples))
    sizes = iid_partition(samples, clients, np.random.default_rng(0)).sizes
    assert sizes.max() - sizes.min() <= 1


def test_iid_gives_every_client_every_sample_equally_often() -> None:
    generator, trials = random(3), 5000
    hits = sum(7 in iid_partition(40, 8, generator).rows(2) for _ in range(trials))
    assert_probability(hits, trials, 1 / 8)


@given(samples=st.integers(1, 2000), exponent=st.floats(0, 5), data=st.data())
def test_power_law_sizes_by_rank(samples: int, exponent: float, data: st.DataObject) -> None:
    clients = data.draw(st.integers(1, min(samples, 60)))
    sizes = np.sort(power_law_partition(samples, clients, exponent, np.random.default_rng(0)).sizes)[::-1]
    weight = np.array([rank**-exponent for rank in range(1, clients + 1)])
    exact = 1 + (samples - clients) * weight / weight.sum()
    assert np.abs(sizes - exact).max() <= 1  # rounded at both ends


def test_power_law_ranks_are_dealt_at_random() -> None:
    generator, trials = random(4), 3000
    hits = sum(int(power_law_partition(100, 10, 1.0, generator).sizes.argmax()) == 0 for _ in range(trials))
    assert_probability(hits, trials, 1 / 10)


@pytest.mark.parametrize("exponent", [-1.0, float("nan"), float("inf")])
def test_power_law_refuses(exponent: float) -> None:
    with pytest.raises(ValueError, match="exponent"):
        power_law_partition(10, 2, exponent, random(0))


@pytest.mark.parametrize("alpha", [0.1, 1.0, 100.0])
def test_dirichlet_shares_have_the_moments_of_the_law(alpha: float) -> None:
    """The share of a class that a client gets has mean 1/K and variance (1/K)(1 − 1/K)/(K·alpha + 1)."""
    clients, per_class, trials, generator = 5, 2000, 400, random(5)
    labels = np.repeat(np.arange(4), per_class)
    shares = np.empty((trials, 4))
    for trial in range(trials):
        rows = dirichlet_partition(labels, clients, alpha, generator).rows(2)
        shares[trial] = np.bincount(labels[rows], minlength=4) / per_class
    law = stats.beta(alpha, (clients - 1) * alpha)  # the marginal of Dir(alpha·1_K)
    variance = (1 / clients) * (1 - 1 / clients) / (clients * alpha + 1)
    assert law.var() == pytest.approx(variance)
    rounding = 1 / per_class  # a share is cut at whole samples, and mending an empty client moves one
    assert abs(shares.mean() - 1 / clients) <= standard_errors() * np.sqrt(variance / shares.size) + rounding
    fourth = float(law.expect(lambda x: (x - law.mean()) ** 4))
    spread = np.sqrt((fourth - variance**2) / shares.size)
    found = np.mean((shares - 1 / clients) ** 2)
    assert abs(found - variance) <= standard_errors() * spread + 2 * rounding


def test_dirichlet_limits() -> None:
    labels = np.repeat(np.arange(4), 500)
    even = dirichlet_partition(labels, 10, 1e9, random(6))
    for client in range(10):
        counts = np.bincount(labels[even.rows(client)])
        assert np.abs(counts - 50).max() <= 1
    lonely = dirichlet_partition(labels, 10, 1e-6, random(6))
    assert np.sort(lonely.sizes)[:6].tolist() == [1] * 6  # four classes have at most four holders; six are mended
    assert lonely.sizes.sum() == 2000


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_dirichlet_refuses(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        dirichlet_partition(np.zeros(10, dtype=np.int64), 2, alpha, random(0))


@given(labels=labels_strategy, data=st.data())
def test_classes_gives_everyone_exactly_that_many(labels: Labels, data: st.DataObject) -> None:
    present = np.unique(labels)
    per_client = data.draw(st.integers(1, len(present)))
    clients = data.draw(st.integers(1, len(labels)))
    most = np.minimum(np.unique(labels, return_counts=True)[1], clients).sum()
    assume(clients * per_client <= most)
    partition = classes_partition(labels, clients, per_client, np.random.default_rng(data.draw(st.integers(0, 100))))
    assert_disjoint_and_nonempty(partition, len(labels), clients)
    for client in range(clients):
        assert len(np.unique(labels[partition.rows(client)])) == per_client
    if clients * per_client >= len(present):
        assert len(partition.order) == len(labels)
    else:
        unused = np.setdiff1d(labels, labels[partition.order])
        assert len(partition.order) == np.isin(labels, unused, invert=True).sum()


@pytest.mark.parametrize(("clients", "per_client"), [(50, 5), (10, 2), (20, 1), (7, 10), (100, 3)])
def test_classes_shares_of_equal_classes_are_even(clients: int, per_client: int) -> None:
    """Each class is cut evenly among ⌊h⌋ or ⌈h⌉ holders, h = K·classes_per_client/10."""
    labels = np.repeat(np.arange(10), 840)
    sizes = classes_partition(labels, clients, per_client, random(7)).sizes
    holders = clients * per_client / 10
    assert sizes.min() >= per_client * np.floor(840 / np.ceil(holders))
    assert sizes.max() <= per_client * np.ceil(840 / np.floor(holders))


def test_classes_deals_odd_samples_to_the_lightest() -> None:
    """Where everyone holds every class, sizes differ by at most one, however the classes divide."""
    labels = np.repeat(np.arange(10), 841)
    sizes = classes_partition(labels, 7, 10, random(7)).sizes
    assert sizes.max() - sizes.min() <= 1


def test_classes_gives_a_large_class_more_holders() -> None:
    labels = np.repeat([0, 1, 2], [100, 200, 300])
    partition = classes_partition(labels, 60, 1, random(8))
    held = np.bincount([labels[partition.rows(client)[0]] for client in range(60)])
    assert held.tolist() == [10, 20, 30]
    assert partition.sizes.tolist() == [10] * 60


def test_classes_mixes_which_classes_meet() -> None:
    """Which of the ten classes a client holds is random: class 0 meets every other one equally often."""
    labels, generator, trials = np.repeat(np.arange(10), 30), random(9), 2000
    meetings = np.zeros(10)
    for _ in range(trials):
        met = np.unique(labels[classes_partition(labels, 10, 2, generator).rows(4)])
        if 0 in met:
            meetings[met] += 1
    assert_probability(int(meetings[0]), trials, 2 / 10)
    for other in range(1, 10):
        assert_probability(int(meetings[other]), int(meetings[0]), 1 / 9)


def test_classes_treats_all_clients_alike() -> None:
    """Ten classes with two holders each make ten pairs of holders, equally often any of the 45 pairs of clients."""
    labels, generator, trials = np.repeat(np.arange(10), 30), random(11), 2000
    shared = np.empty(trials)
    for trial in range(trials):
        partition = classes_partition(labels, 10, 2, generator)
        shared[trial] = len(np.intersect1d(labels[partition.rows(0)], labels[partition.rows(1)]))
    assert_mean(shared, 10 / 45, float(shared.std()))


@pytest.mark.parametrize("per_client", [0, 4, -1])
def test_classes_refuses_counts_that_do_not_exist(per_client: int) -> None:
    with pytest.raises(DataError, match=rf"classes_per_client: found {per_client}; allowed: 1 to 3, the classes"):
        classes_partition(np.array([0, 2, 9] * 5), 3, per_client, random(0))


def test_classes_refuses_what_the_samples_do_not_allow() -> None:
    with pytest.raises(DataError, match=r"found 6 shares of classes in all, .* allowed: 4"):
        classes_partition(np.array([0, 0, 0, 0, 1]), 3, 2, random(0))
    with pytest.raises(DataError, match=r"clients\.count"):
        classes_partition(np.array([0, 1]), 3, 1, random(0))


def test_natural_follows_the_owners() -> None:
    partition = natural_partition(np.array([7, 3, 7, 9, 3, 7]), 2)
    assert partition.rows(0).tolist() == [1, 4]
    assert partition.rows(1).tolist() == [0, 2, 5]
    assert len(partition.sizes) == 2
    assert natural_partition(np.array([7, 3, 7, 9, 3, 7]), 3).rows(2).tolist() == [3]


def test_natural_needs_owners_and_enough_of_them() -> None:
    with pytest.raises(DataError, match="does not say who its samples belong to"):
        natural_partition(None, 2)
    with pytest.raises(DataError, match="found 4 clients; allowed: at most 3, the natural owners"):
        natural_partition(np.array([7, 3, 9]), 4)


def test_a_class_has_the_mean_size_of_its_share() -> None:
    """Over many draws a client's size under label skew is N/K on average, whatever alpha."""
    labels, generator = np.arange(600) % 3, random(10)
    sizes = np.array([dirichlet_partition(labels, 6, 0.5, generator).sizes[1] for _ in range(2000)])
    assert_mean(sizes, 100, float(sizes.std()))


@pytest.mark.parametrize(
    ("offsets", "rows", "says"),
    [
        ([0, 1, 2], np.arange(2), "offsets are a list; allowed: a NumPy array of one dimension"),
        (np.arange(3), [0, 1], "rows are a list; allowed: a NumPy array of one dimension"),
        (None, np.arange(2), "offsets are a NoneType; allowed"),
        (np.arange(3)[:, None], np.arange(2), "offsets are a ndarray; allowed: a NumPy array of one dimension"),
        (np.arange(3), np.array([0, 10**13]), "rows must be different numbers from 0 to 3"),
        (np.arange(3), np.array([0, -1]), "rows must be different numbers from 0 to 3"),
        (np.arange(3), np.array([1, 1]), "rows must be different numbers from 0 to 3"),
    ],
)
def test_shares_of_other_types_and_rows_that_are_not_there_are_refused(offsets: Any, rows: Any, says: str) -> None:
    """Lists ended in an AttributeError, and a row of 10^13 in an array of as many counts."""
    with pytest.raises((TypeError, ValueError), match=says):
        check_shares(Partition(offsets, rows), 4, 2)
