"""Frequency-selective channels in whole runs: truncation by group, the sum, the ledger, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.analysis.audit.audit import audit_simulation
from wirelessfl.api import simulate
from wirelessfl.assembly import build_simulation, jammer_shortfall
from wirelessfl.errors import ModelWarning, ScenarioError
from wirelessfl.privacy import AirRelease
from wirelessfl.trace import open_trace

TDL = {"model": "tdl", "profile": "C", "delay_spread_s": 1e-6, "groups": 16}


def test_the_truncated_share_is_that_of_a_rayleigh_channel() -> None:
    """1 − e^{−g} of all groups are silent; 240 clients and rounds of about 10 independent groups each."""
    scenario = small(
        rounds=4,
        clients__count=60,
        channel__fading={**TDL, "delay_spread_s": 3e-6, "groups": 64},
        uplink__power_control={"policy": "truncated_inversion"},
        faults__fade_threshold=0.3,
    )
    _, rounds, _ = run(scenario)
    share = np.concatenate([this.slots["truncated_share"] for this in rounds])
    assert len(np.unique(share)) > 5, "a client is silent in some groups and sends in others"
    assert share.mean() == pytest.approx(1 - np.exp(-0.3), abs=0.03)


@pytest.mark.parametrize("iq_packing", [False, True])
@pytest.mark.parametrize("receiver", [{"antennas": 1}, {"antennas": 3, "combiner": "max_min"}])
def test_what_is_received_is_the_sum(receiver: dict[str, Any], iq_packing: bool) -> None:
    """Without noise worth the name every group inverts its own gain."""
    ideal, _, _ = run(small(rounds=1, uplink__kind="ideal", uplink__clip=1.0))
    found, _, _ = run(
        small(
            rounds=1,
            channel__fading=TDL,
            uplink__iq_packing=iq_packing,
            uplink__receiver=receiver,
            uplink__snr_db=250.0,
            uplink__power_control={"server_gain": 1e9},
        )
    )
    np.testing.assert_allclose(found.state.parameters, ideal.state.parameters, rtol=0, atol=2e-6)


def test_the_ledger_counts_the_loudest_group() -> None:
    """X/σ of a client is 2 τ max_f |α_f h_f|, from the network and the gains of the transmitters themselves."""
    control = {"policy": "full_power"}
    scenario = small(channel__fading=TDL, uplink__power_control=control)
    simulation, rounds, _ = run(scenario)
    for this in rounds:
        (release,) = (each for each in this.round.releases if isinstance(each, AirRelease))
        channel = np.abs(this.slots["channel_re"] + 1j * this.slots["channel_im"])
        expected = 2 * this.slots["tx_gain_abs"] * channel.max(axis=1)
        found = release.sensitivity(simulation.ledger.facts, simulation.ledger.statement) / release.accounted_noise_std
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_power_budget_holds_in_the_weakest_group() -> None:
    """Back-off is that of the group with the weakest gain, as an update can lie in one group alone."""
    weak = {"uplink__snr_db": -10.0, "uplink__power_control": {"server_gain": 40.0}}
    simulation, rounds, _ = run(small(channel__fading=TDL, **weak))
    uplink: Any = simulation.deployment.uplink
    budget = uplink.network.registry.power_budget
    for this in rounds:
        assert np.all(this.slots["tx_gain_abs"] ** 2 <= budget * (1 + 1e-9))
        assert np.all(this.slots["tx_energy"] <= budget * (1 + 1e-9))
        assert np.any(this.slots["backoff"] > 1)


@pytest.mark.parametrize("receiver", [{"antennas": 1}, {"antennas": 2, "combiner": "random"}])
def test_the_audit_finds_nothing_against_the_ledger(receiver: dict[str, Any]) -> None:
    scenario = small(
        channel__fading=TDL,
        uplink__receiver=receiver,
        uplink__power_control={"server_gain": 2.0},
    )
    found = audit_simulation(build_simulation(scenario, PLAN), "groups", trials=200)
    assert not found.contradicts_ledger, found.contradiction


def test_the_trace_has_a_subcarrier_axis(tmp_path: Path) -> None:
    simulate(small(channel__fading=TDL), out=tmp_path / "run", figures="none")
    with open_trace(tmp_path / "run" / "trace.h5") as trace:
        assert trace["channel_re"].dims == ("round", "slot", "subcarrier")
        assert trace.sizes["subcarrier"] == 16


@pytest.mark.parametrize(
    "profile", ["D", *(pytest.param(one, marks=pytest.mark.slow) for one in ("A", "B", "C", "E", "exponential"))]
)
def test_every_profile_runs(profile: str) -> None:
    receiver = {"antennas": 2, "combiner": "max_min", "correlation": {"model": "exponential"}}
    scenario = small(
        rounds=1,
        channel__fading={**TDL, "profile": profile, "groups": 64},
        channel__csi={"error_std": 0.2, "estimator": "mmse"},
        channel__correlation={"model": "gauss_markov", "doppler_hz": 50.0},
        uplink__receiver=receiver,
        uplink__jammer={"epsilon": 2.0},
        uplink__power_control={"server_gain": 60.0},
    )
    simulation, (this,), _ = run(scenario)
    assert np.all(np.isfinite(this.slots["channel_re"])) and np.isfinite(simulation.ledger.epsilon_accounted())


def test_the_jammer_falls_short_by_its_weakest_group() -> None:
    """With 64 nearly independent groups the least of 64 exponential powers counts: Pr = 1 − e^{−64 g} at most."""
    jammer = {"epsilon": 2.0, "power_db": 20.0, "max_shortfall": 1.0}
    control = {"server_gain": 60.0}
    found = {}
    for groups in (1, 64):
        fading = {**TDL, "groups": groups, "delay_spread_s": 0.0 if groups == 1 else 3e-6}
        scenario = small(channel__fading=fading, uplink__jammer=jammer, uplink__power_control=control)
        simulation = build_simulation(scenario, PLAN)
        found[groups], _ = jammer_shortfall(simulation.deployment.uplink, simulation.deployment.selection)
    assert 0 < found[1] < 0.5
    assert 2 * found[1] < found[64] <= 1 - (1 - found[1]) ** 64 + 0.02


def test_wide_groups_are_warned_about() -> None:
    with pytest.warns(ModelWarning, match=r"channel\.fading\.groups: found 2 groups of 5e\+05 Hz"):
        build_simulation(small(channel__fading={**TDL, "groups": 2}), PLAN)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"timing__ofdm": {"subcarrier_spacing_hz": 15e3, "subcarriers": 24}},
            r"channel\.fading\.groups: found 16 with 24 subcarriers \(timing\.ofdm\); allowed: a divisor",
        ),
        (
            {
                "timing__ofdm": {"subcarrier_spacing_hz": 15e3, "subcarriers": 16},
                "channel__sync": {"waveform": "ofdm", "max_offset": 0.05},
            },
            r"channel\.sync\.max_offset: found 0\.05 with 16 groups of subcarriers",
        ),
        (  # a part of a symbol would fall into the next group, where another jamming hides it
            {"channel__sync": {"max_offset": 0.05}},
            r"channel\.sync\.max_offset: found 0\.05 with 16 groups .*; allowed: 0, or channel\.fading\.groups: 1",
        ),
        (
            {"channel__fading": {"model": "tdl", "groups": 4096}},
            r"channel\.fading\.groups: found 4096 groups, but an update has 610 symbols",
        ),
        ({"channel__fading": {"model": "tdl", "profile": "F"}}, r"channel\.fading\.profile: found F; allowed: A \| B"),
        ({"channel__fading": {"model": "tdl", "delay_spread_s": -1.0}}, r"delay_spread_s: found -1"),
    ],
)
def test_what_is_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        build_simulation(small(**{"channel__fading": TDL, **overrides}), PLAN)
