"""Several guarantees for one client: the smaller valid one counts, and the ledger says which."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.privacy.rounds import air_release, facts_of
from wirelessfl.privacy import BareRelease, DpSgdRelease, Ledger, Statement, gaussian_epsilon, recompute

DELTA = 1e-5
FACTS = facts_of([40, 60])
SAMPLE = Statement(DELTA)
EVERYONE = np.array([0, 1])


def local(round_index: int, multiplier: float, clients: np.ndarray = EVERYONE) -> DpSgdRelease:
    count = len(clients)
    return DpSgdRelease(round_index, clients, multiplier, np.full(count, 10), np.full(count, 2))


def epsilons(*releases: object, statement: Statement = SAMPLE) -> np.ndarray:
    return recompute(releases, FACTS, statement).client_epsilons()[1]  # type: ignore[arg-type]


def test_local_noise_over_the_air_takes_the_smaller_guarantee_for_each_client() -> None:
    """Strong local noise, and channel noise that suffices for client 0 alone."""
    noise = np.array([5.0, 0.01])
    air, sgd = air_release(FACTS, EVERYONE, accounted_noise_std=noise), local(0, 1.0)
    both, by_air, by_noise = epsilons(sgd, air), epsilons(air), epsilons(sgd)
    np.testing.assert_array_equal(both, np.minimum(by_air, by_noise))
    assert by_air[0] < by_noise[0]
    assert by_noise[1] < by_air[1]
    ledger = recompute([sgd, air], FACTS, SAMPLE)
    assert ledger.epsilon_accounted() == both.max()
    assert any("that from the noise that every client adds" in sentence for sentence in ledger.why_different())


def test_the_published_column_takes_the_smaller_claim_too() -> None:
    air, sgd = air_release(FACTS, EVERYONE), local(0, 1.0)
    claims = [recompute([release], FACTS, SAMPLE).epsilon_published() for release in (air, sgd)]
    assert recompute([air, sgd], FACTS, SAMPLE).epsilon_published() == min(claims)


def test_an_upload_without_noise_leaves_the_local_guarantee() -> None:
    assert np.array_equal(epsilons(local(0, 1.0), BareRelease(0, EVERYONE)), epsilons(local(0, 1.0)))


def test_an_individual_adversary_leaves_the_local_guarantee() -> None:
    individual = Statement(DELTA, adversary="individual")
    air = air_release(FACTS, EVERYONE, accounted_noise_std=5.0)
    np.testing.assert_array_equal(
        epsilons(local(0, 1.0), air, statement=individual), epsilons(local(0, 1.0), statement=individual)
    )


def test_a_route_that_left_out_a_participation_is_no_guarantee() -> None:
    """Client 1 uploads without local noise in round 1: only the channel covers all its participations."""
    air = [air_release(FACTS, EVERYONE, m) for m in range(2)]
    mixed = epsilons(local(0, 5.0), air[0], local(1, 5.0, np.array([0])), air[1])
    np.testing.assert_array_equal(mixed, [epsilons(local(0, 5.0), local(1, 5.0))[0], epsilons(*air)[1]])


def test_no_route_for_one_client_is_infinite_and_said_so() -> None:
    ledger = recompute([local(0, 5.0), BareRelease(1, EVERYONE)], FACTS, SAMPLE)
    assert ledger.epsilon_accounted() == math.inf
    assert any("None of the routes" in sentence for sentence in ledger.why_different())


def test_two_releases_of_one_route_in_a_round_are_one_participation() -> None:
    """The multiplier changes within a round: the local route still covers it."""
    releases = [local(0, 2.0), local(0, 3.0), air_release(FACTS, EVERYONE, accounted_noise_std=1e-4)]
    np.testing.assert_array_equal(epsilons(*releases), epsilons(*releases[:2]))


@pytest.mark.slow
def test_worst_client_is_that_of_all_clients_whatever_the_order_of_reading() -> None:
    """Reading after every release equals reading once, for many clients with different batches and shares."""
    rng = np.random.default_rng(8)
    facts = facts_of(rng.integers(20, 90, 12))
    ledger = Ledger(facts, SAMPLE)
    for m in range(3):
        clients = np.sort(rng.choice(12, 6, replace=False))
        sgd = DpSgdRelease(m, clients, 1.0 + m / 5, rng.integers(5, 20, 6), rng.integers(1, 4, 6))
        ledger.add(sgd)
        ledger.add(air_release(facts, clients, m, accounted_noise_std=rng.uniform(0.02, 0.4, 6)))
        worst = ledger.epsilon_accounted()
        assert worst == ledger.client_epsilons()[1].max()
        assert ledger.epsilon_published() == ledger.client_epsilons()[0].max()


def test_two_routes_of_plain_gaussians_equal_their_sums_of_squares() -> None:
    """Full-batch steps are plain Gaussians: two sums of squares a client, the smaller epsilon, the worst client."""
    rng = np.random.default_rng(9)
    facts = facts_of(rng.integers(20, 90, 200))
    ledger = Ledger(facts, SAMPLE)
    by_route, worst_so_far = np.zeros((2, 200)), 0.0
    for m in range(6):
        clients, steps = np.sort(rng.choice(200, 120, replace=False)), rng.integers(1, 4, 120)
        air = air_release(facts, clients, m, accounted_noise_std=rng.uniform(0.001, 0.1, 120))
        sgd = DpSgdRelease(m, clients, 5.0, facts.samples[clients], steps)
        # One sample can change an update by the diameter of the ball.
        by_route[0, clients] += (2 * air.received_bound / air.accounted_noise_std) ** 2
        by_route[1, clients] += steps / 5.0**2
        for release in (air, sgd):
            ledger.add(release)
        expected = np.minimum(*gaussian_epsilon(np.sqrt(by_route), DELTA))
        np.testing.assert_allclose(ledger.client_epsilons()[1], expected, rtol=1e-12)
        worst_so_far = max(worst_so_far, expected.max())
        assert ledger.epsilon_accounted() == pytest.approx(worst_so_far, rel=1e-12)
