"""Privacy for free: the convex program against scipy and its KKT conditions, the budget, the online policy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from tests.radio.strategies import CLIP, example_links, rounds
from tests.statistics import assert_mean, shifted
from wirelessfl.radio import (
    AdaptivePowerControl,
    AirInterface,
    Links,
    PrivacyBudget,
    PrivacyForFree,
    Rayleigh,
    StaticPrivacyForFree,
)
from wirelessfl.radio.privacy_for_free import _mean_squared_limit, optimal_squared_gains
from wirelessfl.streams import Streams

AIR = AirInterface(clip=CLIP, channel_noise_std=1.3, dimension=30)
COST = 0.2
BUDGET = PrivacyBudget(cost=COST, rounds=12, total_samples=800)
limit_lists = st.lists(st.floats(1e-2, 1e2), min_size=1, max_size=12).map(np.array)


@given(limits=limit_lists, share=st.floats(0.01, 2.0), contraction=st.floats(0.5, 1.0))
def test_the_karush_kuhn_tucker_conditions(limits: np.ndarray, share: float, contraction: float) -> None:
    """With λ = κ^{−m}/v_m² of an uncapped round: equal among them, not larger than that of capped ones."""
    budget = share * limits.sum()
    squared = optimal_squared_gains(limits, budget, contraction)
    assert np.all(squared > 0)
    assert np.all(squared <= limits)
    assert squared.sum() == pytest.approx(min(budget, limits.sum()), rel=1e-9)
    multiplier = contraction ** -np.arange(len(limits)) / squared**2
    free = squared < limits * (1 - 1e-9)
    if free.any():
        np.testing.assert_allclose(multiplier[free], multiplier[free][0], rtol=1e-6)
        assert np.all(multiplier[~free] >= multiplier[free][0] * (1 - 1e-6))
    else:
        assert budget >= limits.sum() * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_a_general_solver_finds_nothing_better(seed: int) -> None:
    generator = np.random.default_rng(seed)
    limits, contraction = generator.uniform(0.2, 3.0, 8), generator.uniform(0.7, 1.0)
    budget, importance = 0.4 * limits.sum(), contraction ** -np.arange(8.0)
    squared = optimal_squared_gains(limits, budget, contraction)
    # SLSQP's ftol is absolute: about 45, the objective is rounded coarser than 1e-13, and no step towards the optimum
    # makes it smaller (status 8). Relative to its start it is of order one.
    at_start = np.sum(importance) * 16 / budget
    search = optimize.minimize(
        lambda v: np.sum(importance / v) / at_start,
        np.full(8, budget / 16),
        jac=lambda v: -importance / v**2 / at_start,
        bounds=[(1e-6, limit) for limit in limits],
        constraints={"type": "ineq", "fun": lambda v: budget - v.sum(), "jac": lambda v: -np.ones(8)},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert search.success
    assert np.sum(importance / squared) / at_start <= search.fun * (1 + 1e-7)
    np.testing.assert_allclose(squared, search.x, rtol=1e-3)


def test_equal_rounds_share_equally_and_later_rounds_weigh_more() -> None:
    np.testing.assert_allclose(optimal_squared_gains(np.full(4, np.inf), 2.0, 1.0), np.full(4, 0.5))
    growing = optimal_squared_gains(np.full(4, np.inf), 2.0, 0.81)
    np.testing.assert_allclose(growing[1:] / growing[:-1], 1 / 0.9)


@given(links=rounds())
def test_static_takes_an_equal_share_unless_a_channel_is_too_weak(links: Links) -> None:
    plan = StaticPrivacyForFree(BUDGET).plan(links, 1, AIR)
    share = 0.5 * COST * (800 * 1.3) ** 2 / 12
    limit = np.min(np.abs(links.estimate) * np.sqrt(links.power_budget) / links.weight)
    assert plan.server_gain == pytest.approx(min(np.sqrt(share), limit))


@pytest.mark.slow
@given(columns=st.lists(rounds(max_clients=3), min_size=12, max_size=12), contraction=st.floats(0.5, 1.0))
def test_the_adaptive_policy_never_overspends(columns: list[Links], contraction: float) -> None:
    policy = PrivacyForFree(BUDGET, contraction)
    spent = 0.0
    for round_index, links in enumerate(columns, start=1):
        plan = policy.plan(links, round_index, AIR)
        policy = policy.after(plan)
        if not plan.silent.all():
            assert np.all(policy.transmit(plan, links).backoff <= 1 + 1e-9)
            spent += 2 * plan.server_gain**2 / (800 * 1.3) ** 2
    assert spent <= COST * (1 + 1e-9)


def test_online_on_strong_channels_is_the_offline_optimum() -> None:
    links = strong_links()
    policy, gains = PrivacyForFree(BUDGET, 0.9), []
    for round_index in range(1, 13):
        plan = policy.plan(links, round_index, AIR)
        policy = policy.after(plan)
        gains.append(plan.server_gain**2)
    offline = optimal_squared_gains(np.full(12, np.inf), BUDGET.squared_gains(1.3), 0.9)
    np.testing.assert_allclose(gains, offline)


def strong_links() -> Links:
    ones = np.ones(3)
    channel = np.full(3, 1e6 + 0j)
    return Links(channel, channel, ones / 3, ones, ones, ones * 1e12)


def test_silence_once_the_budget_or_the_rounds_are_over() -> None:
    links = example_links(4)
    overdrawn = PrivacyForFree(BUDGET, 0.9, spent=BUDGET.squared_gains(1.3))
    assert overdrawn.plan(links, 3, AIR).silent.all()
    assert overdrawn.after(overdrawn.plan(links, 3, AIR)) == overdrawn
    assert PrivacyForFree(BUDGET, 0.9).plan(links, 13, AIR).silent.all()
    assert not PrivacyForFree(BUDGET, 0.9).plan(links, 12, AIR).silent.any()


def test_its_state_survives_a_checkpoint() -> None:
    policy = PrivacyForFree(BUDGET, 0.9)
    assert isinstance(policy, AdaptivePowerControl)
    later = policy.after(policy.plan(example_links(4), 1, AIR))
    assert later != policy
    assert policy.restored(later.state()) == later


def test_the_expected_limit_is_that_of_the_weakest_rayleigh_channel() -> None:
    links, trials = example_links(5), 40_000
    nodes = np.arange(trials * 5)
    power = np.abs(Rayleigh().draw(Streams(shifted(43)).nodes("fading", 0, nodes))).reshape(trials, 5) ** 2
    limits = np.min(power * links.mean_estimate_power * links.power_budget / links.weight**2, axis=1)
    expected = _mean_squared_limit(links)
    assert_mean(limits, expected, std=expected)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((0.0, 1, 1), "cost"),
        ((np.nan, 1, 1), "cost"),
        ((np.inf, 1, 1), "cost"),
        ((1, 0, 1), "rounds"),
        ((1, 1, 0), "total"),
    ],
)
def test_bad_budgets_are_refused(arguments: tuple[float, int, int], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        PrivacyBudget(*arguments)


@pytest.mark.parametrize("contraction", [0.0, 1.1, np.nan])
def test_bad_contractions_are_refused(contraction: float) -> None:
    with pytest.raises(ValueError, match="contraction"):
        PrivacyForFree(BUDGET, contraction)


def test_a_contraction_that_underflows_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves nothing"):
        PrivacyForFree(PrivacyBudget(1.0, 10_000, 100), 0.5)
