"""Pilots: the error they leave, the airtime and energy they take, and who pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run, small
from tests.statistics import assert_mean
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.radio.propagation import Moment
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.trace import Status

N0 = 1.380649e-23 * 290 * 10**0.5
"""At a noise figure of 5 dB, W/Hz."""
WATTS = {"kind": "over_the_air", "tx_power_dbm": 20.0}
LOG = {"model": "log_distance", "exponent": 3.0}


def piloted(symbols: int = 10, power_dbm: float | None = None, **overrides: Any) -> Scenario:
    csi = {"pilot_symbols": symbols, "pilot_power_dbm": power_dbm}
    return small(**{"uplink": WATTS, "channel__pathloss": LOG, "channel__csi": csi, **overrides})


@pytest.mark.parametrize(("power_dbm", "watts"), [(None, 0.1), (-60.0, 1e-9)])
def test_the_error_follows_from_energy_and_path_gain(power_dbm: float | None, watts: float) -> None:
    """σ_e² = N0/(E β): E|ĥ − h|² = N0/E whatever the path gain, E = n p/B."""
    found = build_simulation(piloted(10, power_dbm), PLAN).deployment.network.clients
    channels = found.channels(np.arange(20_000), Moment(1, 0.0))
    error = np.abs(channels.estimate - channels.channel)[:, 0, 0, 0] ** 2
    expected = N0 * 1e6 / (10 * watts)
    assert_mean(error / expected, 1.0, std=1.0)
    np.testing.assert_allclose(channels.mean_estimate_power, channels.path_gain + expected, rtol=1e-12)


@pytest.mark.parametrize("packing", [False, True])
def test_with_an_snr_pilots_take_the_power_of_the_data(packing: bool) -> None:
    """10 dB against a real dimension is 5 per symbol against N0 without packing, 10 with it."""
    scenario = small(uplink__snr_db=10.0, uplink__iq_packing=packing, channel__csi={"pilot_symbols": 4})
    found = build_simulation(scenario, PLAN).deployment.network.clients
    channels = found.channels(np.arange(20_000), Moment(1, 0.0))
    error = np.abs(channels.estimate - channels.channel)[:, 0, 0, 0] ** 2
    assert_mean(error * 4 * (10.0 if packing else 5.0), 1.0, std=1.0)


def test_pilots_of_all_clients_and_the_jammer_take_airtime_and_energy() -> None:
    plain = run(small(uplink=WATTS, channel__pathloss=LOG))
    for jammer, nodes in ((None, 6), ({"epsilon": 1.0}, 7), ({"epsilon": 1.0, "role": "rotating"}, 6)):
        simulation, rounds, _ = run(piloted(25, uplink={**WATTS, "jammer": jammer}))
        uplink = simulation.deployment.uplink
        assert isinstance(uplink, OverTheAir)
        for this in rounds:
            assert this.values["airtime"] == pytest.approx(610e-6 + nodes * 25e-6)
            assert this.slots["tx_energy_j"].min() >= 0.1 * 25e-6 * (1 - 1e-12)
            data = np.nan_to_num(this.slots["tx_energy"]) * uplink.joules_per_unit
            np.testing.assert_allclose(this.slots["tx_energy_j"], data + 0.1 * 25e-6, rtol=1e-12)
            jammed = this.values["jammer_energy"] * uplink.joules_per_unit + (nodes - 6) * 0.1 * 25e-6
            assert this.values["energy"] == pytest.approx(this.slots["tx_energy_j"].sum() + jammed)
            assert this.values["sim_time"] - this.round.slot_opens == pytest.approx(this.values["airtime"], abs=1e-9)
    assert plain[1][0].values["airtime"] == pytest.approx(610e-6)


def test_batteries_pay_for_pilots_also_of_those_who_stay_silent() -> None:
    scenario = piloted(25, faults={"battery_j": 1.0, "fade_threshold": 1e6}, rounds=2)
    simulation, rounds, _ = run(scenario)
    assert all((this.status == Status.DEEP_FADE).all() for this in rounds)
    np.testing.assert_allclose(simulation.state.battery_used_j, 2 * 0.1 * 25e-6)
    for this in rounds:
        assert this.values["airtime"] == pytest.approx(6 * 25e-6)
        assert this.values["energy"] == pytest.approx(6 * 0.1 * 25e-6)


def test_every_piece_pays_for_its_own_pilots() -> None:
    moving = {"channel__correlation": {"model": "clarke", "doppler_hz": 200.0}}
    for refresh, times in (("slot", 1), ("piece", 6)):
        csi = {"pilot_symbols": 25, "refresh": refresh}
        simulation, rounds, _ = run(small(uplink=WATTS, channel__csi=csi, **moving))
        uplink = simulation.deployment.uplink
        assert isinstance(uplink, OverTheAir) and uplink.schedule.pieces == 6
        for this in rounds:
            assert this.values["airtime"] == pytest.approx(610e-6 + times * 6 * 25e-6)
            data = this.slots["tx_energy"] * uplink.joules_per_unit
            np.testing.assert_allclose(this.slots["tx_energy_j"] - data, times * 0.1 * 25e-6, rtol=1e-9)


@pytest.mark.parametrize("policy", [{"policy": "gbma"}, {"policy": "cotaf", "h_min": 0.2}])
def test_pilots_do_not_follow_the_scale_of_the_data(policy: dict[str, Any]) -> None:
    """Measured norms scale what is sent after the pilots, in every piece by the same factor."""
    uplink = {**WATTS, "power_control": {**policy, "expected_norms": "measured"}}
    csi = {"pilot_symbols": 25, "refresh": "piece"}
    simulation, rounds, _ = run(
        small(uplink=uplink, channel__csi=csi, channel__correlation={"model": "clarke", "doppler_hz": 200.0})
    )
    parts = simulation.deployment
    assert isinstance(parts.uplink, OverTheAir) and parts.uplink.schedule.pieces == 6
    for this in rounds:
        data = np.nan_to_num(this.slots["tx_energy"]) * parts.uplink.joules_per_unit
        np.testing.assert_allclose(this.slots["tx_energy_j"] - data, 6 * 0.1 * 25e-6, rtol=1e-9)
        assert this.values["energy"] == pytest.approx(this.slots["tx_energy_j"].sum())
        largest = this.slots["update_norm"] == np.nanmax(this.slots["update_norm"])
        if policy["policy"] == "gbma":  # with equal weights the largest update takes the whole budget
            share = this.slots["tx_energy"][largest] / parts.network.registry.power_budget
            np.testing.assert_allclose(share, 1.0, rtol=1e-6)


def test_the_channel_ages_while_pilots_are_sent() -> None:
    """One piece, an estimate at its beginning, and the data 150 µs later."""
    csi = {"pilot_symbols": 25}
    simulation, (this, *_), _ = run(
        small(channel__csi=csi, channel__correlation={"model": "clarke", "doppler_hz": 35.0})
    )
    network = simulation.deployment.network
    begun = network.clients.channels(this.clients, Moment(1, this.round.slot_opens + 6 * 25e-6)).narrowband[0][:, 0]
    np.testing.assert_allclose(this.slots["channel_re"], begun.real, rtol=0, atol=1e-12)


def test_the_deadline_counts_the_pilots_of_all_clients() -> None:
    uplink = build_simulation(piloted(25), PLAN).deployment.uplink
    assert isinstance(uplink, OverTheAir)
    assert uplink.airtime == pytest.approx(610e-6 + 6 * 25e-6)


def test_ofdm_pilots_fill_symbols_with_their_prefix() -> None:
    """60 pilots on 64 subcarriers are one OFDM symbol; 610 coordinates are ten."""
    ofdm = {"subcarriers": 64, "subcarrier_spacing_hz": 15e3, "cyclic_prefix_s": 5e-6}
    _, (this, *_), _ = run(piloted(10, timing__ofdm=ofdm))
    assert this.values["airtime"] == pytest.approx(11 * (1 / 15e3 + 5e-6))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"channel__csi": {"pilot_symbols": 5, "error_std": 0.1}}, r"channel\.csi\.pilot_symbols"),
        ({"channel__csi": {"pilot_power_dbm": 3.0}, "uplink": WATTS}, r"channel\.csi\.pilot_power_dbm"),
        ({"channel__csi": {"pilot_symbols": 5, "pilot_power_dbm": 3.0}}, r"channel\.csi\.pilot_power_dbm"),
        ({"channel__csi": {"pilot_symbols": 5}, "uplink": {"kind": "ideal"}}, r"channel\.csi\.pilot_symbols"),
        ({"channel__csi": {"pilot_symbols": 0}}, r"channel\.csi\.pilot_symbols"),
    ],
)
def test_contradictions_are_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        small(**overrides)
