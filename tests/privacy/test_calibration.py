"""Noise from epsilon, jammers, and the calculators of the command line."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.speed import rest_slow
from wirelessfl.errors import InfeasibleError
from wirelessfl.privacy import (
    dp_sgd_epsilon,
    dp_sgd_noise_multiplier,
    gaussian_delta,
    gaussian_epsilon,
    jammer_calculator,
    zcdp_calculator,
    zcdp_epsilon,
)

JAMMER: dict[str, Any] = {
    "epsilon": 1.0,
    "delta": 1e-5,
    "rounds": 80,
    "samples": 5000,
    "server_gain": 676.0,
    "channel_noise_std": 1.0,
}
ZCDP: dict[str, Any] = {
    "clip": 1.0,
    "noise_std": 0.02,
    "batch_size": 1,
    "samples": 100,
    "local_steps": 100,
    "participations": 1,
    "clients_per_round": 62_500,
    "delta": 1e-4,
}


@pytest.mark.parametrize("accountant", ["pld", "rdp", "gdp", "zcdp"])
@pytest.mark.parametrize(("epsilon", "steps", "rate"), rest_slow([(8.0, 20, 0.3), (2.0, 300, 0.02), (1.0, 10, 1.0)]))
def test_noise_meets_epsilon_and_barely(accountant: Any, epsilon: float, steps: int, rate: float) -> None:
    multiplier = dp_sgd_noise_multiplier(epsilon, steps, 1e-5, rate, accountant)
    assert dp_sgd_epsilon(multiplier, steps, 1e-5, rate, accountant) <= epsilon
    assert dp_sgd_epsilon(multiplier * 0.999, steps, 1e-5, rate, accountant) > epsilon


def test_noise_without_sampling_is_the_closed_form() -> None:
    multiplier = dp_sgd_noise_multiplier(1.0, 25, 1e-5)
    assert gaussian_delta(1.0, 5 / multiplier) == pytest.approx(1e-5, rel=1e-10)


def test_calculators_return_the_names_of_the_contract() -> None:
    epsilon = dp_sgd_epsilon(noise_multiplier=1.0, steps=1, delta=1e-5)
    assert epsilon == pytest.approx(float(gaussian_epsilon(1.0, 1e-5)))
    assert dp_sgd_noise_multiplier(epsilon=epsilon, steps=1, delta=1e-5) == pytest.approx(1.0, rel=1e-9)
    assert set(jammer_calculator(**JAMMER)) == {"jammer_gain", "needed"}
    assert set(zcdp_calculator(**ZCDP)) == {"rho_published", "epsilon_published", "rho_accounted", "epsilon_accounted"}


def test_jammer_goldens() -> None:
    """ε = 1, δ = 1e-5, M = 80, |D| = 5,000, α_u = 676, σ_c = 1, |h_CJ| = 1 → 5.8411, with margin 7 40.888."""
    assert round(float(jammer_calculator(**JAMMER)["jammer_gain"]), 4) == 5.8411
    assert round(float(jammer_calculator(**JAMMER, margin=7.0)["jammer_gain"]), 3) == 40.888


def test_jammer_theorem_is_the_printed_formula() -> None:
    log_term = math.log(1e5)
    a = -log_term + math.sqrt(log_term**2 + log_term)
    printed = 676 / 0.6 * math.sqrt(80 * log_term / (2 * 5000**2 * a**2) - 1 / 676**2)
    assert jammer_calculator(**JAMMER, jammer_channel=0.6)["jammer_gain"] == pytest.approx(printed, rel=1e-9)


@pytest.mark.parametrize("sensitivity", [None, 0.001])
def test_jammer_exact_meets_the_target_exactly(sensitivity: float | None) -> None:
    gain = jammer_calculator(**JAMMER, calibration="exact", sensitivity=sensitivity)["jammer_gain"]
    noise_std = math.hypot(gain, 1.0) / 676
    reach = 1 / 5000 if sensitivity is None else sensitivity
    assert gaussian_epsilon(math.sqrt(80) * reach / noise_std, 1e-5) == pytest.approx(1.0, rel=1e-9)


def test_jammer_is_not_needed_where_the_channel_suffices() -> None:
    assert jammer_calculator(**{**JAMMER, "server_gain": 1.0}) == {"jammer_gain": 0.0, "needed": False}


def test_zcdp_example_of_the_specification() -> None:
    """With n = τ = 100, γ = 1, σ = 0.02, r = 62,500: published ε = 1.80 at δ = 1e-4, measured at least 5.08."""
    result = zcdp_calculator(**ZCDP)
    assert round(result["epsilon_published"], 2) == 1.80
    assert result["epsilon_accounted"] > 5.08
    assert result["rho_accounted"] == pytest.approx(2 / 0.02**2)


def test_zcdp_integers_earn_no_credit_of_the_sum() -> None:
    """One local step a round in a secure sum of rounded noise: every round costs the local ρ, as a run says."""
    result = zcdp_calculator(**{**ZCDP, "local_steps": 1, "batch_size": 10, "participations": 20})
    assert result["rho_accounted"] == pytest.approx(20 * 2 / (10 * 0.02) ** 2, rel=1e-12)
    assert result["epsilon_published"] == pytest.approx(float(zcdp_epsilon(result["rho_published"], 1e-4)))


def test_zcdp_a_batch_larger_than_the_data_is_the_data() -> None:
    assert zcdp_calculator(**{**ZCDP, "batch_size": 101}) == zcdp_calculator(**{**ZCDP, "batch_size": 100})


def test_zcdp_part_of_a_pass_counts_as_a_whole_one() -> None:
    whole, part = (zcdp_calculator(**{**ZCDP, "local_steps": steps, "batch_size": 10}) for steps in (10, 11))
    assert part["rho_accounted"] == pytest.approx(2 * whole["rho_accounted"])
    assert part["rho_published"] == pytest.approx(1.1 * whole["rho_published"])


def test_unreachable_targets_are_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="no noise multiplier"):
        dp_sgd_noise_multiplier(1e-9, 10**6, 1e-12, 0.5, "zcdp")


@pytest.mark.parametrize(
    ("calculator", "arguments", "wrong"),
    [
        (dp_sgd_epsilon, {"noise_multiplier": 1.0, "steps": 1, "delta": 1e-5}, {"noise_multiplier": 0.0}),
        (dp_sgd_epsilon, {"noise_multiplier": 1.0, "steps": 1, "delta": 1e-5}, {"noise_multiplier": math.nan}),
        (dp_sgd_epsilon, {"noise_multiplier": 1.0, "steps": 1, "delta": 1e-5}, {"steps": 0}),
        (dp_sgd_epsilon, {"noise_multiplier": 1.0, "steps": 1, "delta": 1e-5}, {"delta": 1.0}),
        (dp_sgd_epsilon, {"noise_multiplier": 1.0, "steps": 1, "delta": 1e-5}, {"sample_rate": 1.1}),
        (dp_sgd_epsilon, {"noise_multiplier": 1.0, "steps": 1, "delta": 1e-5}, {"sample_rate": 0.0}),
        (dp_sgd_noise_multiplier, {"epsilon": 1.0, "steps": 1, "delta": 1e-5}, {"epsilon": 0.0}),
        (dp_sgd_noise_multiplier, {"epsilon": 1.0, "steps": 1, "delta": 1e-5}, {"epsilon": math.inf}),
        (dp_sgd_noise_multiplier, {"epsilon": 1.0, "steps": 1, "delta": 1e-5}, {"delta": 0.0}),
        (dp_sgd_noise_multiplier, {"epsilon": 1.0, "steps": 1, "delta": 1e-5}, {"sample_rate": 2.0}),
        (jammer_calculator, JAMMER, {"epsilon": -1.0}),
        (jammer_calculator, JAMMER, {"delta": 1.5}),
        (jammer_calculator, JAMMER, {"rounds": 0}),
        (jammer_calculator, JAMMER, {"samples": 0}),
        (jammer_calculator, JAMMER, {"server_gain": 0.0}),
        (jammer_calculator, JAMMER, {"channel_noise_std": -1.0}),
        (jammer_calculator, JAMMER, {"jammer_channel": 0.0}),
        (jammer_calculator, JAMMER, {"calibration": "guess"}),
        (jammer_calculator, JAMMER, {"sensitivity": 0.1}),
        (jammer_calculator, JAMMER, {"calibration": "exact", "sensitivity": 0.0}),
        (zcdp_calculator, ZCDP, {"clip": 0.0}),
        (zcdp_calculator, ZCDP, {"noise_std": 0.0}),
        (zcdp_calculator, ZCDP, {"batch_size": 0}),
        (zcdp_calculator, ZCDP, {"local_steps": 0}),
        (zcdp_calculator, ZCDP, {"participations": 0}),
        (zcdp_calculator, ZCDP, {"clients_per_round": 0}),
        (zcdp_calculator, ZCDP, {"delta": -0.1}),
    ],
)
def test_bad_input_is_refused(calculator: Callable[..., Any], arguments: dict[str, Any], wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(reversed(wrong))):
        calculator(**{**arguments, **wrong})
