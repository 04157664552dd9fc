"""Every power control in a run: budget, ledger, limits with a known answer, and nobody to plan for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_build import variants
from wirelessfl.assembly import build_simulation, jammer_shortfall
from wirelessfl.errors import ScenarioError
from wirelessfl.privacy import gaussian_epsilon
from wirelessfl.radio import CrossLayer, PrivacyForFree, StaticPrivacyForFree, check_power_control
from wirelessfl.scenario import Scenario, load_scenario
from wirelessfl.scenario.power_control import PowerControl
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.trace import Status

# no_csi goes with fsk_vote alone, which has tests of its own
POLICIES = [variant().policy for variant in variants(PowerControl) if variant().policy != "no_csi"]
NEEDED = {"cotaf": {"expected_norms": [0.8] * 40}}
# means and variances are told apart without noise, and no jammer changes that
ACCOUNTED = [policy for policy in POLICIES if policy != "ris_fl"]
PEAK_LIMITED = [policy for policy in POLICIES if policy != "cotaf"]
WITHOUT_THEOREM = ["full_power", "truncated_inversion", "weakest_inversion", "cotaf", "gbma", "mmse"]
# float32 parameters, three rounds of six updates: rounding stays well below this.
ROUNDING = 2e-6


def over_the_air(policy: str, snr_db: float = 1.0, options: dict[str, Any] | None = None, **overrides: Any) -> Scenario:
    """The small scenario under a policy, with a threshold for those that need one."""
    uplink = {
        "kind": "over_the_air",
        "snr_db": snr_db,
        "power_control": {"policy": policy, **NEEDED.get(policy, {}), **(options or {})},
    }
    return small(uplink=uplink, **{"faults__fade_threshold": 0.05, **overrides})


def uplink_of(scenario: Scenario) -> OverTheAir:
    uplink = build_simulation(scenario, PLAN).deployment.uplink
    assert isinstance(uplink, OverTheAir)
    return uplink


@pytest.mark.parametrize("policy", POLICIES)
def test_every_power_control_can_be_built_and_conforms(policy: str) -> None:
    check_power_control(uplink_of(over_the_air(policy)).policies[0])


def test_schedules_of_privacy_for_free() -> None:
    static = uplink_of(over_the_air("privacy_for_free", options={"schedule": "static"})).policies[0]
    adaptive = uplink_of(over_the_air("privacy_for_free", options={"contraction": 0.9})).policies[0]
    assert isinstance(static, StaticPrivacyForFree)
    assert isinstance(adaptive, PrivacyForFree) and adaptive.contraction == 0.9
    check_power_control(static)


@pytest.mark.parametrize("policy", PEAK_LIMITED)
@pytest.mark.parametrize("snr_db", [-20.0, 1.0, 40.0])
def test_energy_stays_inside_the_budget(policy: str, snr_db: float) -> None:
    simulation, rounds, _ = run(over_the_air(policy, snr_db, channel__csi={"error_std": 0.3}))
    budget = simulation.deployment.network.registry.power_budget
    for this in rounds:
        sent = this.slots["tx_energy"][this.round.with_status(Status.PARTICIPATED)]
        assert np.all(sent <= budget * (1 + 1e-6))


@pytest.mark.parametrize("policy", ACCOUNTED)
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_the_ledger_counts_what_arrives_at_the_clip(policy: str, adjacency: str) -> None:
    """By hand: a client's whole update moves y by 2|h_i α_i| τ; rounds compose as Gaussians."""
    scenario = over_the_air(policy, -10.0, channel__csi={"error_std": 0.2}, privacy__adjacency=adjacency, rounds=4)
    simulation, rounds, _ = run(scenario)
    clip, mu_squared = 1.0, np.zeros(6)
    for this in rounds:
        received = np.hypot(this.slots["channel_re"], this.slots["channel_im"]) * this.slots["tx_gain_abs"] * clip
        mu_squared += np.nan_to_num((2 * received / this.values["channel_noise_std"]) ** 2)
    expected = gaussian_epsilon(np.sqrt(mu_squared), scenario.privacy.delta)
    np.testing.assert_allclose(simulation.ledger.client_epsilons()[1], expected, rtol=1e-9)


@pytest.mark.parametrize("schedule", ["static", "adaptive"])
@pytest.mark.parametrize("snr_db", [-10.0, 60.0])
def test_privacy_for_free_spends_its_epsilon_where_channels_allow(schedule: str, snr_db: float) -> None:
    options = {"epsilon": 3.0, "schedule": schedule}
    simulation, rounds, _ = run(over_the_air("privacy_for_free", snr_db, options, rounds=6, faults__fade_threshold=0.0))
    spent = simulation.ledger.epsilon_published()
    if snr_db == 60.0:
        assert spent == pytest.approx(3.0, rel=1e-9)
    else:
        assert 0 < spent < 3.0
    for this in rounds:
        np.testing.assert_allclose(this.slots["backoff"], 1.0, rtol=1e-12)
    gains = [this.values["server_gain"] for this in rounds]
    if schedule == "adaptive" and snr_db == 60.0:
        # κ^{−m/2}: each round's squared gain is larger by 1/sqrt(0.99).
        np.testing.assert_allclose(np.square(gains[1:]) / np.square(gains[:-1]), 0.99**-0.5, rtol=1e-9)


@pytest.mark.parametrize("policy", WITHOUT_THEOREM)
def test_without_a_theorem_no_epsilon_is_published(policy: str) -> None:
    simulation, _, _ = run(over_the_air(policy))
    assert np.isinf(simulation.ledger.epsilon_published()) and np.isfinite(simulation.ledger.epsilon_accounted())
    assert any("states no privacy theorem" in reason for reason in simulation.ledger.why_different())


def test_lower_gain_is_the_jammer_without_its_energy() -> None:
    """The same σ_m as a jammer with the same target, and the same published ε."""
    jammed = run(small(uplink__jammer={"epsilon": 1.5}))[1]
    quiet = run(over_the_air("lower_gain", options={"epsilon": 1.5}, faults__fade_threshold=0.0))[1]
    for one, other in zip(jammed, quiet, strict=True):
        assert one.values["effective_noise_std"] == pytest.approx(other.values["effective_noise_std"], rel=1e-9)
        assert other.values["jammer_energy"] == 0.0 < one.values["jammer_energy"]
    assert quiet[-1].values["epsilon_published"] == pytest.approx(1.5, rel=1e-9)


def test_lower_gain_meets_the_accounted_target() -> None:
    options = {"epsilon": 3.0, "calibration": "exact"}
    _, rounds, _ = run(over_the_air("lower_gain", options=options, rounds=5, channel__csi={"error_std": 0.2}))
    assert 0.5 * 3.0 < rounds[-1].values["epsilon_accounted"] <= 3.0 * (1 + 1e-9)


@pytest.mark.parametrize("policy", POLICIES)
def test_without_noise_on_a_flat_channel_all_give_federated_averaging(policy: str) -> None:
    large = {"epsilon": 1e9}
    options = {"cross_layer": {"server_gain": 1e9}, "lower_gain": large, "privacy_for_free": large}
    flat = {"channel__fading": {"model": "static"}, "training__steps": 2, "training__epochs": None}
    found, rounds, _ = run(over_the_air(policy, 200.0, options.get(policy), **flat))
    ideal, _, _ = run(small(uplink={"kind": "ideal", "clip": 1.0}, **flat))
    # What noise there is still passes, at six standard deviations; training may amplify it by a little.
    noise = float(np.sqrt(sum(this.values["effective_noise_std"] ** 2 for this in rounds)))
    assert noise < ROUNDING
    np.testing.assert_allclose(found.state.parameters, ideal.state.parameters, rtol=0, atol=ROUNDING + 6 * noise)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_round_in_which_nobody_is_heard_changes_nothing(policy: str) -> None:
    jammer = {"epsilon": 1.0} if policy in ACCOUNTED else None
    scenario = over_the_air(policy, faults__fade_threshold=1e9, uplink__jammer=jammer)
    simulation = build_simulation(scenario, PLAN)
    before = simulation.state.parameters.copy()
    rounds: list[dict[str, float]] = []
    simulation.run(lambda this, _: rounds.append(this.values))
    np.testing.assert_array_equal(simulation.state.parameters, before)
    assert [values["participants"] for values in rounds] == [0, 0, 0]
    assert [values["airtime"] for values in rounds] == [0.0, 0.0, 0.0]
    assert rounds[-1]["epsilon_published"] == rounds[-1]["epsilon_accounted"] == 0.0


def test_a_policy_is_not_asked_to_plan_for_nobody() -> None:
    policy = {"policy": "tests.simulation.test_power_control:Touchy"}
    simulation, _, _ = run(small(faults__fade_threshold=1e9, uplink__power_control=policy))
    assert simulation.state.ended_by == "rounds"


class Touchy(CrossLayer):
    """Takes the smallest of the channels, and fails where there is none."""

    def __init__(self) -> None:
        super().__init__(server_gain=10.0)

    def plan(self, links: Any, round_index: int, air: Any) -> Any:
        assert np.abs(links.estimate).min() >= 0
        return super().plan(links, round_index, air)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"uplink__power_control": {"policy": "truncated_inversion"}}, r"faults\.fade_threshold: found 0 with"),
        (
            {
                "uplink__power_control": {"policy": "lower_gain", "calibration": "exact"},
                "privacy__adversary": "individual",
            },
            r"uplink\.power_control\.calibration: found exact with privacy\.adversary individual",
        ),
        (
            {"uplink__power_control": {"policy": "privacy_for_free", "contraction": 1e-300}, "rounds": 40},
            r"uplink\.power_control\.contraction: found 1e-300 over 40 rounds",
        ),
    ],
)
def test_power_controls_that_do_not_go_together(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        small(**overrides)


@pytest.mark.parametrize(("noise", "quadratures"), [("real", 1), ("complex", 2)])
def test_the_jammer_of_the_quickstart_beside_a_clients_budget(noise: str, quadratures: int) -> None:
    """RADIO.md, for scale: about 6 times a client's budget in phase, and as much again in the other quadrature.

    α_u σ_m/σ_c = √(ρ(6.52)/ρ(2)) with ρ(ε) = (√(L + ε) − √L)², so that α_CJ² = ρ(6.52)/ρ(2) − 1 at |h_CJ| = 1.
    """
    simulation = build_simulation(load_scenario("quickstart", {"uplink.jammer.noise": noise}), PLAN)
    parts = simulation.deployment
    _, energy = jammer_shortfall(parts.uplink, parts.selection)
    log_term = math.log(1e5)
    rho = [(math.sqrt(log_term + epsilon) - math.sqrt(log_term)) ** 2 for epsilon in (6.52, 2.0)]
    in_phase = (rho[0] / rho[1] - 1) / 10**0.1
    assert in_phase == pytest.approx(6, abs=0.5)
    assert energy / parts.network.registry.power_budget == pytest.approx(quadratures * in_phase, rel=1e-9)
