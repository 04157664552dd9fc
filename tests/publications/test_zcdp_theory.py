"""Lemma 5, Theorem 1 and Lemma 6 of the zCDP paper: the verdicts, and the cases they rest on."""

from __future__ import annotations

import numpy as np
import pytest

from publications.claims import Outcome, judge
from publications.tables import Tables
from publications.zcdp import ZCDP
from publications.zcdp_theory import THEORY_CLAIMS, THEORY_FIGURE
from publications.zcdp_uploads import UPLOADS, Upload, upload_rows
from wirelessfl.privacy import gaussian_epsilon, zcdp_epsilon

NO_RUNS = Tables({"size": "small"}, {})


def test_two_samples_and_two_steps_by_hand() -> None:
    """Step 1: ±1/2 by the canary alone. Step 2: both, ±1. So 3 apart, Lemma 5 says 2; ρ = 9/4, Theorem 1 says 1."""
    one = Upload(2, 2)
    assert (one.end(1), one.end(-1)) == (1.5, -1.5)
    assert (one.moved, one.lemma_5) == (3, 2)
    assert (one.rho, one.theorem_1) == (2.25, 1)
    assert one.published_epsilon == pytest.approx(float(zcdp_epsilon(1.0, 1e-4)))
    assert one.exact_epsilon == pytest.approx(float(gaussian_epsilon(np.sqrt(4.5), 1e-4)))
    assert one.exact_epsilon > one.published_epsilon


@pytest.mark.parametrize(("samples", "steps"), [(1, 1), (1, 5), (3, 1), (50, 1)])
def test_one_sample_or_one_step_keeps_lemma_5(samples: int, steps: int) -> None:
    one = Upload(samples, steps)
    assert one.moved == pytest.approx(one.lemma_5)
    assert one.rho == pytest.approx(one.theorem_1)


@pytest.mark.parametrize(("samples", "steps"), [(2, 3), (7, 4), (500, 10)])
def test_all_others_follow_after_the_first_step(samples: int, steps: int) -> None:
    assert Upload(samples, steps).moved == pytest.approx(2 * (1 / samples + steps - 1))


def test_noise_of_the_device_does_not_cross_the_flat_part() -> None:
    """The first step must be told from noise of σ = 10⁻³: half a step is left of it, 50 σ in the largest case."""
    assert min(1 / (2 * one.samples) for one in UPLOADS) / 1e-3 >= 50


@pytest.mark.slow
def test_verdicts() -> None:
    found = {claim.text: judge(claim, NO_RUNS) for claim in ZCDP.claims}
    assert found["Each device has the (ε, δ) of Theorem 1."].outcome not in (Outcome.CONFIRMED, Outcome.NOT_TESTED)
    outcomes = [judge(claim, NO_RUNS).outcome is Outcome.CONFIRMED for claim in THEORY_CLAIMS]
    assert outcomes == [False, False, False, True, True]
    assert "2 of 2 devices, no noise, τ = 2 (from round 2 on)" in found[THEORY_CLAIMS[2].text].reason
    assert all(found[claim.text].effect is not None for claim in THEORY_CLAIMS)


def test_theorem_1_is_judged_by_its_sum_where_its_condition_is_met() -> None:
    """Whole passes only: no count of single steps of a larger pass, of which the theorem does not speak."""
    claim = next(claim for claim in ZCDP.claims if claim.source == "V, Theorem 1")
    numbers = judge(claim, NO_RUNS).numbers
    assert "m = γ = 2, τ = 2: published 7.07, exactly 9.57" in numbers
    assert "62,500 devices: published 1.8" in numbers


def test_the_rate_does_not_follow_from_eq_14() -> None:
    """By hand, √(nK) times eq. (14) with η = √(n/K): 2 + n/2 by β² = 1 alone, 2 + σ²/2 by noise alone with r = n."""
    found = judge(THEORY_CLAIMS[0], NO_RUNS)
    assert found.outcome is Outcome.CONTRADICTED
    assert found.effect is not None
    assert found.effect.value == pytest.approx((2 + 5000) / (2 + 50))
    assert "52 for 100 devices, 5,002 for 10,000" in found.numbers
    assert "2.5 at K and 52 at 100 K" in found.numbers


@pytest.mark.parametrize("steps", [2, 5, 40])
def test_the_factor_of_four_between_lemma_8_and_b_k(steps: int) -> None:
    """With it Σ_s 4 s Σ_{h<s} weighs the first gradient of a round by 2 τ (τ − 1), which times 3 is at most 6 τ²."""
    weights = [sum(4 * s for s in range(h + 1, steps)) for h in range(steps)]
    assert max(weights) == 2 * steps * (steps - 1)
    assert max(weights) > steps**2 or steps == 2  # what eq. (23) has
    assert 3 * max(weights) <= 6 * steps**2


def test_table_and_picture() -> None:
    rows = upload_rows()
    assert [(row["m = γ"], row["τ"], row["it moves by"]) for row in rows[:2]] == [(2, 1, "1 ηG"), (2, 2, "3 ηG")]
    panels = THEORY_FIGURE.draw(NO_RUNS).axes
    assert len(panels) == 3
    assert "not on this axis" in panels[0].texts[0].get_text()
    assert panels[0].get_ylabel() == "optimality gap"
