"""The shipped channel profiles: they run, and their comments tell the truth."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.assembly.slot import given_doppler_hz
from wirelessfl.errors import ModelWarning
from wirelessfl.radio import tr38901_los_probability, tr38901_path_loss_db
from wirelessfl.radio.units import SPEED_OF_LIGHT, dbm_to_watts, linear_to_db, thermal_noise_density
from wirelessfl.scenario import Scenario, list_shipped
from wirelessfl.scenario.channel import ClarkeFading
from wirelessfl.scenario.geography import RandomWaypointPlacement, Tr38901PathLoss

PROFILES = [shipped.name for shipped in list_shipped("channels")]
WATTS = {"kind": "over_the_air", "tx_power_dbm": 23.0}


def test_the_profiles_that_were_promised_are_there() -> None:
    assert set(PROFILES) >= {
        "ideal",
        "rayleigh-normalised",
        "urban-macro",
        "urban-micro",
        "indoor-hotspot",
        "vehicular",
        "low-power-wide-area",
    }


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("uplink", [WATTS, {"kind": "over_the_air", "snr_db": 20.0}], ids=["watts", "snr"])
def test_a_profile_runs_with_watts_and_with_an_snr(profile: str, uplink: dict[str, object]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        _, rounds, _ = run(small(channel__profile=profile, uplink=uplink))
    assert all(this.values["participants"] == 6 for this in rounds)
    assert all(np.isfinite(this.values["effective_noise_std"]) for this in rounds)


def profile(name: str) -> Scenario:
    return small(channel__profile=name, uplink=WATTS)


@pytest.mark.parametrize(("name", "speed"), [("urban-macro", 3 / 3.6), ("urban-micro", 3 / 3.6), ("vehicular", None)])
def test_doppler_shifts_are_v_f_over_c(name: str, speed: float | None) -> None:
    channel = profile(name).channel
    assert isinstance(channel.correlation, ClarkeFading)
    assert isinstance(channel.pathloss, Tr38901PathLoss)
    if speed is None:
        assert isinstance(channel.placement, RandomWaypointPlacement)
        assert channel.correlation.doppler_hz is None
        speed = channel.placement.max_speed
    shift = speed * channel.pathloss.carrier_hz / SPEED_OF_LIGHT
    assert given_doppler_hz(channel) == pytest.approx(shift, rel=0.02)


def test_the_link_budget_of_the_urban_macro_comment() -> None:
    """129.9 dB to a client without sight at the edge leave 5 dB of 2p/(N0 B) at 23 dBm over 1 MHz."""
    scenario = profile("urban-macro")
    loss = tr38901_path_loss_db("uma", np.array([500.0]), np.array([False]), 3.5e9, 25.0, 1.5)[0]
    density = thermal_noise_density(scenario.channel.noise_figure_db)
    snr_db = linear_to_db(2 * dbm_to_watts(23.0) / (density * scenario.timing.bandwidth_hz))
    assert loss == pytest.approx(129.9, abs=0.05)
    assert snr_db - loss == pytest.approx(5.1, abs=0.1)
    assert build_simulation(scenario, PLAN).deployment.network.registry.power_budget == pytest.approx(
        610 * 10 ** (snr_db / 10)
    )


def test_the_line_of_sight_of_the_urban_micro_comment() -> None:
    assert tr38901_los_probability("umi", np.array([100.0]), 1.5)[0] == pytest.approx(0.23, abs=0.005)


def test_the_slot_of_the_vehicular_comment() -> None:
    assert math.isclose(0.1 / 37, 2.7e-3, rel_tol=0.01)
    channel = profile("vehicular").channel
    assert isinstance(channel.placement, RandomWaypointPlacement)
    assert channel.placement.min_speed * 3.6 == pytest.approx(30, abs=2)
    assert channel.placement.max_speed * 3.6 == pytest.approx(50, abs=1)


def test_a_profiles_keys_can_be_replaced_one_by_one() -> None:
    scenario = small(channel={"profile": "urban-macro", "pathloss": {"h_ut": 10.0}})
    assert isinstance(scenario.channel.pathloss, Tr38901PathLoss)
    assert (scenario.channel.pathloss.h_ut, scenario.channel.pathloss.h_bs) == (10.0, 25.0)
