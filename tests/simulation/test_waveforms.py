"""OBDA and FSK majority vote in whole runs: steps, airtime, energy, the ledger, combinations, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import wirelessfl as wfl
from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.cli import main
from wirelessfl.errors import ScenarioError
from wirelessfl.privacy.releases import WaveformRelease
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.uplinks import NotAuditable, OverTheAir

STEP = 0.01
OBDA = {
    "uplink__modulation": {"scheme": "obda", "step": STEP},
    "uplink__power_control": {"policy": "truncated_inversion"},
    "faults__fade_threshold": 0.1,
}
FSK = {"uplink__modulation": {"scheme": "fsk_vote", "step": STEP}, "uplink__power_control": {"policy": "no_csi"}}
SCHEMES = {"obda": OBDA, "fsk_vote": FSK}
SELECTIVE = {
    "channel__fading": {"model": "tdl", "profile": "A", "delay_spread_s": 3e-7, "groups": 4},
    "timing__bandwidth_hz": 2e6,
    "timing__ofdm": {"subcarrier_spacing_hz": 15000, "subcarriers": 64, "cyclic_prefix_s": 4.7e-6},
}


def voting(scheme: str, **overrides: Any) -> Scenario:
    return small(**{**SCHEMES[scheme], **overrides})


def uplink_of(scenario: Scenario) -> OverTheAir:
    uplink = build_simulation(scenario, PLAN).deployment.uplink
    assert isinstance(uplink, OverTheAir)
    return uplink


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_coordinate_moves_by_the_step(scheme: str) -> None:
    before = build_simulation(voting(scheme), PLAN).state.parameters.copy()
    simulation, _, _ = run(voting(scheme, rounds=1))
    moved = np.abs(simulation.state.parameters - before)
    np.testing.assert_allclose(moved, STEP, rtol=1e-3)


def test_channel_uses_and_airtime() -> None:
    """Two signs a channel use with I/Q packing (4-QAM), and two tones a coordinate."""
    plain, packed = uplink_of(voting("obda")), uplink_of(voting("obda", uplink__iq_packing=True))
    tones, dimension = uplink_of(voting("fsk_vote")), plain.dimension
    assert (plain.num_symbols, packed.num_symbols) == (dimension, -(-dimension // 2))
    assert tones.num_symbols == 2 * dimension == tones.air.dimension
    assert plain.airtime == pytest.approx(2 * packed.airtime, rel=2 / dimension)
    assert tones.airtime == pytest.approx(2 * plain.airtime)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_energy_is_that_of_the_symbols_sent(scheme: str) -> None:
    """Every symbol has |α|² τ²/d; without CSI a client that votes on everything spends its transmit power."""
    watts = {"uplink__snr_db": None, "uplink__tx_power_dbm": 0.0}
    path = {"channel__pathloss": {"model": "log_distance"}}
    scenario = voting(scheme, **watts, **path, uplink__clip=0.5)
    _, rounds, _ = run(scenario)
    for this in rounds:
        columns, sent = this.slots, this.slots["tx_gain_abs"] > 0
        full = (columns["tx_gain_abs"] * 0.5) ** 2
        share = columns["tx_energy"][sent] / full[sent]  # coordinates that are exactly zero send nothing
        assert np.all(share <= 1 + 1e-6) and np.all(share > 0.3)
        counted = share * uplink_of(scenario).dimension
        np.testing.assert_allclose(counted, counted.round(), atol=1e-2)
        if scheme == "fsk_vote":
            power = 1e-3 * uplink_of(scenario).airtime
            np.testing.assert_allclose(columns["tx_energy_j"][sent], share * power, rtol=1e-6)


@pytest.mark.parametrize("antennas", [1, 3])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("exchange", [False, True])
def test_the_ledger_counts_the_distance_of_two_signals(scheme: str, antennas: int, exchange: bool) -> None:
    """X/σ is ‖h α (x − x′)‖/σ_c at all antennas, x and x′ with opposite votes, or x′ silent."""
    unit = {"unit": "client", "adjacency": "replace" if exchange else "add_remove"}
    scenario = voting(scheme, privacy=unit, uplink__receiver={"antennas": antennas}, uplink__clip=0.5)
    simulation, rounds, _ = run(scenario)
    facts, statement = simulation.ledger.facts, simulation.ledger.statement
    opposite = {"obda": 2.0, "fsk_vote": np.sqrt(2.0)}[scheme] if exchange else 1.0
    for this in rounds:
        (release,) = (each for each in this.round.releases if isinstance(each, WaveformRelease))
        columns = this.slots
        channel = columns["channel_re"] + 1j * columns["channel_im"]
        size = np.abs(channel) if antennas == 1 else np.linalg.norm(channel, axis=-1)
        signal = opposite * 0.5 * columns["tx_gain_abs"] * size.reshape(len(size), -1)[:, 0]
        found = release.sensitivity(facts, statement) / release.accounted_noise_std
        np.testing.assert_allclose(found, signal[columns["tx_gain_abs"] > 0], rtol=1e-9)
    published, accounted = simulation.ledger.epsilon_published(), simulation.ledger.epsilon_accounted()
    assert published == np.inf and accounted < np.inf


COMBINATIONS: dict[str, dict[str, Any]] = {
    "pieces": {"channel__correlation": {"model": "clarke", "doppler_hz": 40.0}, "timing__bandwidth_hz": 2e5},
    "groups": SELECTIVE,
    "antennas": {"uplink__receiver": {"antennas": 3}},
    "dropouts": {"faults__availability": {"model": "bernoulli", "p": 0.5}},
    "deadline": {"timing__deadline_s": 2.0},
    "upcycled": {"training__algorithm": {"name": "upcycled"}},
    "fedprox": {"training__algorithm": {"name": "fedprox"}},
    "late": {"channel__sync": {"max_offset": 0.3, "phase_std": 0.2}},
    "peak": {"uplink__peak_power_db": 1.0},
}


@pytest.mark.parametrize("name", COMBINATIONS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_combinations_run(scheme: str, name: str) -> None:
    simulation, rounds, _ = run(voting(scheme, rounds=2, **COMBINATIONS[name]))
    assert len(rounds) == 2 and np.isfinite(simulation.ledger.epsilon_accounted())
    assert np.all(np.isfinite(simulation.state.parameters))
    if name in ("pieces", "groups"):
        assert len(uplink_of(voting(scheme, **COMBINATIONS[name])).ranges) > 1


@pytest.mark.parametrize(
    "more",
    [
        {"channel__csi": {"error_std": 0.3}},
        {"uplink__iq_packing": True},
        {"uplink__receiver": {"antennas": 3, "combiner": "max_min"}},
        {"uplink__power_control": {"policy": "truncated_inversion", "power_limit": "average"}},
    ],
)
def test_obda_with_what_needs_csi(more: dict[str, Any]) -> None:
    simulation, _, _ = run(voting("obda", rounds=2, **more))
    assert np.isfinite(simulation.ledger.epsilon_accounted())


@pytest.mark.parametrize(
    ("scheme", "overrides", "message"),
    [
        (
            "obda",
            {"uplink__power_control": {"policy": "cross_layer"}},
            "policy: found cross_layer with .*truncated_inv",
        ),
        ("fsk_vote", {"uplink__power_control": {"policy": "full_power"}}, "policy: found full_power .*allowed: no_csi"),
        ("fsk_vote", {"uplink__iq_packing": True}, "iq_packing: found true .*allowed: false"),
        ("fsk_vote", {"uplink__receiver": {"combiner": "max_min"}}, "combiner: found max_min .*allowed: sum"),
        ("fsk_vote", {"channel__csi": {"error_std": 0.1}}, r"csi\.error_std: found 0\.1 .*allowed: 0"),
        ("fsk_vote", {"channel__csi": {"pilot_symbols": 4}}, r"csi\.pilot_symbols: found 4 .*allowed: null"),
        ("fsk_vote", {"faults__fade_threshold": 0.1}, r"faults\.fade_threshold: found 0\.1 .*allowed: 0"),
        ("obda", {"uplink__jammer": {"epsilon": 2.0}}, "jammer: found a jammer with .*allowed: null"),
        ("obda", {"training__algorithm": {"name": "scaffold"}}, "algorithm.name: found scaffold .*allowed: fedavg"),
        ("obda", {"topology": {"kind": "multi_cell"}}, "topology.kind: found multi_cell .*allowed: single_cell"),
        ("obda", {"uplink__clip": None}, "uplink.clip"),
        ("fsk_vote", {"uplink__modulation": {"scheme": "analog"}}, "policy: found no_csi with .*allowed: another"),
        ("fsk_vote", {"training__aggregation": {"mode": "async"}}, "."),
    ],
)
def test_what_is_refused(scheme: str, overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        voting(scheme, **overrides)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_one_step_of_clipped_gradients_earns_no_credit(scheme: str) -> None:
    """With linear amplitudes one sample moves its share of the update, with signs all of them."""
    training = {
        "training__optimizer": {"name": "sgd", "lr": 1.0, "momentum": 0},
        "training__epochs": None,
        "training__steps": 1,
        "training__privacy": {"mechanism": "gaussian", "sampling": "shuffle", "clip": 1.0, "noise_multiplier": 0},
    }
    linear = small(**training)
    assert uplink_of(linear).gradient_step is not None
    assert uplink_of(voting(scheme, **training)).gradient_step is None


@pytest.mark.parametrize("scheme", SCHEMES)
def test_no_audit_and_an_exact_replay(scheme: str, tmp_path: Path) -> None:
    scenario = voting(scheme, rounds=2)
    assert isinstance(uplink_of(scenario).audit_view(), NotAuditable)
    summary = wfl.simulate(scenario, tmp_path / "out", pictures=False, device="cpu").summary
    assert np.isnan(summary["clip_excess_db"]) and not summary["warnings"]  # votes are as loud whatever the update is
    result = CliRunner().invoke(main, ["replay", str(tmp_path / "out" / "trace.h5"), "--verify", "--json"])
    assert result.exit_code == 0, result.output


@pytest.mark.slow
def test_mnist_by_a_vote_without_csi(shared_data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """More than 95 %, as Şahin reports (arXiv 2209.09954, abstract); skipped where MNIST is absent."""
    monkeypatch.setenv("WIRELESSFL_DATA", str(shared_data))
    scenario = wfl.load_scenario("fsk-vote-mnist")
    assert wfl.simulate(scenario, tmp_path, pictures=False, device="cpu").summary["test_accuracy"] > 0.95
