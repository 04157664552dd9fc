"""The ledger itself: composition, sparse state, cost per round, bad input."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.privacy.rounds import air_release, facts_of
from wirelessfl.privacy import AirRelease, BareRelease, Ledger, PrivacyFacts, Statement, gaussian_epsilon, recompute

DELTA = 1e-5
FACTS = facts_of([20, 30, 50])
STATEMENT = Statement(DELTA, unit="client")


def some_rounds(count: int = 12) -> list[AirRelease]:
    rng = np.random.default_rng(3)
    return [
        air_release(
            FACTS, np.flatnonzero(rng.random(3) < 0.7), m, accounted_noise_std=rng.uniform(0.5, 2), limit=rng.random()
        )
        for m in range(count)
    ]


def test_gaussians_compose_by_the_sum_of_squares() -> None:
    ledger = Ledger(FACTS, STATEMENT)
    mu_squared = np.zeros(3)
    for release in some_rounds():
        ledger.add(release)
        mu_squared[release.clients] += (release.received_bound / release.accounted_noise_std) ** 2
        expected = gaussian_epsilon(np.sqrt(mu_squared), DELTA)
        assert ledger.epsilon_accounted() == pytest.approx(expected.max(), rel=1e-12)
        np.testing.assert_allclose(ledger.client_epsilons()[1], expected, rtol=1e-12)


def test_epsilon_grows_with_rounds_and_falls_with_delta() -> None:
    rounds = some_rounds()
    by_round = [recompute(rounds[:count], FACTS, STATEMENT).epsilon_accounted() for count in range(len(rounds) + 1)]
    assert by_round[0] == 0
    assert np.all(np.diff(by_round) >= 0)
    assert by_round[-1] > by_round[1]
    by_delta = [recompute(rounds, FACTS, Statement(d, unit="client")).epsilon_accounted() for d in (1e-9, 1e-5, 1e-2)]
    assert np.all(np.diff(by_delta) < 0)


def test_recompute_from_records_equals_the_running_ledger() -> None:
    rounds = some_rounds()
    running = Ledger(FACTS, STATEMENT)
    for release in rounds:
        running.add(release)
        running.epsilon_accounted()
    again = recompute(rounds, FACTS, STATEMENT)
    assert again.epsilon_published() == running.epsilon_published()
    assert again.epsilon_accounted() == running.epsilon_accounted()
    np.testing.assert_array_equal(again.client_epsilons(), running.client_epsilons())
    assert again.why_different() == running.why_different()


def test_restored_state_continues_to_the_same_bits() -> None:
    rounds = some_rounds()
    whole = recompute(rounds, FACTS, STATEMENT)
    first = recompute(rounds[:5], FACTS, STATEMENT)
    resumed = Ledger(FACTS, STATEMENT)
    resumed.restore(first.state())
    assert resumed.epsilon_accounted() == first.epsilon_accounted()
    for release in rounds[5:]:
        resumed.add(release)
    assert resumed.epsilon_accounted() == whole.epsilon_accounted()
    assert resumed.epsilon_published() == whole.epsilon_published()
    np.testing.assert_array_equal(resumed.client_epsilons(), whole.client_epsilons())
    assert resumed.why_different() == whole.why_different()


def test_state_is_a_copy_of_plain_arrays() -> None:
    ledger = recompute(some_rounds(3), FACTS, STATEMENT)
    state = ledger.state()
    before = {name: array.copy() for name, array in state.items()}
    assert all(array.dtype.kind in "iufS" for array in state.values())
    for release in some_rounds(6)[3:]:
        ledger.add(release)
    for name, array in state.items():
        np.testing.assert_array_equal(array, before[name])


def test_a_million_registered_clients_cost_what_the_active_ones_cost() -> None:
    """State holds touched clients only, and no round allocates even one byte a registered client."""
    registered, active, rounds = 1_000_000, 50, 40
    samples = np.full(registered, 10)
    facts = PrivacyFacts(samples, samples / samples.sum(), int(samples.sum()))
    rng = np.random.default_rng(0)
    ledger = Ledger(facts, Statement(DELTA))
    cohorts = [np.sort(rng.choice(registered, active, replace=False, shuffle=False)) for _ in range(rounds)]
    slots = [
        air_release(facts, clients, m, accounted_noise_std=1e-5, effective_noise_std=1e-5)
        for m, clients in enumerate(cohorts)
    ]
    tracemalloc.start()
    for release in slots:
        ledger.add(release)
        ledger.epsilon_accounted()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < registered
    assert sum(array.size for array in ledger.state().values()) < 20 * active * rounds
    assert 0 < ledger.epsilon_accounted() < math.inf


def test_bare_release_has_no_guarantee() -> None:
    ledger = recompute([BareRelease(0, np.array([1]))], FACTS, STATEMENT)
    published, accounted = ledger.client_epsilons()
    np.testing.assert_array_equal(published, [0, math.inf, 0])
    np.testing.assert_array_equal(accounted, [0, math.inf, 0])
    assert any("nothing adds noise" in sentence for sentence in ledger.why_different())


def test_empty_rounds_and_empty_ledgers() -> None:
    ledger = Ledger(FACTS, STATEMENT)
    assert ledger.epsilon_published() == ledger.epsilon_accounted() == 0
    np.testing.assert_array_equal(ledger.client_epsilons(), np.zeros((2, 3)))
    ledger.add(air_release(FACTS, []))
    assert ledger.epsilon_accounted() == 0
    ledger.restore(ledger.state())
    assert ledger.epsilon_accounted() == 0


@pytest.mark.parametrize(("clients", "message"), [([3], "outside"), ([-1], "outside"), ([1, 1], "twice")])
def test_unknown_or_repeated_clients_are_refused(clients: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ledger(FACTS, STATEMENT).add(BareRelease(0, np.array(clients)))


def test_clients_without_samples_release_nothing() -> None:
    facts = PrivacyFacts(np.array([0, 10]), np.array([0.0, 1.0]), 10)
    ledger = recompute([air_release(facts, [1])], facts, STATEMENT)
    assert ledger.client_epsilons()[1][0] == 0
    with pytest.raises(ValueError, match="without samples"):
        ledger.add(BareRelease(1, np.array([0])))


def test_mixed_theorems_are_refused() -> None:
    ledger = recompute([air_release(FACTS, [0])], FACTS, STATEMENT)
    with pytest.raises(ValueError, match="mix"):
        ledger.add(air_release(FACTS, [0], 1, theorem="privacy_for_free"))


@pytest.mark.parametrize("column", ["mu_squared", "unproven"])
@pytest.mark.parametrize("nonsense", [np.array(0.0), np.zeros((2, 2)), np.zeros(1)], ids=["scalar", "table", "short"])
def test_what_is_no_column_of_clients_is_not_restored(column: str, nonsense: NDArray[np.float64]) -> None:
    """Behind a valid checksum it was taken up, and failed or counted wrong in the next round."""
    facts = facts_of([100, 100])
    state = dict(recompute([air_release(facts, [0, 1])], facts, STATEMENT).state())
    name = next(key for key in state if key.startswith("accounted/") and key.endswith(f"/{column}"))
    state[name] = nonsense
    with pytest.raises(ValueError, match="one entry for each client"):
        Ledger(facts, STATEMENT).restore(state)
