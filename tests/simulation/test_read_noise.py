"""Power control and jammer by the noise that the server reads: that behind its combiner, in all groups of a slot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation, jammer_shortfall
from wirelessfl.assembly.jammer_rehearsal import loud_slots
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.simulation.uplinks.air.plan import AirPlan

FLAT: dict[str, Any] = {"model": "tdl", "delay_spread_s": 0.0}
LOUD: dict[str, Any] = {"uplink__snr_db": 300.0}


def first_plan(**overrides: Any) -> AirPlan:
    scenario = small(**overrides)
    uplink = build_simulation(scenario, PLAN).deployment.uplink
    assert isinstance(uplink, OverTheAir)
    everybody = np.arange(scenario.clients.count)
    plan = uplink.plan(Round(1, everybody), everybody, None)
    assert isinstance(plan, AirPlan)
    return plan


@pytest.mark.parametrize(
    ("antennas", "combiner", "noise_power"), [(1, "sum", 1.0), (4, "sum", 4.0), (4, "max_min", 1.0)]
)
@pytest.mark.parametrize("groups", [1, 4])
def test_least_mean_squared_error_of_what_is_read(
    antennas: int, combiner: str, noise_power: float, groups: int
) -> None:
    """α_u against a grid over Σ (b_i/α_u − p_i)² + d σ²/α_u², σ behind the combiner, with groups that fade alike."""
    plan = first_plan(
        uplink__snr_db=3.0,
        uplink__receiver={"antennas": antennas, "combiner": combiner},
        uplink__power_control={"policy": "mmse"},
        channel__fading={**FLAT, "groups": groups},
    )
    own = plan.links.own
    estimate = np.abs(own.estimate[:, 0, :, 0])
    np.testing.assert_allclose(estimate, estimate[:, :1].repeat(groups, axis=1), rtol=1e-9)
    loudest, noise = estimate[:, 0] * np.sqrt(own.power_budget), noise_power * _dimension()
    gains = np.geomspace(1.0, 1e4, 200_001)
    amplitude = np.minimum(loudest[:, None], gains * own.weight[:, None])
    errors = ((amplitude / gains - own.weight[:, None]) ** 2).sum(axis=0) + noise / gains**2
    assert plan.loudest.server_gain == pytest.approx(gains[errors.argmin()], rel=2e-4)


def _dimension() -> int:
    uplink = build_simulation(small(), PLAN).deployment.uplink
    assert isinstance(uplink, OverTheAir)
    return uplink.dimension


@pytest.mark.parametrize("antennas", [1, 4])
@pytest.mark.parametrize(
    ("control", "jammer"),
    [
        ({"policy": "cross_layer", "epsilon": 1.5}, None),
        ({"policy": "lower_gain", "epsilon": 1.5}, None),
        ({"policy": "privacy_for_free", "epsilon": 1.5}, None),
        ({"policy": "cross_layer", "server_gain": 2000.0}, {"epsilon": 1.5}),
        (
            {"policy": "cross_layer", "server_gain": 2000.0},
            {"epsilon": 1.5, "power_db": -20.0, "on_shortfall": "lower_gain", "max_shortfall": 1.0},
        ),
    ],
    ids=["auto", "lower_gain", "privacy_for_free", "jammer", "weak jammer"],
)
def test_published_epsilon_meets_its_target_behind_the_sum_of_antennas(
    antennas: int, control: dict[str, Any], jammer: dict[str, Any] | None
) -> None:
    """The noise of A antennas adds up in their sum: less would be noise for nothing."""
    simulation, _, _ = run(
        small(uplink__receiver={"antennas": antennas}, uplink__power_control=control, uplink__jammer=jammer, **LOUD)
    )
    assert simulation.ledger.client_epsilons()[0].max() == pytest.approx(1.5, rel=1e-6)


@pytest.mark.parametrize(
    "case", ["sum", "groups", *(pytest.param(name, marks=pytest.mark.slow) for name in ("correlated", "line of sight"))]
)
def test_a_jammer_falls_short_as_often_as_announced_behind_a_combiner(case: str) -> None:
    """Against 300 other rounds, within four standard deviations of 300 and of 250: false alarms at 1e-4.

    Twenty jammers behind each of 50 combiners, alike in law, count as 250 at least.
    """
    cases: dict[str, dict[str, Any]] = {
        "sum": {"uplink__receiver": {"antennas": 4}},
        "correlated": {
            "uplink__receiver": {"antennas": 4, "correlation": {"model": "exponential", "coefficient": 0.9}},
        },
        "groups": {
            "uplink__receiver": {"antennas": 4, "combiner": "random"},
            "channel__fading": {"model": "tdl", "groups": 5, "delay_spread_s": 3e-7},
        },
        "line of sight": {
            "uplink__receiver": {"antennas": 4, "combiner": "random"},
            "channel__fading": {"model": "rician", "k_db": 10.0},
        },
    }
    power_db = {"sum": 14.0, "correlated": 10.0, "groups": 25.0, "line of sight": 22.0}[case]
    scenario = small(
        model__hidden=[1],
        uplink__power_control={"policy": "cross_layer", "server_gain": 60.0},
        uplink__jammer={"epsilon": 1.0, "power_db": power_db, "max_shortfall": 1.0},
        **LOUD,
        **cases[case],
    )
    simulation = build_simulation(scenario, PLAN)
    uplink = simulation.deployment.uplink
    assert isinstance(uplink, OverTheAir) and uplink.jamming is not None
    announced, _ = jammer_shortfall(uplink, simulation.deployment.selection)
    assert 0.1 < announced < 0.9
    everybody, short = np.arange(6), 0
    for number in range(5001, 5301):
        plan = uplink.plan(Round(number, everybody), everybody, None)
        assert isinstance(plan, AirPlan) and plan.jammer_behind is not None
        heard = plan.jammer_gain * abs(plan.jammer_behind.equivalent.weakest_estimate)
        required = uplink.jamming.calibration.required_noise_std(
            uplink.policies[0], plan.loudest, plan.links.own.rows()
        )
        short += np.hypot(heard, plan.noise_std.min()) / plan.loudest.server_gain < required * (1 - 1e-9)
    spread = announced * (1 - announced) * (1 / 300 + 1 / 250)
    assert abs(short / 300 - announced) <= 4 * np.sqrt(spread), (short / 300, announced)


@pytest.mark.parametrize("model", ["clarke", "gauss_markov"])
def test_rehearsed_rounds_have_channels_of_their_own_where_these_go_by_time(model: str) -> None:
    """Correlation of neighbouring rounds, 1 if all began at one instant: within 5/√(49·12) where it is below 0.05."""
    scenario = small(
        rounds=1,
        uplink__power_control={"policy": "cross_layer", "server_gain": 60.0},
        uplink__receiver={"antennas": 2},
        uplink__jammer={"epsilon": 4.0, "antennas": 3, "calibration": "exact"},
        channel__correlation={"model": model, "doppler_hz": 20.0},
    )
    simulation = build_simulation(scenario, PLAN)
    uplink = simulation.deployment.uplink
    assert isinstance(uplink, OverTheAir) and uplink.jamming is not None
    slots = loud_slots(uplink, uplink.jamming, simulation.deployment.selection)
    assert slots is not None and len(slots) == 50
    gains = np.stack([slot.antennas.channel.ravel() for slot in slots])
    correlation = np.vdot(gains[:-1], gains[1:]) / np.vdot(gains, gains) * 50 / 49
    assert abs(correlation) < 0.05 + 5 / np.sqrt(49 * 12)
