"""The jammer's exact calibration over groups of subcarriers, against a search over what the ledger says."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, small
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import InfeasibleError
from wirelessfl.privacy import gaussian_epsilon
from wirelessfl.radio import Moment
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.simulation.uplinks.air.plan import AirPlan

SLOTS = 3
ENDLESS = 1e9
BACKED_OFF = {"uplink__snr_db": -20.0}
SLOW = pytest.mark.slow


def jammed(antennas: int, streams: int, jammer: dict[str, Any] | None = None, **changes: Any) -> Scenario:
    """Eight groups of subcarriers, A antennas of the server and N of the jammer."""
    exact = {"epsilon": 0.5, "antennas": streams, "calibration": "exact", "max_shortfall": 1.0}
    setting: dict[str, Any] = {
        "uplink__receiver": {"antennas": antennas, "combiner": "sum"},
        "uplink__power_control": {"policy": "cross_layer", "server_gain": 20.0},
        "channel__fading": {"model": "tdl", "groups": 8, "delay_spread_s": 3e-7},
    }
    return small(**setting | {"uplink__jammer": exact | (jammer or {})} | changes)


def slots(simulation: Simulation, count: int = SLOTS) -> Iterator[tuple[Round, AirPlan]]:
    """Planned slots with everybody."""
    uplink = simulation.deployment.uplink
    assert isinstance(uplink, OverTheAir)
    for number in range(1, count + 1):
        this = Round(number, np.arange(uplink.network.registry.count))
        yield this, uplink.plan_later(this, np.arange(len(this.clients)), None, 0.0)


def share(simulation: Simulation, this: Round, plan: AirPlan, gain: float) -> float:
    """X/σ of the worst client as the ledger counts it, over what one of M equal rounds may have."""
    uplink, ledger = simulation.deployment.uplink, simulation.ledger
    assert isinstance(uplink, OverTheAir) and uplink.jamming is not None
    calibration: Any = uplink.jamming.calibration
    release: Any = uplink.receive(this, replace(plan, jammer_gain=gain), []).releases[0]
    worst = (release.sensitivity(ledger.facts, ledger.statement) / release.accounted_noise_std).max()
    return float(worst * math.sqrt(calibration.rounds) / calibration.gdp_mu)


def least_gain(simulation: Simulation, this: Round, plan: AirPlan) -> float:
    """The least α_CJ with which the ledger stays within the budget, by bisection."""
    if share(simulation, this, plan, 0.0) <= 1:
        return 0.0
    low, high = 0.0, 1.0
    while share(simulation, this, plan, high) > 1:
        low, high = high, 2 * high
        assert high < ENDLESS
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if share(simulation, this, plan, middle) > 1 else (low, middle)
    return high


FULL = {"uplink__power_control": {"policy": "full_power"}, "uplink__snr_db": 0.0}


@pytest.mark.parametrize(
    ("antennas", "streams", "changes"),
    [
        (1, 1, BACKED_OFF),
        (2, 2, BACKED_OFF),
        (1, 1, FULL),
        *(
            pytest.param(*case, marks=SLOW)
            for case in (
                (1, 1, {}),
                (1, 3, BACKED_OFF),
                (3, 4, {}),
                (2, 3, BACKED_OFF | {"uplink__receiver": {"antennas": 2, "combiner": "max_min"}}),
                (2, 2, FULL),
                (2, 2, {"uplink__iq_packing": True, "privacy__unit": "client"}),
                (2, 2, BACKED_OFF | {"faults__fade_threshold": 0.3}),
                (1, 2, FULL | {"faults__fade_threshold": 0.3}),
            )
        ),
    ],
    ids=str,
)
def test_it_jams_no_more_than_the_ledger_needs(antennas: int, streams: int, changes: dict[str, Any]) -> None:
    """Clients back off by their weakest group in all groups; the loudest and the worst jammed need not be one group."""
    simulation = build_simulation(jammed(antennas, streams, **changes), PLAN)
    for this, plan in slots(simulation):
        assert plan.jammer_gain > 0
        assert plan.jammer_gain == pytest.approx(least_gain(simulation, this, plan), rel=1e-9)


@pytest.mark.parametrize(("antennas", "streams"), [(2, 2), pytest.param(3, 3, marks=SLOW), (1, 1)])
def test_short_of_power_the_server_gain_is_low_enough(antennas: int, streams: int) -> None:
    """Also for clients that back off, who arrive as loudly at a lower gain until they reach it."""
    short = {"power_db": 0.0, "on_shortfall": "lower_gain"}
    simulation = build_simulation(jammed(antennas, streams, short, **BACKED_OFF), PLAN)
    met = [share(simulation, this, plan, plan.jammer_gain) for this, plan in slots(simulation)]
    assert max(met) <= 1 + 1e-9 and (antennas == 1 or max(met) == pytest.approx(1.0, rel=1e-9))


@pytest.mark.parametrize(("antennas", "streams"), [(2, 1), pytest.param(3, 2, marks=SLOW)])
def test_a_target_below_the_floor_is_refused_with_the_least_that_is_met(antennas: int, streams: int) -> None:
    """The loudest of all that no jamming hides in 50 rounds and 8 groups, as the ledger counts it without limit."""
    setting: dict[str, Any] = {"rounds": 50}
    simulation = build_simulation(jammed(antennas, streams, **setting), PLAN)
    uplink: Any = simulation.deployment.uplink
    floor = max(share(simulation, this, plan, ENDLESS) for this, plan in slots(simulation, 50))
    least = float(gaussian_epsilon(uplink.jamming.calibration.gdp_mu * floor, simulation.ledger.statement.delta))
    refused = {"max_shortfall": 0.0}
    with pytest.raises(InfeasibleError, match=r"nulls the jammer") as caught:
        build_simulation(jammed(antennas, streams, refused, **setting), PLAN)
    found = re.search(r"epsilon (\S+) on", str(caught.value))
    assert found is not None and caught.value.exit_code == 3
    assert least * (1 - 1e-6) <= float(found[1]) <= 1.01 * least
    build_simulation(jammed(antennas, streams, refused | {"epsilon": float(found[1])}, **setting), PLAN)


@pytest.mark.parametrize("role", ["external", "rotating"])
def test_no_jamming_is_calibrated_against_colluders(role: str) -> None:
    """The ledger counts none against them: what α_CJ is does not matter to ε."""
    costs = []
    for margin in (1.0, 100.0):
        theorem = {"calibration": "theorem", "role": role, "margin": margin}
        simulation = build_simulation(jammed(1, 1, theorem, privacy__colluding=1), PLAN)
        uplink, ledger = simulation.deployment.uplink, simulation.ledger
        assert isinstance(uplink, OverTheAir)
        this = Round(1, np.arange(uplink.network.registry.count))
        plan = uplink.plan_later(this, np.arange(1, len(this.clients)), 0 if role == "rotating" else None, 0.0)
        assert plan.jammer_gain > 0
        (release,) = uplink.receive(this, plan, []).releases
        costs.append(release.accounted(ledger.facts, ledger.statement).mu_squared)
    np.testing.assert_array_equal(costs[0], costs[1])
    with pytest.raises(InfeasibleError, match=r"calibration: found exact with privacy\.colluding: 1; a coll"):
        build_simulation(jammed(1, 1, {"role": role}, privacy__colluding=1), PLAN)


@pytest.mark.parametrize("rate", [0.3, 1e-6])
@pytest.mark.parametrize(
    ("receiver", "jammer"),
    [
        ({"antennas": 1}, {"power_db": -20.0}),
        ({"antennas": 1}, {"power_db": -20.0, "calibration": "theorem", "role": "rotating"}),
        ({"antennas": 2, "combiner": "sum"}, {"power_db": -20.0, "calibration": "theorem"}),
        ({"antennas": 2, "combiner": "max_min"}, {"power_db": -20.0, "calibration": "theorem"}),
    ],
    ids=["exact", "rotating", "sum", "beam"],
)
def test_a_jammer_that_is_too_weak_is_refused_whoever_comes_first(
    receiver: dict[str, Any], jammer: dict[str, Any], rate: float
) -> None:
    """Also where the first round, or every round that is planned ahead, has no clients."""
    ample = {name: value for name, value in jammer.items() if name != "power_db"}
    selection = {"scheme": "poisson", "rate": rate}
    empty = 0
    for seed in range(1, 7):
        setting: dict[str, Any] = {
            "seed": seed,
            "clients__selection": selection,
            "channel__fading": {"model": "rayleigh"},
            "uplink__receiver": receiver,
        }
        simulation = build_simulation(jammed(1, 1, ample | {"antennas": 1}, **setting), PLAN)
        empty += len(simulation.deployment.selection.select(Moment(1, 0.0))) == 0
        with pytest.raises(InfeasibleError, match=r"power_db: found -20\.0 dB, too little .* in 100\.0% of the rounds"):
            build_simulation(jammed(1, 1, jammer | {"antennas": 1, "max_shortfall": 0.5}, **setting), PLAN)
    assert empty >= 1


def test_a_round_in_which_all_are_in_a_fade_stands_for_none() -> None:
    """Clients that truncation silences need no jamming, and those of the next round do."""
    setting: dict[str, Any] = {
        "channel__fading": {"model": "rayleigh"},
        "uplink__power_control": {"policy": "truncated_inversion"},
        "faults__fade_threshold": 1.2,
        "clients__count": 3,
    }
    silent = 0
    for seed in range(1, 7):
        simulation = build_simulation(jammed(1, 1, seed=seed, **setting), PLAN)
        _, plan = next(slots(simulation, 1))
        silent += len(plan.senders) == 0
        with pytest.raises(InfeasibleError, match=r"power_db: found -20\.0 dB, too little"):
            build_simulation(jammed(1, 1, {"power_db": -20.0, "max_shortfall": 0.5}, seed=seed, **setting), PLAN)
    assert silent >= 1


WALKING: dict[str, Any] = {
    "channel": {
        "correlation": {"model": "clarke"},
        "placement": {"scheme": "random_waypoint", "radius_m": 100, "min_speed": 5.0, "max_speed": 15.0},
        "pathloss": {"model": "log_distance", "exponent": 3.0},
    }
}


@pytest.mark.parametrize("calibration", ["exact", "theorem"])
@pytest.mark.parametrize("role", ["external", "rotating"])
@pytest.mark.parametrize("channel", [{"channel__fading": {"model": "rayleigh"}}, WALKING], ids=["drawn", "walking"])
def test_where_all_are_silent_in_all_rehearsed_rounds_all_are_looked_at(
    calibration: str, role: str, channel: dict[str, Any]
) -> None:
    """As in a long run one may send some time; also where nodes walk and channels remember."""
    setting: dict[str, Any] = {
        "uplink__power_control": {"policy": "truncated_inversion"},
        "faults__fade_threshold": 1e3,
        "clients__selection": {"scheme": "uniform", "count": 2},
        "uplink__receiver": {"antennas": 1},
    }
    jammer: dict[str, Any] = {"epsilon": 0.5, "calibration": calibration, "role": role}
    build_simulation(small(uplink__jammer=jammer, **setting, **channel), PLAN)
    with pytest.raises(InfeasibleError, match=r"power_db: found -200\.0 dB, too little"):
        build_simulation(small(uplink__jammer=jammer | {"power_db": -200.0}, **setting, **channel), PLAN)
