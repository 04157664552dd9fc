"""The rows of DP-FedAvg and of client sampling."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import rdp_privacy_accountant as rdp
from scipy import optimize, special

from tests.privacy.rounds import air_release, facts_of
from wirelessfl.privacy import (
    HaarNoise,
    PrivacyFacts,
    SampledGaussian,
    ServerNoiseRelease,
    Statement,
    WhiteNoise,
    composed_epsilon,
    gaussian_epsilon,
    recompute,
)
from wirelessfl.privacy.mechanisms import server_noise_std

DELTA = 1e-5
FACTS = facts_of([10, 20, 50, 20])
OBSERVER = Statement(DELTA, unit="client", adversary="observer")
Z, CLIP, RATE = 0.8, 2.0, 0.25
NOISE_STD = Z * CLIP / (RATE * 4)  # σ = zC/(q K), clients counted equally
TRUE_MULTIPLIER = NOISE_STD / (CLIP * 0.5 / RATE)  # the largest p_i is 0.5


def aggregate(round_index: int = 0, **overrides: Any) -> ServerNoiseRelease:
    values: dict[str, Any] = {
        "round_index": round_index,
        "clients": np.array([1, 2]),
        "published_multiplier": Z,
        "noise_std": NOISE_STD,
        "clip": CLIP,
        "sample_rate": RATE,
        "selection": "poisson",
    }
    return ServerNoiseRelease(**{**values, **overrides})


def sampled(z: float, count: int = 1, **flags: bool) -> float:
    return composed_epsilon(0.0, ((SampledGaussian(z, RATE, **flags), count),), DELTA, "pld")


def test_published_multiplier_is_z_and_the_true_one_divides_by_the_largest_share() -> None:
    """σ/(C max p_i/q), fixed public p_i, with amplification by client sampling for the observer."""
    ledger = recompute([aggregate(m) for m in range(6)], FACTS, OBSERVER)
    assert pytest.approx(Z / (4 * 0.5)) == TRUE_MULTIPLIER
    assert ledger.epsilon_published() == pytest.approx(sampled(Z, 6), rel=1e-12)
    assert ledger.epsilon_accounted() == pytest.approx(sampled(TRUE_MULTIPLIER, 6), rel=1e-12)
    assert any("largest share" in sentence for sentence in ledger.why_different())


def test_the_largest_share_is_what_one_client_moves() -> None:
    """Brute force: the aggregate Σ (p_i/q) Δ_i of clipped updates with and without each client."""
    rng = np.random.default_rng(2)
    updates = rng.standard_normal((4, 6))
    updates *= CLIP / np.linalg.norm(updates, axis=1, keepdims=True)
    terms = (FACTS.weights / RATE)[:, None] * updates
    moved = np.linalg.norm(terms, axis=1).max()
    assert NOISE_STD / moved == pytest.approx(TRUE_MULTIPLIER)


def test_amplification_charges_selected_and_unselected_clients_alike() -> None:
    """Who was selected is hidden from the observer, so that everyone pays the same expected price."""
    published, accounted = recompute(
        [aggregate(), aggregate(1, clients=np.array([0]))], FACTS, OBSERVER
    ).client_epsilons()
    assert len(set(accounted)) == len(set(published)) == 1
    assert accounted[3] == pytest.approx(sampled(TRUE_MULTIPLIER, 2), rel=1e-12)


@pytest.mark.parametrize("adversary", ["server", "individual"])
def test_the_server_adds_the_noise_itself(adversary: Any) -> None:
    ledger = recompute([aggregate()], FACTS, Statement(DELTA, unit="client", adversary=adversary))
    assert ledger.epsilon_accounted() == math.inf
    assert math.isfinite(ledger.epsilon_published())
    assert any("adds the noise itself" in sentence for sentence in ledger.why_different())


def test_client_sampling_is_no_amplification_for_the_server_over_the_air() -> None:
    """The server sees who was selected: a selected client pays in full, others nothing."""
    _, accounted = recompute([air_release(FACTS, [2])], FACTS, Statement(DELTA, unit="client")).client_epsilons()
    assert accounted[2] == pytest.approx(float(gaussian_epsilon(0.5 / 0.01, DELTA)), rel=1e-12)
    assert accounted[0] == 0


def test_clipped_gradients_count_by_the_update_that_they_bound() -> None:
    """σ/(B max p_i/q), where B is the longest update: here a quarter of the clip that the noise is scaled to."""
    ledger = recompute([aggregate(clip=CLIP / 4, clipped="gradients")], FACTS, OBSERVER)
    assert ledger.epsilon_published() == pytest.approx(sampled(Z), rel=1e-12)
    assert ledger.epsilon_accounted() == pytest.approx(sampled(4 * TRUE_MULTIPLIER), rel=1e-12)
    assert any("a norm of up to 0.5," in sentence for sentence in ledger.why_different())
    unbounded = recompute([aggregate(clip=None, clipped="gradients")], FACTS, OBSERVER)
    assert unbounded.epsilon_accounted() == math.inf
    assert not any("up to" in sentence for sentence in unbounded.why_different())
    assert any("clipped gradients bound one only in gradient descent" in one for one in unbounded.why_different())


def test_unclipped_updates_have_no_guarantee() -> None:
    ledger = recompute([aggregate(clip=None)], FACTS, OBSERVER)
    assert ledger.epsilon_accounted() == math.inf
    assert ledger.epsilon_published() == pytest.approx(sampled(Z), rel=1e-12)
    assert any("nothing bounds the update" in sentence for sentence in ledger.why_different())


def test_a_sample_is_protected_like_an_exchanged_client() -> None:
    exchanged = sampled(TRUE_MULTIPLIER, exchange=True)
    for statement in (
        Statement(DELTA, unit="sample", adversary="observer"),
        Statement(DELTA, unit="client", adjacency="replace", adversary="observer"),
    ):
        assert recompute([aggregate()], FACTS, statement).epsilon_accounted() == pytest.approx(exchanged, rel=1e-12)


def test_a_fixed_number_of_selected_clients_is_drawn_without_replacement() -> None:
    ledger = recompute([aggregate(selection="uniform")], FACTS, OBSERVER)
    assert ledger.epsilon_accounted() == pytest.approx(sampled(TRUE_MULTIPLIER, fixed_size=True), rel=1e-12)
    assert any("without replacement" in sentence for sentence in ledger.why_different())


def test_without_selection_there_is_no_amplification() -> None:
    release = aggregate(selection="all", sample_rate=1.0)
    expected = float(gaussian_epsilon(CLIP * 0.5 / NOISE_STD, DELTA))
    assert recompute([release], FACTS, OBSERVER).epsilon_accounted() == pytest.approx(expected, rel=1e-12)


def test_wavelet_noise_on_updates_clipped_as_they_are_is_weaker_by_root_m() -> None:
    ledger = recompute([aggregate(noise=HaarNoise(16, "gradient"))], FACTS, OBSERVER)
    assert ledger.epsilon_accounted() == pytest.approx(sampled(TRUE_MULTIPLIER / 4), rel=1e-12)


@pytest.mark.parametrize(("multiplier", "expected"), [(1.0, 42_180), (3.0, 4_957)])
def test_algorithm_2_of_the_wavelet_paper_with_updates_clipped(multiplier: float, expected: float) -> None:
    """100 equal clients, 10 rounds, the 7,960 parameters of the small size: z is published, z/√8192 holds.

    Independently: the exact curve of a Gaussian mechanism in logarithms, and the RDP bound of dp-accounting above it.
    """
    clients, rounds, m = 100, 10, 8192
    facts = PrivacyFacts(np.full(clients, 20), np.full(clients, 1 / clients), 20 * clients)
    everyone = np.arange(clients)
    releases = [
        ServerNoiseRelease(
            *(index + 1, everyone),
            published_multiplier=multiplier,
            noise_std=server_noise_std(multiplier, 1.0, 1.0, clients),
            clip=1.0,
            noise=HaarNoise(m, "gradient"),
        )
        for index in range(rounds)
    ]
    ledger = recompute(releases, facts, OBSERVER)
    mu = math.sqrt(rounds * m) / multiplier

    def log_delta(epsilon: float) -> float:
        ahead, behind = special.log_ndtr(mu / 2 - epsilon / mu), epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)
        return float(ahead + np.log1p(-np.exp(behind - ahead)))

    exact = optimize.brentq(lambda epsilon: log_delta(epsilon) - math.log(DELTA), mu**2 / 2, mu**2)
    assert ledger.epsilon_accounted() == pytest.approx(exact, rel=1e-9) and round(exact) == expected
    accountant = rdp.RdpAccountant(orders=1 + np.geomspace(1e-4, 10, 400))
    accountant.compose(dp_event.GaussianDpEvent(multiplier / math.sqrt(m)), rounds)
    assert exact <= accountant.get_epsilon(DELTA) <= 1.01 * exact
    published = recompute([replace(one, noise=WhiteNoise()) for one in releases], facts, OBSERVER)
    assert ledger.epsilon_published() == pytest.approx(published.epsilon_published(), rel=1e-12)
    assert any("Algorithm 2" in sentence for sentence in ledger.why_different())
    unclipped = recompute([replace(one, clip=None) for one in releases], facts, OBSERVER)
    assert unclipped.epsilon_accounted() == math.inf and math.isfinite(unclipped.epsilon_published())


def test_dynamic_noise_is_published_at_one_multiplier_and_accounted_at_each() -> None:
    releases = [aggregate(m, noise_std=NOISE_STD * (1 + m / 4)) for m in range(3)]
    uses = tuple((SampledGaussian(TRUE_MULTIPLIER * (1 + m / 4), RATE), 1) for m in range(3))
    ledger = recompute(releases, FACTS, OBSERVER)
    assert ledger.epsilon_accounted() == pytest.approx(composed_epsilon(0.0, uses, DELTA, "pld"), rel=1e-12)
    assert ledger.epsilon_published() == pytest.approx(sampled(Z, 3), rel=1e-12)


def test_no_noise_is_no_guarantee() -> None:
    assert recompute([aggregate(noise_std=0.0)], FACTS, OBSERVER).epsilon_accounted() == math.inf


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"clip": -1.0}, "clip"),
        ({"sample_rate": 1.5}, "sample_rate"),
        ({"noise_std": math.nan}, "noise_std"),
        ({"selection": "guess"}, "selection"),
        ({"selection": "all"}, "sample rate"),
        ({"published_multiplier": -0.1}, "published_multiplier"),
    ],
)
def test_impossible_records_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        aggregate(**wrong)
