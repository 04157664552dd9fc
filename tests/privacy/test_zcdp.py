"""The rows of zCDP with secure aggregation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.privacy.rounds import facts_of
from wirelessfl.privacy import (
    SecureSum,
    Statement,
    ZcdpRelease,
    gaussian_epsilon,
    recompute,
    zcdp_calculator,
    zcdp_epsilon,
)

DELTA = 1e-4
FACTS = facts_of([100] * 10)
REPLACE = Statement(DELTA, adjacency="replace")
CLIP, NOISE_STD, BATCH = 1.0, 0.2, 20
LOCAL = (2 * CLIP / (BATCH * NOISE_STD)) ** 2  # μ² of one exchanged sample in one batch


def upload(round_index: int = 0, *, steps: int = 1, **overrides: Any) -> ZcdpRelease:
    values: dict[str, Any] = {
        "round_index": round_index,
        "clients": np.arange(10),
        "clip": CLIP,
        "noise_std": NOISE_STD,
        "batch_size": np.full(10, BATCH),
        "steps": np.full(10, steps),
        "secure_sum": SecureSum(10, 10),
    }
    return ZcdpRelease(**{**values, **overrides})


def mu_squared(release: ZcdpRelease, statement: Statement = REPLACE) -> float:
    ledger = recompute([release], FACTS, statement)
    spending = release.accounted(FACTS, statement)
    assert spending.unproven is None
    cost = spending.mu_squared
    assert ledger.epsilon_accounted() == pytest.approx(float(gaussian_epsilon(math.sqrt(cost[0]), DELTA)), rel=1e-12)
    return float(cost[0])


def test_published_is_theorem_1() -> None:
    """ρ_i = 2 C τ G²/(r n γ σ²), ε = ρ + 2 √(ρ ln 1/δ)."""
    ledger = recompute([upload(m, steps=5) for m in range(3)], FACTS, REPLACE)
    rho = 2 * 3 * 5 * CLIP**2 / (10 * 100 * BATCH * NOISE_STD**2)
    assert ledger.epsilon_published() == pytest.approx(float(zcdp_epsilon(rho, DELTA)), rel=1e-12)


def test_one_local_step_is_divided_by_the_surviving_honest_clients() -> None:
    assert mu_squared(upload()) == pytest.approx(LOCAL / 10)
    assert mu_squared(upload(secure_sum=SecureSum(10, 7))) == pytest.approx(LOCAL / 7)
    colluding = Statement(DELTA, adjacency="replace", colluding=3)
    assert mu_squared(upload(secure_sum=SecureSum(10, 7)), colluding) == pytest.approx(LOCAL / 4)


def test_one_local_step_in_ideal_arithmetic_is_the_noise_of_a_sum() -> None:
    """Variance of the sum of r noised means, and the distance by which one exchanged sample moves it."""
    rng = np.random.default_rng(9)
    noise = rng.normal(0, NOISE_STD, (200_000, 10)).sum(axis=1)
    distance = 2 * CLIP / BATCH
    assert mu_squared(upload()) == pytest.approx(distance**2 / noise.var(), rel=0.02)


def test_zeroing_a_sample_out_is_half_as_far_as_exchanging_it() -> None:
    assert mu_squared(upload(), Statement(DELTA)) == pytest.approx(LOCAL / 10 / 4)


def test_more_than_one_local_step_earns_nothing_from_the_sum() -> None:
    """One pass of five steps: the local ρ; the reason is given."""
    release = upload(steps=5)
    assert mu_squared(release) == pytest.approx(LOCAL)
    ledger = recompute([release], FACTS, REPLACE)
    assert ledger.epsilon_accounted() > ledger.epsilon_published()
    assert any("later steps differ" in sentence for sentence in ledger.why_different())


def test_noise_of_others_does_not_hide_diverging_steps() -> None:
    """A client whose second gradient magnifies the first difference: neighbours end up further apart than 2ηG/γ.

    With linear loss curvature c > 0 the difference after two steps is (1 + ηc) times that after one, while the others'
    noise in the sum stays what it was: the ratio to the noise exceeds Theorem 1's.
    """
    step, curvature, gradient_gap = 1.0, 3.0, 2 * CLIP / BATCH
    after_one = step * gradient_gap
    after_two = after_one * (1 + step * curvature)
    bound_of_lemma_5 = 2 * step * gradient_gap
    assert after_two > bound_of_lemma_5


@pytest.mark.parametrize(
    ("secure_sum", "statement", "reason"),
    [
        (None, REPLACE, None),
        (SecureSum(10, 10), Statement(DELTA, adjacency="replace", adversary="individual"), "sees every upload"),
        (SecureSum(10, 10, threshold=4), Statement(DELTA, adjacency="replace", colluding=4), "collude"),
        (SecureSum(10, 10, arithmetic="integer"), REPLACE, "integer arithmetic"),
    ],
)
def test_an_opened_sum_leaves_the_local_rho(secure_sum: Any, statement: Statement, reason: str | None) -> None:
    release = upload(secure_sum=secure_sum)
    assert mu_squared(release, statement) == pytest.approx(LOCAL)
    why = recompute([release], FACTS, statement).why_different()
    assert reason is None or any(reason in sentence for sentence in why)


def test_colluders_below_the_threshold_do_not_open_the_sum() -> None:
    statement = Statement(DELTA, adjacency="replace", colluding=3)
    assert mu_squared(upload(secure_sum=SecureSum(10, 10, threshold=4)), statement) == pytest.approx(LOCAL / 7)


def test_clipping_that_follows_local_gradients_forfeits_the_credit_of_the_sum() -> None:
    """MOO with private feedback, Adam, or a clipped upload: it is no multiple of the noised mean."""
    assert mu_squared(upload(linear_upload=False)) == pytest.approx(LOCAL)


def test_single_steps_of_each_round_are_hidden_by_its_own_crowd() -> None:
    """Every round shuffles afresh: a sample may be in the batch of each."""
    crowds = (10, 4, 8, 10, 10)
    afresh = [upload(m, secure_sum=SecureSum(10, s)) for m, s in enumerate(crowds)]
    expected = float(gaussian_epsilon(math.sqrt(sum(LOCAL / s for s in crowds)), DELTA))
    assert recompute(afresh, FACTS, REPLACE).epsilon_accounted() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("steps", [1, 5, 7])
def test_calculator_equals_the_ledger(steps: int) -> None:
    rounds, integers = 4, SecureSum(10, 10, arithmetic="integer")
    releases = [upload(m, steps=steps, secure_sum=integers) for m in range(rounds)]
    ledger = recompute(releases, FACTS, REPLACE)
    result = zcdp_calculator(
        clip=CLIP,
        noise_std=NOISE_STD,
        batch_size=BATCH,
        samples=100,
        local_steps=steps,
        participations=rounds,
        clients_per_round=10,
        delta=DELTA,
    )
    assert result["epsilon_published"] == pytest.approx(ledger.epsilon_published(), rel=1e-12)
    assert result["epsilon_accounted"] == pytest.approx(ledger.epsilon_accounted(), rel=1e-12)


def test_a_dropout_after_the_masked_input_counts_as_transmitted() -> None:
    """Client 9 vanished: it is not among the survivors, but its input was sent and it is charged."""
    _, accounted = recompute([upload(secure_sum=SecureSum(10, 9))], FACTS, REPLACE).client_epsilons()
    assert accounted[9] == accounted[0] > 0


def test_noise_on_samples_protects_no_client() -> None:
    ledger = recompute([upload()], FACTS, Statement(DELTA, unit="client"))
    assert ledger.epsilon_accounted() == math.inf
    assert any("protects a sample" in sentence for sentence in ledger.why_different())


def test_no_noise_is_no_guarantee() -> None:
    ledger = recompute([upload(noise_std=0.0)], FACTS, REPLACE)
    assert ledger.epsilon_published() == ledger.epsilon_accounted() == math.inf


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"clip": 0.0}, "clip"),
        ({"noise_std": -1.0}, "noise_std"),
        ({"batch_size": np.zeros(10, int)}, "batch_size"),
        ({"batch_size": np.ones(9, int)}, "batch_size"),
    ],
)
def test_impossible_records_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        upload(**wrong)


def test_impossible_sums_are_refused() -> None:
    with pytest.raises(ValueError, match="survivors"):
        SecureSum(5, 6)
    with pytest.raises(ValueError, match="arithmetic"):
        SecureSum(5, 5, arithmetic="floating")  # type: ignore[arg-type]


@pytest.mark.parametrize(("samples", "batch", "steps"), [(25, 10, 1), (25, 10, 2), (25, 10, 4), (20, 10, 3), (7, 3, 8)])
def test_a_smaller_last_batch_hides_its_members_less(samples: int, batch: int, steps: int) -> None:
    """Against every way in which one sample can lie in the shuffled passes: the dearest is charged, no more."""
    sizes = [min(batch, samples - start) for start in range(0, samples, batch)]
    steps_of_pass = [min(len(sizes), steps - done) for done in range(0, steps, len(sizes))]
    dearest = sum(max((CLIP / (size * NOISE_STD)) ** 2 for size in sizes[:count]) for count in steps_of_pass)
    facts = facts_of([samples])
    release = ZcdpRelease(1, np.array([0]), CLIP, NOISE_STD, np.array([batch]), np.array([steps]), linear_upload=False)
    (cost,) = release.accounted(facts, Statement(DELTA)).mu_squared
    assert cost == pytest.approx(dearest, rel=1e-12)
