"""COTAF, GBMA and average-limited inversion in a run: what the trace holds, what the ledger says, what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import PLAN, run, small
from tests.statistics import assert_mean
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import DataError, InfeasibleError, ScenarioError
from wirelessfl.privacy import Caveat, gaussian_epsilon
from wirelessfl.radio import Links
from wirelessfl.radio.propagation import Moment
from wirelessfl.scenario import Scenario, parse_scenario
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.uplinks import OverTheAir

NORMS = [0.5, 0.4, 0.3]


def precoded(power_control: dict[str, Any], **overrides: Any) -> Scenario:
    uplink = {"kind": "over_the_air", "snr_db": 5.0, "power_control": power_control}
    return small(uplink=uplink, **overrides)


def columns(this: FinishedRound, budget: float) -> tuple[np.ndarray, ...]:
    """|ĥ|, ‖Δ‖, ‖x‖²/P and who sent in a round, from the columns of the trace."""
    slots = this.slots
    estimate = np.hypot(slots["csi_re"], slots["csi_im"])
    return estimate, slots["update_norm"], slots["tx_energy"] / budget, np.isfinite(slots["tx_energy"])


@pytest.mark.parametrize("sizes", ["iid", "sizes"])
def test_cotaf_sends_what_its_equation_says(sizes: str) -> None:
    scenario = precoded(
        {"policy": "cotaf", "expected_norms": NORMS, "h_min": 0.7},
        channel__csi={"error_std": 0.1},
        data__partition={"scheme": sizes},
    )
    simulation, rounds, _ = run(scenario)
    registry = simulation.deployment.network.registry
    share = registry.samples / registry.samples.max()
    silent = 0
    for this, expected in zip(rounds, NORMS, strict=True):
        estimate, norm, energy, sent = columns(this, registry.power_budget)
        np.testing.assert_array_equal(sent, estimate >= 0.7)
        silent += int((~sent).sum())
        formula = (share * 0.7 / estimate * norm / expected) ** 2
        np.testing.assert_allclose(energy[sent], formula[sent], rtol=1e-5)
    assert silent > 0


def test_measured_norms_are_those_of_the_round() -> None:
    """p_t = P/max_n ‖Δ_n‖², over those who send: the server hears a smaller round as loudly as a larger one."""
    scenario = precoded({"policy": "cotaf", "expected_norms": "measured", "h_min": 0.3})
    simulation, rounds, _ = run(scenario)
    budget = simulation.deployment.network.registry.power_budget
    for this in rounds:
        estimate, norm, energy, sent = columns(this, budget)
        largest = norm[sent].max()
        np.testing.assert_allclose(energy[sent], ((0.3 / estimate * norm / largest) ** 2)[sent], rtol=1e-5)
        scale = np.sqrt(budget) * 0.3 / largest * 6
        assert this.values["server_gain"] == pytest.approx(scale, rel=1e-9)
        assert this.values["effective_noise_std"] == pytest.approx(1 / scale, rel=1e-9)


def test_measured_and_given_norms_make_the_same_model() -> None:
    measured, rounds, _ = run(precoded({"policy": "gbma", "expected_norms": "measured"}))
    found = [float(np.nanmax(this.slots["update_norm"])) for this in rounds]
    given, again, _ = run(precoded({"policy": "gbma", "expected_norms": found}))
    np.testing.assert_allclose(measured.state.parameters, given.state.parameters, rtol=0, atol=2e-6)
    for one, other in zip(rounds, again, strict=True):
        np.testing.assert_allclose(one.slots["tx_energy"], other.slots["tx_energy"], rtol=1e-4)


@pytest.mark.parametrize("policy", ["cotaf", "gbma"])
@pytest.mark.parametrize("adversary", ["observer", "server"])
def test_measured_norms_leave_no_guarantee(policy: str, adversary: str) -> None:
    control = {"policy": policy, "expected_norms": "measured"}
    simulation, _, _ = run(precoded(control, faults__fade_threshold=0.05, privacy__adversary=adversary))
    assert simulation.ledger.epsilon_accounted() == math.inf
    assert any(Caveat.REALISED_NORMS.value in reason for reason in simulation.ledger.why_different())


@pytest.mark.parametrize(
    "control",
    [
        {"policy": "cotaf", "expected_norms": NORMS},
        {"policy": "gbma", "expected_norms": NORMS},
        {"policy": "truncated_inversion", "power_limit": "average"},
    ],
)
def test_public_norms_and_a_clip_are_charged_without_a_clamp(control: dict[str, Any]) -> None:
    """μ² = Σ (2 |h α| τ/σ_c)², and for inversion |h α| τ/α_u = p_i |h/ĥ| however far that is above the budget."""
    simulation, rounds, _ = run(precoded(control, faults__fade_threshold=0.05, channel__csi={"error_std": 0.2}))
    mu_squared = np.zeros(6)
    for this in rounds:
        received = np.hypot(this.slots["channel_re"], this.slots["channel_im"]) * this.slots["tx_gain_abs"]
        if control["policy"] != "gbma":
            ratio = received / np.hypot(this.slots["channel_re"], this.slots["channel_im"])
            inverted = this.values["server_gain"] / 6 / np.hypot(this.slots["csi_re"], this.slots["csi_im"])
            np.testing.assert_allclose(ratio[np.isfinite(ratio)], inverted[np.isfinite(ratio)], rtol=1e-9)
        mu_squared += np.nan_to_num((2 * received) ** 2)
    expected = gaussian_epsilon(np.sqrt(mu_squared), 1e-5)
    np.testing.assert_allclose(simulation.ledger.client_epsilons()[1], expected, rtol=1e-9)
    assert simulation.ledger.epsilon_published() == math.inf
    assert any("states no privacy theorem" in reason for reason in simulation.ledger.why_different())


def test_a_battery_drains_by_a_public_bound() -> None:
    """With measured norms the largest update is sent at P h_min²/|ĥ|² whatever its norm: a bound without them."""
    control = {"policy": "cotaf", "expected_norms": "measured", "h_min": 0.3}
    uplink = {"kind": "over_the_air", "tx_power_dbm": 10, "power_control": control}
    simulation, rounds, _ = run(small(uplink=uplink, faults__battery_j=1.0))
    parts = simulation.deployment
    bound = np.zeros(6)
    for this in rounds:
        estimate, _, energy, sent = columns(this, parts.network.registry.power_budget)
        bound[sent] += (0.3 / estimate[sent]) ** 2
        assert np.all(energy[sent] <= (0.3 / estimate[sent]) ** 2 * (1 + 1e-6))
    joules = bound * parts.network.registry.power_budget * parts.uplink.joules_per_unit  # type: ignore[attr-defined]
    np.testing.assert_allclose(simulation.state.battery_used_j, joules, rtol=1e-9)


def test_norms_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "norms.csv"
    file.write_text("norm,round\n0.3,3\n0.5,1\n0.4,2\n9,4\n")
    read, _, _ = run(precoded({"policy": "gbma", "expected_norms": str(file)}))
    written, _, _ = run(precoded({"policy": "gbma", "expected_norms": NORMS}))
    np.testing.assert_array_equal(read.state.parameters, written.state.parameters)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("round,norm\n1,0.3\n3,0.1\n", "no norm for round 2"),
        ("round,norm\n1,0.3\n2,0\n3,0.1\n", "a norm of 0"),
        ("round,clip\n1,0.3\n", "found no column norm; allowed: a first line with"),
    ],
)
def test_bad_files_of_norms(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "norms.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=rf"uplink\.power_control\.expected_norms.*{message}"):
        run(precoded({"policy": "gbma", "expected_norms": str(file)}))


def test_an_old_scenario_is_told_the_new_name() -> None:
    with pytest.raises(
        ScenarioError, match=r"small:\d+.*expected_norms: found null.*version 0\.1 called cotaf is weak"
    ):
        parse_scenario(
            "name: small\nfaults: {fade_threshold: 0.1}\nuplink: {power_control: {policy: cotaf}}\n", "small"
        )


@pytest.mark.parametrize(
    ("control", "overrides", "message"),
    [
        ({"policy": "cotaf", "expected_norms": [1.0]}, {"faults__fade_threshold": 0.1}, "found 1 norms for 3 rounds"),
        ({"policy": "gbma", "expected_norms": []}, {}, "expected_norms: found"),
        ({"policy": "gbma", "expected_norms": [1.0, 0.0, 1.0]}, {}, r"expected_norms\.1: found 0"),
        ({"policy": "gbma", "expected_norms": 3.0}, {}, "expected_norms: found 3.0; allowed: a list of at least 1"),
        ({"policy": "gbma", "expected_norms": ""}, {}, "measured, or the path of a file"),
        ({"policy": "cotaf", "expected_norms": NORMS}, {}, "h_min: found null with faults.fade_threshold 0"),
        (
            {"policy": "cotaf", "expected_norms": NORMS, "h_min": 0.1},
            {"faults__fade_threshold": 0.1},
            "h_min: found 0.1 with faults.fade_threshold 0.1",
        ),
        ({"policy": "gbma", "h_min": 0.1}, {}, r"h_min.*goes with uplink\.power_control\.policy: cotaf"),
        ({"policy": "gbma", "expected_norms": "measured"}, {"uplink__jammer": {}}, "measured beside a jammer"),
        (
            {"policy": "gbma", "expected_norms": "measured"},
            {
                "topology": {"kind": "multi_cell", "rings": 1},
                "channel__pathloss": {"model": "log_distance"},
            },
            "measured with topology.kind: multi_cell",
        ),
        (
            {"policy": "truncated_inversion", "power_limit": "average"},
            {"faults__fade_threshold": 0.0},
            r"faults\.fade_threshold: found 0 with",
        ),
        (
            {"policy": "truncated_inversion", "power_limit": "average"},
            {"channel__fading": {"model": "nakagami"}, "channel__csi": {"error_std": 0.1}},
            "average with nakagami fading and channel.csi.error_std 0.1",
        ),
        (
            {"policy": "truncated_inversion", "power_limit": "average"},
            {"channel__fading": {"model": "nakagami"}, "channel__csi": {"pilot_symbols": 3}},
            "average with nakagami fading and channel.csi.pilot_symbols 3: the distribution of the estimate is not "
            "known",
        ),
        (
            {"policy": "truncated_inversion", "power_limit": "average"},
            {
                "channel__fading": {"model": "rician"},
                "channel__csi": {"pilot_symbols": 3},
                "channel__pathloss": {"model": "log_distance"},
            },
            "differs between links; allowed: peak, or",
        ),
        (
            {"policy": "truncated_inversion", "power_limit": "average"},
            {"channel__csi": {"pilot_symbols": 3}, "channel__pathloss": {"model": "tr38901"}},
            "differs between links; allowed: peak, or",
        ),
        (
            {"policy": "truncated_inversion", "power_limit": "average"},
            {"channel__fading": {"model": "wirelessfl.radio:Rayleigh"}},
            "whose distribution of power is not known",
        ),
    ],
)
def test_what_does_not_go_together(control: dict[str, Any], overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        precoded(control, **overrides)


@pytest.mark.parametrize(
    "control",
    [
        {"policy": "full_power"},
        {"policy": "cotaf", "expected_norms": NORMS},
        {"policy": "gbma"},
        {"policy": "truncated_inversion", "power_limit": "average"},
    ],
)
def test_a_lower_gain_is_for_clamped_inversion(control: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=r"uplink\.jammer\.on_shortfall: found lower_gain with"):
        precoded(control, uplink__jammer={"on_shortfall": "lower_gain"}, faults__fade_threshold=0.1)


@pytest.mark.parametrize("fading", [{"model": "rician", "k_db": 9.0}, {"model": "static"}, {"model": "rayleigh"}])
@pytest.mark.parametrize("estimator", ["ls", "mmse"])
def test_the_average_is_kept_with_estimates_from_pilots(fading: dict[str, Any], estimator: str) -> None:
    """E‖x‖² = P at ‖Δ‖ = τ over drawn estimates, where one weak pilot leaves an error of σ² = 2/SNR = 0.63."""
    control = {"policy": "truncated_inversion", "power_limit": "average"}
    csi = {"pilot_symbols": 1, "estimator": estimator}
    scenario = precoded(control, channel__fading=fading, channel__csi=csi, faults__fade_threshold=0.1)
    parts = build_simulation(scenario, PLAN).deployment
    assert isinstance(parts.uplink, OverTheAir)
    policy, count = parts.uplink.policies[0], 200_000
    found = parts.network.clients.channels(np.arange(count), Moment(1, 0.0))
    power, ones = found.mean_estimate_power, np.ones(count)
    channel, estimate = (gains[:, 0] for gains in found.narrowband)
    links = Links(channel, estimate, ones / count, 3.0 * ones, ones, power)
    plan = policy.plan(links, 1, parts.uplink.air)
    energy = np.zeros(count)
    sent = policy.transmit(plan, links.take(~plan.silent), None)
    energy[~plan.silent] = np.abs(sent.tx_gain * plan.clip) ** 2
    assert_mean(energy, 3.0, float(energy.std()) + 1e-9)  # rounding, where everybody is alike


def test_a_threshold_that_nobody_reaches() -> None:
    control = {"policy": "truncated_inversion", "power_limit": "average"}
    with pytest.raises(InfeasibleError, match="which no channel reaches"):
        run(precoded(control, channel__fading={"model": "static"}, faults__fade_threshold=1.5))


@pytest.mark.parametrize("policy", ["cotaf", "gbma"])
def test_an_exact_jammer_meets_its_target_beside_a_precoder(policy: str) -> None:
    jammer = {"epsilon": 2.0, "calibration": "exact"}
    control = {"policy": policy, "expected_norms": NORMS}
    simulation, _, _ = run(precoded(control, uplink__jammer=jammer, faults__fade_threshold=0.05))
    assert 0.5 < simulation.ledger.epsilon_accounted() <= 2.0 * (1 + 1e-9)


def test_a_recorded_run_with_measured_norms_repeats_to_the_same_bits(tmp_path: Path) -> None:
    wfl.simulate(
        precoded({"policy": "cotaf", "expected_norms": "measured", "h_min": 0.3}), out=tmp_path / "run", pictures=False
    )
    assert verify(open_recording(tmp_path / "run" / "trace.h5")).difference is None
