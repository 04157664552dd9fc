"""What selecting clients at random earns, by the exact divergences of the mixtures that an observer sees.

One client's part of the sum has norm 1, and so has the noise; what others add is chosen by the adversary. With a
quorum, a selected client pushes another one out: whether it is selected moves the sum, whatever its data.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, norm

from tests.privacy.rounds import facts_of
from tests.speed import rest_slow
from wirelessfl.privacy import (
    ServerNoiseRelease,
    Statement,
    gaussian_epsilon,
    recompute,
    release_from_values,
    round_values,
    settings,
)
from wirelessfl.privacy.releases import NoAmplification

DELTA, CELL = 1e-5, 2e-3
Mixture = dict[float, float]
"""Means of Gaussians of standard deviation 1, and the probability of each."""


def masses(mixture: Mixture) -> NDArray[np.float64]:
    """The probabilities of the cells of a fine grid."""
    edges = np.arange(-14.0, 14.0, CELL)
    cumulative = sum(share * norm.cdf(edges - mean) for mean, share in mixture.items())
    return np.diff(np.asarray(cumulative))


def exact_epsilon(first: Mixture, second: Mixture, rounds: int = 1) -> float:
    """ε at δ of independent rounds, by the law of the privacy loss on a grid, either way round."""
    return max(_one_way(first, second, rounds), _one_way(second, first, rounds))


def _one_way(first: Mixture, second: Mixture, rounds: int) -> float:
    p, q = masses(first), masses(second)
    there = (p > 1e-30) & (q > 1e-30)
    loss = np.log(p[there] / q[there])
    size, width = 2**18, 1e-3
    law = np.bincount(np.round(loss / width).astype(int) % size, weights=p[there], minlength=size)
    composed = np.fft.irfft(np.fft.rfft(law) ** rounds, size)
    total = np.fft.fftfreq(size, 1 / size) * width
    low, high = 0.0, 100.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        above = total > middle
        hockey_stick = float(np.sum(composed[above] * -np.expm1(middle - total[above])))
        low, high = (middle, high) if hockey_stick > DELTA else (low, middle)
    return high


def ledger_epsilon(
    clients: int,
    rate: float,
    rounds: int,
    unamplified: NoAmplification | None,
    adjacency: str = "add_remove",
    scheme: Any = "poisson",
    multiplier: float = 1.0,
    colluding: int = 0,
) -> float:
    """What the ledger charges for so many rounds, whoever took part: here nobody."""
    statement = Statement(DELTA, "client", adjacency, "observer", colluding)  # type: ignore[arg-type]
    noise_std = multiplier / (clients * rate)
    nobody = np.zeros(0, dtype=np.int64)
    releases = [
        ServerNoiseRelease(m, nobody, multiplier, noise_std, 1.0, rate, scheme, unamplified=unamplified)
        for m in range(rounds)
    ]
    return recompute(releases, facts_of([10] * clients), statement).epsilon_accounted()


@pytest.mark.parametrize(("clients", "rate", "rounds", "golden"), [(2, 0.05, 200, 4.766), (10, 0.1, 40, 4.688)])
def test_rounds_that_are_all_noised_cost_what_poisson_sampling_says(
    clients: int, rate: float, rounds: int, golden: float
) -> None:
    found = ledger_epsilon(clients, rate, rounds, None)
    assert found == pytest.approx(golden, abs=1e-3)
    # The worst that others can do is nothing: their part adds noise to what is seen.
    assert found == pytest.approx(exact_epsilon({0.0: 1 - rate, 1.0: rate}, {0.0: 1.0}, rounds), rel=5e-3)


def test_empty_rounds_that_add_no_noise_are_worth_more_than_twice_that() -> None:
    """Two clients at rate 0.05: where a round without clients adds no noise, all others are known to hold one.

    In a released round the client is there with probability 0.51, not 0.05.
    """
    rate, released = 0.05, 200
    anybody = 1 - (1 - rate) ** 2
    seen = int(np.round(released * anybody))
    share = rate / anybody
    exact = exact_epsilon({0.0: 1 - share, 1.0: share}, {0.0: 1.0}, seen)
    assert exact > 2 * ledger_epsilon(2, rate, released, None)


RATE, ROUNDS, CLIENTS = 0.2, 20, 20
OTHERS: Mixture = {-1.0: 1 - RATE}
"""The sum where the fast client is not selected: another one is pushed in, who sends the opposite of its update."""


def joined(mixture: Mixture, mean: float, share: float) -> Mixture:
    """A mixture with one more part."""
    return {**mixture, mean: mixture.get(mean, 0.0) + share}


@pytest.mark.parametrize(
    ("neighbour", "adjacency", "golden", "truth"),
    [
        (joined(OTHERS, 0.0, RATE), "add_remove", 28.37, 12.3),
        ({-1.0: 1.0}, "replace", 77.3, 24.5),  # the client was never registered
    ],
)
def test_a_quorum_earns_no_amplification(neighbour: Mixture, adjacency: str, golden: float, truth: float) -> None:
    exact = exact_epsilon(joined(OTHERS, 1.0, RATE), neighbour, ROUNDS)
    assert exact == pytest.approx(truth, abs=0.1)
    assert ledger_epsilon(CLIENTS, RATE, ROUNDS, None) < exact  # amplification would not hold
    charged = ledger_epsilon(CLIENTS, RATE, ROUNDS, NoAmplification.QUORUM, adjacency)
    assert exact <= charged == pytest.approx(golden, abs=0.05)


Selections = list[tuple[tuple[int, ...], float]]


def independently(clients: int, rate: float) -> Selections:
    """All selections of Poisson sampling, with their probabilities."""
    every = [tuple(np.flatnonzero(taken).tolist()) for taken in np.ndindex(*(2,) * clients)]
    return [(taken, rate ** len(taken) * (1 - rate) ** (clients - len(taken))) for taken in every]


def so_many(clients: int, count: int) -> Selections:
    """All selections of a fixed number of clients, with their probabilities."""
    every = list(combinations(range(clients), count))
    return [(taken, 1 / len(every)) for taken in every]


def in_time(taken: tuple[int, ...], done: NDArray[np.float64], quorum: int) -> list[int]:
    """Whose updates are summed: who is there (a finite time), and ready when so many are; all of an instant are."""
    closes = np.sort(done[list(taken)])[min(quorum, len(taken)) - 1] if taken else 0.0
    return [client for client in taken if done[client] <= closes and np.isfinite(done[client])]


@pytest.mark.parametrize("quorum", [4, 2, 1])
@pytest.mark.parametrize("scheme", ["poisson", "uniform"])
@pytest.mark.parametrize("seed", rest_slow(range(3)))
def test_no_choice_of_the_others_costs_more_than_is_charged(seed: int, scheme: Any, quorum: int) -> None:
    """Four clients, two of them ready at one instant and some away, and every neighbour, over all selections."""
    generator = np.random.default_rng(seed)
    clients = 4
    updates, done = generator.choice([-1.0, -0.3, 1.0], clients), generator.permutation([1.0, 2.0, 2.0, 3.0])
    done[generator.uniform(size=clients) < 0.2] = np.inf
    rate = float(generator.uniform(0.1, 0.9)) if scheme == "poisson" else 0.5
    selections = independently(clients, rate) if scheme == "poisson" else so_many(clients, 2)

    def mixture(values: NDArray[np.float64]) -> Mixture:
        result: Mixture = {}
        for taken, probability in selections:
            result = joined(result, float(values[in_time(taken, done, quorum)].sum()), probability)
        return result

    unamplified = None if quorum == clients or (scheme, quorum) == ("uniform", 2) else NoAmplification.QUORUM
    for client in range(clients):
        zeroed, opposite = updates.copy(), updates.copy()
        zeroed[client], opposite[client] = 0.0, -updates[client]
        for other, adjacency in ((zeroed, "add_remove"), (opposite, "replace")):
            exact = exact_epsilon(mixture(updates), mixture(other))
            assert exact <= ledger_epsilon(clients, rate, 1, unamplified, adjacency, scheme) * (1 + 1e-3)


@pytest.mark.parametrize(("clients", "rounds"), rest_slow([(50, 20), (100, 50), (100, 1)]))
def test_clients_who_collude_know_who_of_them_was_selected(clients: int, rounds: int) -> None:
    """One client a round, all but one of them collude: they know in which rounds the honest one was there.

    The number of those is binomial, and over each of them its update is seen under noise 4.
    """
    there = np.arange(1, rounds + 1)
    mu, share = np.sqrt(there) / 4.0, binom.pmf(there, rounds, 1 / clients)

    def delta_at(epsilon: float) -> float:
        seen = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return float(share @ seen)

    exact = float(brentq(lambda epsilon: delta_at(epsilon) - DELTA, 0.0, 50.0))
    charged = [
        ledger_epsilon(clients, 1 / clients, rounds, None, scheme="uniform", multiplier=4.0, colluding=colluding)
        for colluding in (0, clients // 2, clients - 1)
    ]
    assert charged[0] < exact <= charged[2], "the selection is no secret before them"
    assert charged[2] == pytest.approx(float(gaussian_epsilon(np.sqrt(rounds) / 4.0, DELTA)), rel=1e-9)
    twice = ledger_epsilon(clients // 2, 2 / clients, rounds, None, scheme="uniform", multiplier=4.0)
    assert charged[1] == pytest.approx(twice, rel=1e-6), "one of those who are left"
    poisson = [ledger_epsilon(clients, 1 / clients, rounds, None, colluding=colluding) for colluding in (0, 5)]
    assert poisson[0] == poisson[1], "of independent selections nobody learns from his own"


def test_the_reason_is_said_in_words_and_survives_the_trace() -> None:
    clients = np.arange(2)
    facts, statement = facts_of([10] * 4), Statement(DELTA, unit="client", adversary="observer")
    for reason in NoAmplification:
        release = ServerNoiseRelease(1, clients, 1.0, 1.0, 1.0, 0.5, "uniform", unamplified=reason)
        again = release_from_values(settings(release), 1, clients, round_values(release), {})
        ledger = recompute([again], facts, statement)
        assert isinstance(again, ServerNoiseRelease) and again.unamplified is reason
        assert any(reason.value in sentence for sentence in ledger.why_different())


def test_a_trace_that_does_not_say_who_took_part_how_earns_nothing() -> None:
    """Version 0.1 added no noise where nobody took part, and did not record its quorum."""
    recorded = ServerNoiseRelease(1, np.arange(2), 1.0, 1.0, 1.0, 0.5, "poisson")
    before = settings(recorded).replace(', "unamplified": null', "")
    assert before != settings(recorded)
    release = release_from_values(before, 1, np.arange(2), round_values(recorded), {})
    assert isinstance(release, ServerNoiseRelease) and release.unamplified is NoAmplification.UNSTATED


def test_without_clipping_or_noise_nobody_is_protected_in_an_empty_round_either() -> None:
    """Everyone could have been selected: also who was not has no guarantee, before and after a checkpoint."""
    from wirelessfl.privacy import Ledger

    facts, statement = facts_of([10] * 3), Statement(DELTA, unit="client", adversary="observer")
    for changes in ({"clip": None}, {"noise_std": 0.0}):
        values = {"published_multiplier": 1.0, "noise_std": 1.0, "clip": 1.0, "sample_rate": 0.5, **changes}
        release = ServerNoiseRelease(1, np.zeros(0, dtype=np.int64), selection="poisson", **values)  # type: ignore[arg-type]
        ledger = recompute([release], facts, statement)
        restored = Ledger(facts, statement)
        restored.restore(ledger.state())
        for one in (ledger, restored):
            assert one.epsilon_accounted() == np.inf
            assert np.all(one.client_epsilons()[1] == np.inf)
