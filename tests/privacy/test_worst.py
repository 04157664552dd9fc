"""Finding the worst client without composing all of them: no client is lost, no bound is too small."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.privacy.rounds import facts_of
from wirelessfl.privacy import DpSgdRelease, Ledger, SampledGaussian, Statement, composed_epsilon, recompute
from wirelessfl.privacy.account import EventCounts, Profile
from wirelessfl.privacy.accountants import cheap_upper_bounds
from wirelessfl.privacy.column import undominated

DELTA = 1e-5
EVENTS = st.tuples(
    st.builds(SampledGaussian, st.sampled_from([0.7, 1.0, 3.0]), st.sampled_from([0.01, 0.2])), st.integers(1, 50)
)
PROFILES = st.builds(Profile, st.sampled_from([0.0, 0.5, 4.0]), st.lists(EVENTS, max_size=2).map(tuple))


@given(st.lists(st.tuples(PROFILES, PROFILES), min_size=1, max_size=30))
def test_the_worst_of_two_routes_is_among_the_undominated(profiles: list[tuple[Profile, ...]]) -> None:
    def epsilon(profile: tuple[Profile, ...]) -> float:
        return min(composed_epsilon(route.mu_squared, route.uses, DELTA, "gdp") for route in profile)

    kept = undominated(profiles)
    assert max(map(epsilon, profiles)) == pytest.approx(max(epsilon(profiles[place]) for place in kept), rel=1e-12)


def test_equal_and_dominated_profiles_are_dropped() -> None:
    weak, strong = ((SampledGaussian(1.0, 0.1), 5),), ((SampledGaussian(0.9, 0.2), 5),)
    profiles = [(Profile(1.0, weak),), (Profile(1.0, strong),), (Profile(1.0, weak),), (Profile(2.0, ()),)]
    assert undominated(profiles).tolist() == [1, 3]


def test_many_profiles_are_compared_in_blocks() -> None:
    rng = np.random.default_rng(1)
    rates, counts = rng.uniform(0.01, 0.5, 700), rng.integers(1, 400, 700)
    profiles = [
        (Profile(0.0, ((SampledGaussian(1.0, float(q)), int(n)),)),) for q, n in zip(rates, counts, strict=True)
    ]
    expected = [
        place
        for place in range(700)
        if not np.any((rates >= rates[place]) & (counts >= counts[place]) & (np.arange(700) != place))
    ]
    assert undominated(profiles).tolist() == expected


@pytest.mark.parametrize("exchange", [False, True])
@pytest.mark.parametrize(("z", "q", "count"), [(0.6, 0.1, 20), (1.0, 0.01, 1000), (4.0, 0.5, 100), (0.05, 0.2, 3)])
def test_cheap_bounds_are_above_pld(z: float, q: float, count: int, exchange: bool) -> None:
    uses = ((SampledGaussian(z, q, exchange), count),)
    bound = cheap_upper_bounds([(0.3, uses)], DELTA)[0]
    exact = composed_epsilon(0.3, uses, DELTA, "pld")
    assert exact <= bound * (1 + 1e-4)
    if not exchange and z >= 1:
        assert bound < 1.4 * exact


def test_cheap_bound_at_integer_orders_equals_dp_accounting() -> None:
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant([*range(2, 65), 128, 256])
    accountant.compose(dp_accounting.PoissonSampledDpEvent(0.03, dp_accounting.GaussianDpEvent(1.1)), 300)
    accountant.compose(dp_accounting.GaussianDpEvent(7.0))
    bound = cheap_upper_bounds([(1 / 49, ((SampledGaussian(1.1, 0.03), 300),))], DELTA)[0]
    assert bound == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-9)


def test_beyond_sixty_four_different_clients_the_others_get_bounds() -> None:
    samples = np.arange(200, 300)
    facts = facts_of(samples)
    release = DpSgdRelease(0, np.arange(100), 1.0, np.full(100, 10), np.full(100, 20))
    ledger = recompute([release], facts, Statement(DELTA))
    published, accounted = ledger.client_epsilons()
    uses = [((SampledGaussian(1.0, 10 / n), 20),) for n in samples.tolist()]
    assert accounted.max() == ledger.epsilon_accounted() == composed_epsilon(0.0, uses[0], DELTA, "pld")
    assert published.max() == ledger.epsilon_published()
    for place in (1, 50, 99):
        exact = composed_epsilon(0.0, uses[place], DELTA, "pld")
        assert exact * (1 - 1e-4) <= accounted[place] <= 1.4 * exact


def test_event_counts_merge_what_was_added_in_pieces() -> None:
    rng = np.random.default_rng(6)
    events = [SampledGaussian(1.0 + k, 0.1) for k in range(5)]
    counts, dense = EventCounts(), np.zeros((300, 5), dtype=np.int64)
    for event in events:
        counts.event_id(event)
    for _ in range(100):
        slots, places, added = rng.permutation(300)[:120], rng.integers(0, 5, 120), rng.integers(1, 4, 120)
        counts.add(slots, places, added)
        np.add.at(dense, (slots, places), added)
    asked = np.array([299, 0, 17])
    expected = [tuple((events[k], int(dense[slot, k])) for k in range(5) if dense[slot, k]) for slot in asked]
    assert counts.uses_of(asked) == expected
    slots, places, total = counts.entries()
    np.testing.assert_array_equal(dense[slots, places], total)
    assert total.sum() == dense.sum()


@pytest.mark.slow
def test_reading_in_between_does_not_change_the_worst_client() -> None:
    rng = np.random.default_rng(12)
    facts = facts_of(rng.integers(50, 200, 12))
    read, unread = Ledger(facts, Statement(DELTA)), Ledger(facts, Statement(DELTA))
    for m in range(3):
        clients = np.sort(rng.choice(12, 5, replace=False))
        release = DpSgdRelease(m, clients, 1.0 + m / 10, np.full(5, 10), np.full(5, 5))
        read.add(release)
        read.epsilon_accounted()
        unread.add(release)
    assert read.epsilon_accounted() == pytest.approx(unread.epsilon_accounted(), rel=2e-4)
    assert unread.epsilon_accounted() == pytest.approx(unread.client_epsilons()[1].max(), rel=2e-4)
