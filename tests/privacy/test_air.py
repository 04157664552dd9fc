"""The over-the-air rows of PRIVACY.md's table and the rules that bear on them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.privacy.rounds import air_release, facts_of
from wirelessfl.privacy import (
    AirRelease,
    Caveat,
    Ledger,
    PrivacyFacts,
    Statement,
    gaussian_epsilon,
    noise_std_exact,
    noise_std_theorem,
    recompute,
    zcdp_epsilon,
)

DELTA = 1e-5
FACTS = facts_of([20, 30, 50])
EVERYONE = np.arange(3)
SAMPLE = Statement(DELTA)
CLIENT = Statement(DELTA, unit="client")


def mu_of(release: AirRelease, statement: Statement, facts: PrivacyFacts = FACTS) -> np.ndarray:
    spending = release.accounted(facts, statement)
    assert spending.unproven is None
    return np.sqrt(spending.mu_squared)


# ---------------------------------------------------------------------------- published: Theorems 1 and 3


def test_published_is_theorems_1_and_3_with_the_recorded_backoff() -> None:
    """ρ_i = Σ_m 1/(2 |D|² s² σ_m²), ε = ρ + 2 sqrt(ρ ln 1/δ), summed over rounds by hand."""
    ledger = Ledger(FACTS, SAMPLE)
    rho = np.zeros(3)
    for m, (noise_std, limit) in enumerate([(0.01, [0.1, 0.4, 0.3]), (0.03, [1.0, 0.2, 0.5])]):
        ledger.add(air_release(FACTS, EVERYONE, m, limit=limit, effective_noise_std=noise_std))
        for i in range(3):
            s = max(1.0, FACTS.weights[i] / limit[i])
            rho[i] += 1 / (2 * 100**2 * s**2 * noise_std**2)
    expected = [r + 2 * math.sqrt(r * math.log(1 / DELTA)) for r in rho]
    np.testing.assert_allclose(ledger.client_epsilons()[0], expected, rtol=1e-12)
    assert ledger.epsilon_published() == pytest.approx(max(expected), rel=1e-12)


def test_published_of_privacy_for_free_is_its_own_theorem() -> None:
    """Liu and Simeone: Σ 2 γ² c²/σ_c² <= (sqrt(ε + Q²) − Q)², where c γ = α_u/|D|."""
    server_gain, channel_noise_std, rounds = 40.0, 1.0, 7
    release = air_release(
        FACTS, EVERYONE, theorem="privacy_for_free", effective_noise_std=channel_noise_std / server_gain
    )
    epsilon = recompute([replace(release, round_index=m) for m in range(rounds)], FACTS, SAMPLE).epsilon_published()
    amplitude = server_gain / FACTS.total_samples
    budget = rounds * 2 * (amplitude / channel_noise_std) ** 2
    candidates = np.linspace(2, 4, 200_001)
    q = candidates[np.argmin(np.abs(np.log(np.sqrt(np.pi) * candidates) + candidates**2 + math.log(DELTA)))]
    assert (math.sqrt(epsilon + q**2) - q) ** 2 == pytest.approx(budget, rel=1e-4)


def test_published_without_a_theorem_is_infinite_with_the_reason() -> None:
    ledger = recompute([air_release(FACTS, EVERYONE, theorem="none")], FACTS, SAMPLE)
    assert ledger.epsilon_published() == math.inf
    assert math.isfinite(ledger.epsilon_accounted())
    why = ledger.why_different()
    assert any("no privacy theorem" in sentence for sentence in why)
    assert not any("The theorem" in sentence for sentence in why), "there is none to speak of"


def test_each_theorem_is_said_to_convert_with_its_own_bound() -> None:
    by_theorem = {
        theorem: " ".join(recompute([air_release(FACTS, EVERYONE, theorem=theorem)], FACTS, SAMPLE).why_different())
        for theorem in ("cross_layer", "privacy_for_free")
    }
    assert "Theorems 1 and 3" in by_theorem["cross_layer"] and "tail" not in by_theorem["cross_layer"]
    assert "Gaussian tail" in by_theorem["privacy_for_free"] and "Theorems 1" not in by_theorem["privacy_for_free"]


def test_only_a_theorem_about_leaving_out_is_said_to_compare_so() -> None:
    """Liu and Simeone exchange a sample, as the statement does here."""
    exchange = replace(CLIENT, adjacency="replace")
    for theorem, said in (("cross_layer", True), ("privacy_for_free", False)):
        why = recompute([air_release(FACTS, EVERYONE, theorem=theorem)], FACTS, exchange).why_different()
        assert any("one sample more or less" in sentence for sentence in why) is said


# ---------------------------------------------------------------------------- accounted: whole updates


def test_whole_update_sample_can_swing_across_the_ball() -> None:
    """X = 2 R_i, R_i = min(p_i, |ĥ_i| √P_i/α_u), for both adjacencies."""
    limit = np.array([0.1, 0.4, 0.3])
    release = air_release(FACTS, EVERYONE, limit=limit, accounted_noise_std=0.05)
    expected = 2 * np.minimum([0.2, 0.3, 0.5], limit) / 0.05
    np.testing.assert_allclose(mu_of(release, SAMPLE), expected)
    np.testing.assert_allclose(mu_of(release, Statement(DELTA, adjacency="replace")), expected)


def test_whole_update_client_zero_out_is_r_and_replace_is_twice_that() -> None:
    release = air_release(FACTS, EVERYONE, accounted_noise_std=0.05)
    np.testing.assert_allclose(mu_of(release, CLIENT), np.array([0.2, 0.3, 0.5]) / 0.05)
    exchanged = Statement(DELTA, unit="client", adjacency="replace")
    np.testing.assert_allclose(mu_of(release, exchanged), 2 * np.array([0.2, 0.3, 0.5]) / 0.05)


def test_whole_update_sensitivity_is_reached_and_never_exceeded() -> None:
    """Brute force over updates clipped to the ball: the received sums of neighbours differ by up to X."""
    rng = np.random.default_rng(5)
    release = air_release(FACTS, EVERYONE, limit=[0.1, 0.4, 0.3])
    direction = rng.standard_normal((3, 500, 4))
    ball = direction / np.maximum(1, np.linalg.norm(direction, axis=-1, keepdims=True))
    received = ball * (FACTS.weights / release.backoff)[:, None, None]
    swing = np.linalg.norm(received[:, :, None] - received[:, None, :], axis=-1).max(axis=(1, 2))
    bound = release.sensitivity(FACTS, SAMPLE)
    assert np.all(swing <= bound * (1 + 1e-12))
    assert np.all(swing >= 0.95 * bound)
    assert np.linalg.norm(received, axis=-1).max(axis=1) == pytest.approx(release.sensitivity(FACTS, CLIENT))


def test_accounted_exceeds_published_for_whole_updates() -> None:
    ledger = recompute([air_release(FACTS, EVERYONE)], FACTS, SAMPLE)
    assert ledger.epsilon_accounted() > ledger.epsilon_published()
    assert any("does not enforce" in sentence for sentence in ledger.why_different())


def test_privacy_for_free_has_two_c_n_gamma_for_whole_updates() -> None:
    """Their receiver scales a sum over samples by c: α_u p_i = c n_i γ."""
    amplitude, channel_noise_std = 0.3, 1.0  # c γ and σ_c
    server_gain = amplitude * FACTS.total_samples
    noise_std = channel_noise_std / server_gain
    release = air_release(FACTS, EVERYONE, theorem="privacy_for_free", accounted_noise_std=noise_std)
    np.testing.assert_allclose(mu_of(release, SAMPLE), 2 * amplitude * FACTS.samples / channel_noise_std)


def test_cotaf_with_realised_norms_has_no_guarantee_and_with_a_public_bound_it_has() -> None:
    realised = air_release(FACTS, EVERYONE, theorem="none", caveat=Caveat.REALISED_NORMS)
    assert recompute([realised], FACTS, SAMPLE).epsilon_accounted() == math.inf
    bounded = replace(realised, caveat=None)
    np.testing.assert_allclose(mu_of(bounded, SAMPLE), 2 * FACTS.weights / 0.01)


def test_jammer_exact_holds_the_target_for_the_worst_client_and_the_theorem_does_not() -> None:
    """σ_m = X_m √M/μ* with the X_m of the run; the theorem's 1/|D| under-noises whole updates."""
    epsilon, rounds = 2.0, 5
    limits = np.random.default_rng(1).uniform(0.1, 0.6, (rounds, 3))
    exact, theorem = Ledger(FACTS, SAMPLE), Ledger(FACTS, SAMPLE)
    by_theorem = noise_std_theorem(epsilon, DELTA, rounds, FACTS.total_samples)
    for m in range(rounds):
        worst = 2 * np.minimum(FACTS.weights, limits[m]).max()
        by_exact = noise_std_exact(epsilon, DELTA, rounds, worst)
        exact.add(air_release(FACTS, EVERYONE, m, limit=limits[m], accounted_noise_std=by_exact))
        theorem.add(air_release(FACTS, EVERYONE, m, limit=limits[m], accounted_noise_std=by_theorem))
    assert exact.epsilon_accounted() <= epsilon * (1 + 1e-9)
    assert theorem.epsilon_accounted() > 10 * epsilon


def test_every_published_number_names_its_relation() -> None:
    assert air_release(FACTS, EVERYONE).relation == "one sample more or fewer"
    assert air_release(FACTS, EVERYONE, theorem="privacy_for_free").relation == "one sample exchanged for another"


# ---------------------------------------------------------------------------- accounted: a gradient step


def test_gradient_step_full_batch_is_one_over_all_samples_divided_by_a_public_backoff() -> None:
    release = air_release(FACTS, EVERYONE, limit=[0.1, 0.4, 0.3], rule="gradient_step")
    expected = 1 / (100 * np.array([2.0, 1.0, 5 / 3]))
    np.testing.assert_allclose(release.sensitivity(FACTS, SAMPLE), expected)
    exchanged = Statement(DELTA, adjacency="replace")
    np.testing.assert_allclose(release.sensitivity(FACTS, exchanged), 2 * expected)


def test_gradient_step_with_actual_backoff_earns_no_credit_for_it() -> None:
    release = air_release(FACTS, EVERYONE, limit=[0.1, 0.4, 0.3], rule="gradient_step", backoff_is_public=False)
    np.testing.assert_allclose(release.sensitivity(FACTS, SAMPLE), 1 / 100)


def test_gradient_step_with_mini_batches_divides_by_the_batch() -> None:
    batch = np.array([5, 5, 10])
    release = air_release(FACTS, EVERYONE, rule="gradient_step", batch_size=batch)
    np.testing.assert_allclose(release.sensitivity(FACTS, SAMPLE), [0.2 / 5, 0.3 / 5, 0.5 / 10])
    full = air_release(FACTS, EVERYONE, rule="gradient_step")
    ratio = release.sensitivity(FACTS, SAMPLE) / full.sensitivity(FACTS, SAMPLE)
    np.testing.assert_allclose(ratio, FACTS.samples / batch)


def test_gradient_step_never_counts_more_than_the_whole_update() -> None:
    """A single-sample batch in a deep back-off that is not public: the ball is the smaller bound."""
    release = air_release(
        FACTS, EVERYONE, limit=0.01, rule="gradient_step", batch_size=np.ones(3, int), backoff_is_public=False
    )
    np.testing.assert_allclose(release.sensitivity(FACTS, SAMPLE), 2 * 0.01)


def test_gradient_step_protects_a_client_like_a_whole_update() -> None:
    step = air_release(FACTS, EVERYONE, rule="gradient_step")
    np.testing.assert_allclose(mu_of(step, CLIENT), mu_of(air_release(FACTS, EVERYONE), CLIENT))


@pytest.mark.parametrize("backoff", ["bound", "actual"])
def test_gradient_step_sensitivity_holds_for_clipped_gradients(backoff: str) -> None:
    """Random and aligned per-sample gradients, one zeroed out: the received sum never moves by more than X."""
    rng = np.random.default_rng(11)
    count, client, limit = 20, 0, 0.05
    weight = FACTS.weights[client]
    release = air_release(FACTS, [client], limit=limit, rule="gradient_step", backoff_is_public=backoff == "bound")
    worst = 0.0
    for trial in range(400):
        gradients = rng.standard_normal((count, 3)) * rng.uniform(0.1, 3)
        if trial % 2:
            gradients = np.tile(rng.standard_normal(3), (count, 1)) * rng.uniform(0.05, 3)
        gradients /= np.maximum(1, np.linalg.norm(gradients, axis=1, keepdims=True))
        sums = [gradients.mean(axis=0), (gradients.sum(axis=0) - gradients[0]) / count]
        norms = [np.linalg.norm(update) if backoff == "actual" else 1.0 for update in sums]
        received = [update * weight / max(1.0, weight * norm / limit) for update, norm in zip(sums, norms, strict=True)]
        worst = max(worst, float(np.linalg.norm(received[0] - received[1])))
    bound = release.sensitivity(FACTS, SAMPLE)[0]
    assert worst <= bound * (1 + 1e-12)
    assert worst >= 0.95 * bound


def test_gradient_step_accounted_is_below_published() -> None:
    """The theorem's assumption holds here, and the exact curve is tighter than the conversion."""
    ledger = recompute([air_release(FACTS, EVERYONE, m, rule="gradient_step") for m in range(10)], FACTS, SAMPLE)
    assert ledger.epsilon_accounted() < ledger.epsilon_published()
    mu = math.sqrt(10) / (100 * 0.01)
    assert ledger.epsilon_accounted() == pytest.approx(float(gaussian_epsilon(mu, DELTA)), rel=1e-12)
    assert ledger.epsilon_published() == pytest.approx(float(zcdp_epsilon(mu**2 / 2, DELTA)), rel=1e-12)


# ---------------------------------------------------------------------------- adversaries


def test_individual_uploads_carry_no_noise() -> None:
    ledger = recompute([air_release(FACTS, EVERYONE)], FACTS, Statement(DELTA, adversary="individual"))
    assert ledger.epsilon_accounted() == math.inf
    assert any("carries no noise of its own" in sentence for sentence in ledger.why_different())


def test_observer_is_given_no_more_than_the_server() -> None:
    release = air_release(FACTS, EVERYONE)
    np.testing.assert_array_equal(
        mu_of(release, Statement(DELTA, adversary="observer")), mu_of(release, Statement(DELTA, adversary="server"))
    )


def test_colluders_hand_over_the_jamming_also_where_the_role_rotates() -> None:
    release = air_release(FACTS, EVERYONE, effective_noise_std=0.05, accounted_noise_std=0.05, unjammed_noise_std=0.03)
    colluding = Statement(DELTA, colluding=1)
    np.testing.assert_allclose(mu_of(release, colluding) / mu_of(release, SAMPLE), 5 / 3)
    why = recompute([release], FACTS, colluding).why_different()
    assert any("no jamming is counted as noise" in sentence for sentence in why)


def test_no_noise_is_no_guarantee() -> None:
    silent: dict[str, Any] = {"effective_noise_std": 0.0, "accounted_noise_std": 0.0, "unjammed_noise_std": 0.0}
    ledger = recompute([air_release(FACTS, EVERYONE, **silent)], FACTS, SAMPLE)
    assert ledger.epsilon_published() == ledger.epsilon_accounted() == math.inf
    assert any("nothing adds noise" in sentence for sentence in ledger.why_different())


# ---------------------------------------------------------------------------- further rules


def test_both_quadratures_multiply_the_received_bound() -> None:
    ratio = np.array([1.0, 1.3, 0.8])
    imperfect = air_release(FACTS, EVERYONE, csi_ratio=ratio)
    perfect = air_release(FACTS, EVERYONE)
    np.testing.assert_allclose(mu_of(imperfect, SAMPLE), ratio * mu_of(perfect, SAMPLE))
    steps = [air_release(FACTS, EVERYONE, rule="gradient_step", csi_ratio=value) for value in (ratio, 1.0)]
    np.testing.assert_allclose(mu_of(steps[0], SAMPLE), ratio * mu_of(steps[1], SAMPLE))
    assert any("both quadratures" in sentence for sentence in recompute([imperfect], FACTS, SAMPLE).why_different())


def test_complex_received_signal_is_told_apart_by_its_whole_length() -> None:
    """Circular noise: the likelihood ratio of two received complex points depends on their distance alone."""
    release = air_release(FACTS, [0], csi_ratio=np.array([abs(0.6 + 0.5j)]), accounted_noise_std=0.07)
    points = np.array([1, -1]) * FACTS.weights[0] * (0.6 + 0.5j)
    as_real = np.array([[point.real, point.imag] for point in points])
    distance = np.linalg.norm(as_real[0] - as_real[1]) / 0.07
    assert mu_of(release, SAMPLE)[0] == pytest.approx(distance)


def test_interference_is_never_counted_as_noise() -> None:
    """What enters the recorded σ_m beside the accountable noise changes the published figure only."""
    quiet, busy = (air_release(FACTS, EVERYONE, effective_noise_std=std) for std in (0.01, 0.04))
    np.testing.assert_array_equal(mu_of(quiet, SAMPLE), mu_of(busy, SAMPLE))
    assert recompute([busy], FACTS, SAMPLE).epsilon_published() < recompute([quiet], FACTS, SAMPLE).epsilon_published()


def test_real_jamming_counts_per_client_what_cannot_be_nulled() -> None:
    counted = np.array([0.01, 0.008, 0.006])
    release = air_release(FACTS, EVERYONE, accounted_noise_std=counted)
    np.testing.assert_allclose(mu_of(release, CLIENT), FACTS.weights / counted)
    assert any("can be removed" in sentence for sentence in recompute([release], FACTS, CLIENT).why_different())


@pytest.mark.parametrize("caveat", [Caveat.REALISED_NORMS, Caveat.UNCLIPPED])
def test_data_dependent_rounds_void_the_guarantee_but_not_the_theorem(caveat: Caveat) -> None:
    rounds = [air_release(FACTS, EVERYONE, 0), air_release(FACTS, [1], 1, caveat=caveat)]
    ledger = recompute(rounds, FACTS, SAMPLE)
    published, accounted = ledger.client_epsilons()
    assert np.isfinite(published).all()
    assert accounted[1] == math.inf
    assert np.isfinite(accounted[[0, 2]]).all()
    assert any(caveat.value in sentence for sentence in ledger.why_different())


def test_silent_clients_lose_nothing() -> None:
    published, accounted = recompute([air_release(FACTS, [0, 2])], FACTS, SAMPLE).client_epsilons()
    assert published[1] == accounted[1] == 0
    assert np.all(published[[0, 2]] > 0)


# ---------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": np.array([0.2, 0.3])},
        {"backoff": np.zeros(3)},
        {"received_bound": np.array([0.1, np.nan, 0.1])},
        {"accounted_noise_std": -1.0},
        {"effective_noise_std": np.inf},
        {"csi_ratio": -np.ones(3), "received_bound": np.ones(3)},
        {"batch_size": np.zeros(3, int)},
    ],
)
def test_impossible_records_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        air_release(FACTS, EVERYONE, **wrong)
