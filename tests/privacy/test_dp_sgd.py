"""Rows of local training: sampling, clipping rules, wavelet domains, unit and adjacency."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from tests.privacy.rounds import facts_of
from wirelessfl.privacy import (
    DpSgdRelease,
    DynamicClip,
    FixedClip,
    HaarNoise,
    Ledger,
    MooClip,
    PerLayerClip,
    QuantileClip,
    SampledGaussian,
    Statement,
    composed_epsilon,
    gaussian_epsilon,
    recompute,
)

DELTA = 1e-5
FACTS = facts_of([40, 100])
SAMPLE = Statement(DELTA)
REPLACE = Statement(DELTA, adjacency="replace")


def training(round_index: int = 0, **overrides: Any) -> DpSgdRelease:
    values: dict[str, Any] = {
        "round_index": round_index,
        "clients": np.array([0, 1]),
        "noise_multiplier": 1.2,
        "batch_size": np.array([10, 10]),
        "steps": np.array([4, 10]),
    }
    return DpSgdRelease(**{**values, **overrides})


def poisson_epsilon(z: float, q: float, steps: int, *, exchange: bool = False) -> float:
    return composed_epsilon(0.0, ((SampledGaussian(z, q, exchange), steps),), DELTA, "pld")


# ---------------------------------------------------------------------------- sampling


def exact_curve(mu: float) -> float:
    """ε at which the Gaussian mechanism of this μ has δ (Balle and Wang 2018)."""

    def excess(epsilon: float) -> float:
        tail = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        return float(tail) - DELTA

    return float(optimize.brentq(excess, 0.0, 100.0, xtol=1e-12))


def test_poisson_sampling_published_and_accounted_are_the_same() -> None:
    ledger = recompute([training(m) for m in range(3)], FACTS, SAMPLE)
    published, accounted = ledger.client_epsilons()
    np.testing.assert_array_equal(published, accounted)
    expected = [poisson_epsilon(1.2, 0.25, 12), poisson_epsilon(1.2, 0.1, 30)]
    np.testing.assert_allclose(accounted, expected, rtol=1e-12)
    assert ledger.epsilon_accounted() == max(accounted)
    assert ledger.why_different() == []


def test_poisson_sampling_under_replacement_is_the_replace_one_pld() -> None:
    published, accounted = recompute([training()], FACTS, REPLACE).client_epsilons()
    expected = [poisson_epsilon(1.2, 0.25, 4, exchange=True), poisson_epsilon(1.2, 0.1, 10, exchange=True)]
    np.testing.assert_allclose(accounted, expected, rtol=1e-12)
    assert np.all(published < accounted)


def test_shuffled_batches_are_published_as_if_poisson_and_accounted_one_use_per_pass() -> None:
    """μ² = passes/z²; client 0 takes 4 steps of 10 of its 40 samples, one pass a round."""
    rounds = [training(m, sampling="shuffle") for m in range(3)]
    ledger = recompute(rounds, FACTS, SAMPLE)
    published, accounted = ledger.client_epsilons()
    np.testing.assert_allclose(accounted, gaussian_epsilon(math.sqrt(3) / 1.2, DELTA), rtol=1e-12)
    np.testing.assert_allclose(published, [poisson_epsilon(1.2, 0.25, 12), poisson_epsilon(1.2, 0.1, 30)], rtol=1e-12)
    assert any("as if they were Poisson" in sentence for sentence in ledger.why_different())
    exchanged = recompute(rounds, FACTS, REPLACE).client_epsilons()[1]
    np.testing.assert_allclose(exchanged, gaussian_epsilon(2 * math.sqrt(3) / 1.2, DELTA), rtol=1e-12)


def most_uses(samples: int, batch: int, steps_per_round: int, rounds: int) -> int:
    """Over many shuffled runs, the last batch of a pass being smaller: the most batches that a sample was ever in.

    The rarest case below has probability 0.3^5 a sample and run: 6,000 of them miss it with probability e^-14.
    """
    rng = np.random.default_rng(4)
    most = 0
    for _ in range(6000 // samples):
        uses = np.zeros(samples, dtype=int)
        for _ in range(rounds):
            batches: list[np.ndarray] = []
            for _ in range(steps_per_round):
                if not batches:
                    order = rng.permutation(samples)
                    batches = [order[start : start + batch] for start in range(0, samples, batch)]
                uses[batches.pop(0)] += 1
        most = max(most, int(uses.max()))
    return most


@pytest.mark.parametrize(("samples", "batch", "steps"), [(12, 4, 2), (12, 4, 3), (12, 4, 7), (29, 20, 3), (10, 3, 5)])
def test_shuffled_uses_equal_those_of_simulated_batches(samples: int, batch: int, steps: int) -> None:
    """Every round shuffles afresh: C ⌈τ/⌈n/γ⌉⌉ uses."""
    facts, participations = facts_of([samples]), 5
    ledger = Ledger(facts, SAMPLE)
    for m in range(participations):
        count = np.array([steps])
        ledger.add(training(m, clients=np.array([0]), batch_size=np.array([batch]), steps=count, sampling="shuffle"))
    uses = most_uses(samples, batch, steps, participations)
    assert ledger.epsilon_accounted() == pytest.approx(float(gaussian_epsilon(math.sqrt(uses) / 1.2, DELTA)), rel=1e-12)
    assert uses == participations * math.ceil(steps / math.ceil(samples / batch))


def test_full_batches_need_no_sampling() -> None:
    full = training(batch_size=np.array([40, 100]), steps=np.array([3, 3]))
    published, accounted = recompute([full], FACTS, SAMPLE).client_epsilons()
    np.testing.assert_allclose(accounted, gaussian_epsilon(math.sqrt(3) / 1.2, DELTA), rtol=1e-12)
    np.testing.assert_array_equal(published, accounted)


# ---------------------------------------------------------------------------- clipping rules


def test_median_calibrated_clipping_on_public_data_costs_nothing() -> None:
    assert FixedClip().published_multiplier(1.2) == FixedClip().accounted_multiplier(1.2) == 1.2


def test_per_layer_clipping_has_the_root_of_the_sum_of_squares() -> None:
    """Largest norm of a gradient whose layers are clipped to C_j each; the papers print √ΣC_j."""
    clip = PerLayerClip(norms=(0.3, 0.4, 1.2))
    worst = np.concatenate([norm * np.eye(3)[0] for norm in clip.norms])
    assert clip.sensitivity == pytest.approx(np.linalg.norm(worst))
    assert clip.accounted_multiplier(1.2) == 1.2
    assert clip.published_multiplier(1.2) == pytest.approx(1.2 * 1.3 / math.sqrt(1.9))
    ledger = recompute([training(clipping=clip)], FACTS, SAMPLE)
    assert ledger.epsilon_published() > ledger.epsilon_accounted()
    assert any("√ΣC_j" in sentence for sentence in ledger.why_different())


def test_dynamic_clipping_is_one_event_per_multiplier() -> None:
    multipliers = [1.0, 1.1, 1.2]
    releases = [training(m, noise_multiplier=z, clipping=DynamicClip()) for m, z in enumerate(multipliers)]
    ledger = recompute(releases, FACTS, SAMPLE)
    uses = tuple((SampledGaussian(z, 0.25), 4) for z in multipliers)
    published, accounted = ledger.client_epsilons()
    assert accounted[0] == pytest.approx(composed_epsilon(0.0, uses, DELTA, "pld"), rel=1e-12)
    # Published is the paper's central limit, μ = q √(Σ_t (e^{1/σ_t²} − 1)), 4 steps a round.
    limit = 0.25 * math.sqrt(4 * sum(math.exp(z**-2) - 1 for z in multipliers))
    assert published[0] == pytest.approx(exact_curve(limit), rel=1e-9)
    (without_noise,) = [training(noise_multiplier=0.0, clipping=DynamicClip())]
    assert np.all(np.isinf(without_noise.published(FACTS).mu_squared))


def test_adaptive_quantile_is_one_event_at_the_combined_multiplier() -> None:
    """Gradient and centred count as one vector: reach² = 1/z_Δ² + (1/2)²/σ_b²."""
    clip = QuantileClip(count_noise_std=0.9)
    reach = np.linalg.norm([1 / 1.2, 0.5 / 0.9])
    assert clip.accounted_multiplier(1.2) == pytest.approx(1 / reach)
    assert clip.accounted_multiplier(1.2) == pytest.approx((1.2**-2 + (2 * 0.9) ** -2) ** -0.5)
    ledger = recompute([training(clipping=clip)], FACTS, SAMPLE)
    assert ledger.client_epsilons()[1][0] == pytest.approx(poisson_epsilon(1 / float(reach), 0.25, 4), rel=1e-12)
    assert ledger.epsilon_published() == ledger.epsilon_accounted()
    assert clip.accounted_multiplier(0.0) == 0.0


def test_moo_published_feedback_has_no_guarantee() -> None:
    ledger = recompute([training(clipping=MooClip("published"))], FACTS, SAMPLE)
    assert ledger.epsilon_accounted() == math.inf
    assert ledger.epsilon_published() == recompute([training()], FACTS, SAMPLE).epsilon_published()
    assert any("raw private gradients" in sentence for sentence in ledger.why_different())


def test_moo_private_feedback_costs_what_a_fixed_clip_costs() -> None:
    ledger = recompute([training(clipping=MooClip("private"))], FACTS, SAMPLE)
    assert ledger.epsilon_accounted() == recompute([training()], FACTS, SAMPLE).epsilon_accounted()


# ---------------------------------------------------------------------------- wavelet


@pytest.mark.parametrize(("domain", "factor"), [("coefficients", 1 / 4), ("weighted", 1.0)])
def test_wavelet_is_published_at_sigma_and_accounted_at_the_true_multiplier(domain: Any, factor: float) -> None:
    ledger = recompute([training(noise=HaarNoise(4, domain))], FACTS, SAMPLE)
    published, accounted = ledger.client_epsilons()
    assert published[0] == pytest.approx(poisson_epsilon(1.2, 0.25, 4), rel=1e-12)
    assert accounted[0] == pytest.approx(poisson_epsilon(1.2 * factor, 0.25, 4), rel=1e-12)


def test_wavelet_second_reading_is_lemma_2() -> None:
    ledger = recompute([training(noise=HaarNoise(4, reading="lemma_2"))], FACTS, SAMPLE)
    assert ledger.client_epsilons()[0][0] == pytest.approx(poisson_epsilon(1.2 * math.sqrt(2), 0.25, 4), rel=1e-12)
    assert any("Lemma 2" in sentence for sentence in ledger.why_different())


def test_wavelet_on_a_clipped_gradient_is_not_published_and_accounted_at_sigma_over_root_m() -> None:
    ledger = recompute([training(noise=HaarNoise(4, "gradient"))], FACTS, SAMPLE)
    assert ledger.epsilon_published() == math.inf
    assert ledger.client_epsilons()[1][0] == pytest.approx(poisson_epsilon(0.6, 0.25, 4), rel=1e-12)


def test_wavelet_over_a_real_model_has_an_enormous_epsilon() -> None:
    ledger = recompute([training(noise=HaarNoise(2**15))], FACTS, SAMPLE)
    assert ledger.epsilon_accounted() == math.inf
    assert any("1e+06" in sentence for sentence in ledger.why_different())


# ---------------------------------------------------------------------------- units, adversaries, edges


def test_noise_on_samples_protects_no_client() -> None:
    ledger = recompute([training()], FACTS, Statement(DELTA, unit="client"))
    assert ledger.epsilon_accounted() == math.inf
    assert any("protects a sample" in sentence for sentence in ledger.why_different())


@pytest.mark.parametrize("adversary", ["observer", "server", "individual"])
def test_local_noise_holds_against_every_adversary(adversary: Any) -> None:
    statement = Statement(DELTA, adversary=adversary, colluding=1)
    expected = max(poisson_epsilon(1.2, 0.25, 4), poisson_epsilon(1.2, 0.1, 10))
    assert recompute([training()], FACTS, statement).epsilon_accounted() == pytest.approx(expected, rel=1e-12)


def test_no_noise_is_no_guarantee() -> None:
    ledger = recompute([training(noise_multiplier=0.0)], FACTS, SAMPLE)
    assert ledger.epsilon_published() == ledger.epsilon_accounted() == math.inf


def test_clients_with_equal_profiles_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    facts, calls = facts_of([40] * 200), []
    composed_epsilon.cache_clear()

    def counted(*arguments: Any) -> float:
        calls.append(arguments)
        return composed_epsilon(*arguments)

    monkeypatch.setattr("wirelessfl.privacy.account.composed_epsilon", counted)
    everyone = np.arange(200)
    ledger = Ledger(facts, SAMPLE)
    ledger.add(training(clients=everyone, batch_size=np.full(200, 10), steps=np.full(200, 4)))
    ledger.add(training(1, clients=everyone[:50], batch_size=np.full(50, 10), steps=np.full(50, 4)))
    accounted = ledger.client_epsilons()[1]
    assert len(calls) <= 6  # in two columns: the worst profile when asked for it, and both for the clients
    assert composed_epsilon.cache_info().misses == 2
    assert accounted[0] == accounted[49] > accounted[50] == accounted[199]


def test_restored_state_continues_to_the_same_bits() -> None:
    rounds = [training(m, noise_multiplier=1 + m / 10) for m in range(3)]
    rounds += [training(3 + m, sampling="shuffle", steps=np.array([3, 3])) for m in range(4)]
    whole = recompute(rounds, FACTS, SAMPLE)
    resumed = Ledger(FACTS, SAMPLE)
    resumed.restore(recompute(rounds[:5], FACTS, SAMPLE).state())
    for release in rounds[5:]:
        resumed.add(release)
    np.testing.assert_array_equal(resumed.client_epsilons(), whole.client_epsilons())
    assert resumed.epsilon_accounted() == whole.epsilon_accounted()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"noise_multiplier": -1.0}, "noise_multiplier"),
        ({"noise_multiplier": math.inf}, "noise_multiplier"),
        ({"batch_size": np.array([0, 1])}, "batch_size"),
        ({"steps": np.array([1])}, "steps"),
        ({"sampling": "cyclic"}, "sampling"),
        ({"steps": np.array([-1, 0])}, "steps"),
    ],
)
def test_impossible_records_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        training(**wrong)


def test_a_sample_rate_above_one_is_refused() -> None:
    with pytest.raises(ValueError, match="sample rate"):
        recompute([training(batch_size=np.array([41, 10]))], FACTS, SAMPLE)


@pytest.mark.parametrize(
    "build",
    [
        lambda: PerLayerClip(norms=()),
        lambda: PerLayerClip(norms=(1.0, 0.0)),
        lambda: QuantileClip(count_noise_std=0.0),
        lambda: MooClip("guess"),  # type: ignore[arg-type]
    ],
)
def test_impossible_clipping_is_refused(build: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        build()
