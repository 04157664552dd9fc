"""Pilots of digital uplinks: the error they leave, their time and energy, who pays, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.uplinks.test_spatial import gains, in_groups, sdma
from tests.statistics import assert_mean
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.assembly import build_simulation
from wirelessfl.assembly.first_round import upload_span
from wirelessfl.errors import ScenarioError
from wirelessfl.radio import DigitalLinks
from wirelessfl.radio.propagation import Moment
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.uplinks import DigitalUplink
from wirelessfl.simulation.uplinks.secure_aggregation import SecureUplink
from wirelessfl.trace import Status

N0 = 1.380649e-23 * 290 * 10**0.5
"""At a noise figure of 5 dB, W/Hz."""
BITS, BAND, CLIENTS = 32 * 610, 1e6, 6
CLARKE = {"model": "clarke", "doppler_hz": 5.0}
LOG = {"model": "log_distance", "exponent": 3.0}


def digital(symbols: int | None = 20, power_dbm: float | None = None, **overrides: Any) -> Scenario:
    csi = {"pilot_symbols": symbols, "pilot_power_dbm": power_dbm, **overrides.pop("channel__csi", {})}
    uplink = {"kind": "digital", "tx_power_dbm": 20.0, **overrides.pop("uplink", {})}
    return small(**{"uplink": uplink, "channel__pathloss": LOG, "channel__csi": csi, **overrides})


def links_of(scenario: Scenario) -> DigitalLinks:
    uplink = build_simulation(scenario, PLAN).deployment.uplink
    assert isinstance(uplink, DigitalUplink | SecureUplink) and isinstance(uplink.links, DigitalLinks)
    return uplink.links


@pytest.mark.parametrize(("access", "share"), [("tdma", 1.0), ("ofdma", 1 / 6)])
@pytest.mark.parametrize(("power_dbm", "watts"), [(None, 0.1), (-60.0, 1e-9)])
def test_the_error_follows_from_the_energy_in_a_clients_own_band(
    access: str, share: float, power_dbm: float | None, watts: float
) -> None:
    """E|ĥ − h|² = N0/E with E = n p/B_i: in a sixth of the band pilots last six times as long."""
    source = links_of(digital(20, power_dbm, uplink={"access": access})).network.clients
    found = source.channels(np.arange(20_000), Moment(1, 0.0), share=share)
    error = np.abs(found.estimate - found.channel)[:, 0, 0, 0] ** 2
    expected = N0 * BAND * share / (20 * watts)
    assert_mean(error / expected, 1.0, std=1.0)
    np.testing.assert_allclose(found.mean_estimate_power, found.path_gain + expected, rtol=1e-12)


def test_with_an_snr_pilots_take_the_power_of_the_data() -> None:
    """10 dB against a real dimension of the whole band is p/(N0 B) = 5."""
    links = links_of(small(uplink={"kind": "digital", "snr_db": 10.0}, channel__csi={"pilot_symbols": 4}))
    found = links.network.clients.channels(np.arange(20_000), Moment(1, 0.0), share=0.5)
    assert_mean(np.abs(found.estimate - found.channel)[:, 0, 0, 0] ** 2 * 4 * 10.0, 1.0, std=1.0)


@pytest.mark.parametrize("access", ["tdma", "ofdma"])
@pytest.mark.parametrize("power_dbm", [None, 0.0])
def test_pilots_take_time_and_energy_before_every_upload(access: str, power_dbm: float | None) -> None:
    """n/B_i seconds and n p/B_i joules a client, beside an upload at the rate that the estimates carry."""
    outage = {"rate": {"outage": None}}
    _, rounds, _ = run(digital(20, power_dbm, uplink={"access": access, **outage}))
    share, watts = (1.0, 0.1) if access == "tdma" else (1 / CLIENTS, 0.1)
    pilot_watts = watts if power_dbm is None else 1e-3
    for this in rounds:
        power = np.abs(gains(this, "csi")) ** 2
        rate = BAND * share * np.log2(1 + power * watts / (N0 * BAND * share))
        pilot_s = 20 / (BAND * share)
        np.testing.assert_allclose(this.slots["tx_time"], BITS / rate + pilot_s, rtol=1e-9)
        np.testing.assert_allclose(this.slots["tx_energy"], 2 * watts * BITS / rate / N0, rtol=1e-9)
        joules = watts * BITS / rate + pilot_watts * pilot_s
        np.testing.assert_allclose(this.slots["tx_energy_j"], joules, rtol=1e-9)
        assert this.values["energy"] == pytest.approx(joules.sum())
        if access == "tdma":
            assert this.values["airtime"] == pytest.approx(float((BITS / rate).sum()) + CLIENTS * 20 / BAND)
        assert np.any(this.status == Status.OUTAGE) or power_dbm is None


def test_who_stays_silent_has_paid_for_its_pilots_and_is_not_charged() -> None:
    scenario = digital(25, faults={"battery_j": 1.0, "fade_threshold": 1e6}, rounds=2, uplink={"access": "tdma"})
    simulation, rounds, _ = run(scenario)
    np.testing.assert_allclose(simulation.state.battery_used_j, 2 * 0.1 * 25e-6)
    for this in rounds:
        assert (this.status == Status.DEEP_FADE).all()
        assert this.values["airtime"] == pytest.approx(CLIENTS * 25e-6)
        assert this.values["energy"] == pytest.approx(CLIENTS * 0.1 * 25e-6)
        assert np.isnan(this.slots["tx_time"]).all() and np.isnan(this.slots["tx_energy"]).all()
        np.testing.assert_allclose(this.slots["tx_energy_j"], 0.1 * 25e-6)
        assert not any(len(release.clients) for release in this.round.releases)
    assert simulation.ledger.epsilon_accounted() == 0.0


@pytest.mark.parametrize("access", ["tdma", "ofdma"])
def test_clients_of_a_group_send_pilots_one_after_the_other(access: str) -> None:
    """S n/B_g seconds before a group of S sends, n/B_g of them its own; errors at every antenna are those of n/B_g."""
    uplink = {"access": access, "rate": {"model": "fixed", "rate_bps": 1e4}}
    receiver = {"streams": 4}
    piloted = run(sdma("zf", receiver=receiver, uplink=uplink, channel__csi={"pilot_symbols": 100}))[1]
    plain = run(sdma("zf", receiver=receiver, uplink=uplink))[1]
    for this, without in zip(piloted, plain, strict=True):
        groups = in_groups(this, 4)
        share = 1.0 if access == "tdma" else 1 / len(groups)
        extra = this.slots["tx_time"] - without.slots["tx_time"]
        np.testing.assert_allclose(extra, 100 / (BAND * share), rtol=1e-9)
        airtime = this.values["airtime"] - without.values["airtime"]
        if access == "tdma":
            assert airtime == pytest.approx(sum(len(group) for group in groups) * 100 / BAND, rel=1e-9)
    source = links_of(sdma("zf", channel__csi={"pilot_symbols": 100}, uplink=uplink)).network.clients
    found = source.channels(np.arange(5000), Moment(1, 0.0), share=share)
    assert found.channel.shape == (5000, 1, 1, 4)
    assert_mean(np.abs(found.estimate - found.channel) ** 2 * 100 * 10 / share, 1.0, std=1.0)


@pytest.mark.parametrize("refresh", ["slot", "piece"])
def test_a_message_over_pieces_has_pilots_before_the_first_or_before_each(refresh: str) -> None:
    """At a fixed rate with a strong signal: uploads of 19,520 bits at 1 Mbit/s, pieces of at most 0.0219/f_D."""
    rate = {"model": "fixed", "rate_bps": 1e6}
    moving: dict[str, Any] = {
        "channel__correlation": {"model": "clarke", "doppler_hz": 10.0},
        "channel__pathloss": {"model": "none"},
    }
    csi = {"refresh": refresh}
    uplink = {"kind": "digital", "snr_db": 60.0, "access": "tdma", "rate": rate, "tx_power_dbm": None}
    _, rounds, _ = run(digital(30, uplink=uplink, channel__csi=csi, **moving))
    pieces = 1 if refresh == "slot" else 9
    assert np.ceil(BITS / 1e6 / (0.02193 / 10.0)) == 9
    for this in rounds:
        np.testing.assert_allclose(this.slots["tx_time"] - BITS / 1e6, pieces * 30 / BAND, rtol=1e-6)


def test_every_retransmission_has_pilots() -> None:
    harq = {"harq": {"max": 4, "feedback_s": 1e-3}, "snr_db": 0.0, "tx_power_dbm": None}
    rate = {"rate": {"model": "fixed", "rate_bps": 3e5}}
    keys: dict[str, Any] = {"channel__pathloss": {"model": "none"}, "uplink": {**harq, **rate, "access": "tdma"}}
    piloted, plain = run(digital(50, **keys))[1], run(digital(None, **keys))[1]
    counts = set()
    for this, without in zip(piloted, plain, strict=True):
        transmissions = np.rint(without.slots["tx_time"] / (BITS / 3e5))
        np.testing.assert_allclose(
            this.slots["tx_time"] - without.slots["tx_time"], transmissions * 50 / BAND, rtol=1e-6
        )
        counts |= set(transmissions.tolist())
    assert len(counts) > 1


@pytest.mark.parametrize("protocol", ["pairwise_prf", "secagg", "secagg_plus"])
def test_every_message_of_secure_aggregation_has_pilots(protocol: str) -> None:
    uplink: dict[str, Any] = {
        "kind": "secure_aggregation",
        "protocol": protocol,
        "rate": {"model": "fixed", "rate_bps": 1e5},
    }
    if protocol == "secagg_plus":
        uplink["neighbours"] = 4
    strong: dict[str, Any] = {
        "channel__pathloss": {"model": "none"},
        "channel__fading": {"model": "static"},
        "rounds": 2,
    }
    watts: Any = {**uplink, "tx_power_dbm": -60.0}
    piloted, plain = run(digital(40, uplink=watts, **strong))[1], run(digital(None, uplink=watts, **strong))[1]
    messages = 1 if protocol == "pairwise_prf" else 4
    for this, without in zip(piloted, plain, strict=True):
        extra = this.slots["tx_time"] - without.slots["tx_time"]
        np.testing.assert_allclose(extra, messages * 40 * CLIENTS / BAND, rtol=1e-6)
        assert this.values["participants"] == CLIENTS
        joules = this.slots["tx_energy_j"] - without.slots["tx_energy_j"]
        np.testing.assert_allclose(joules, 1e-9 * extra, rtol=1e-6)


def test_a_deep_fade_of_secure_aggregation_is_known_from_pilots() -> None:
    uplink = {"kind": "secure_aggregation", "protocol": "secagg"}
    _, rounds, _ = run(digital(40, uplink=uplink, faults__fade_threshold=1e6, rounds=1))
    (this,) = rounds
    np.testing.assert_allclose(this.slots["tx_energy_j"], 0.1 * 40 * CLIENTS / BAND, rtol=1e-9)
    assert this.values["energy"] == pytest.approx(0.1 * 40 * CLIENTS**2 / BAND)


def test_asynchronous_uploads_have_pilots() -> None:
    keys: dict[str, Any] = {"aggregation": {"mode": "asynchronous", "buffer": 2}, "rounds": 6}
    fixed = {"rate": {"model": "fixed", "rate_bps": 1e5}}
    _, rounds, _ = run(digital(1000, uplink=fixed, **keys))
    _, before, _ = run(digital(None, uplink=fixed, **keys))
    assert rounds[-1].values["sim_time"] > before[-1].values["sim_time"]
    spent = sum(np.nansum(this.slots["tx_energy_j"]) for this in rounds)
    assert spent == pytest.approx(sum(this.values["energy"] for this in rounds))
    assert spent == pytest.approx(sum(np.nansum(this.slots["tx_time"]) for this in rounds) * 0.1, rel=1e-9)
    resting = digital(1000, uplink=fixed, faults__fade_threshold=1e6, **{**keys, "rounds": 2})
    _, (silent, *_), _ = run(resting)
    np.testing.assert_allclose(silent.values["energy"], CLIENTS * 0.1 * 1000 * CLIENTS / BAND, rtol=1e-9)


def test_a_selection_by_fresh_gains_pays_for_pilots_of_all() -> None:
    selection = {"scheme": "best_channel", "count": 2, "csi": "pilots"}
    _, rounds, _ = run(digital(50, clients__selection=selection, uplink={"access": "tdma"}))
    _, plain, _ = run(digital(None, clients__selection=selection, uplink={"access": "tdma"}))
    for this, without in zip(rounds, plain, strict=True):
        assert len(this.clients) == 2
        assert this.values["airtime"] > (CLIENTS + 2) * 50 / BAND
        own = np.nansum(this.slots["tx_energy_j"])
        assert this.values["energy"] == pytest.approx(own + CLIENTS * 0.1 * 50 / BAND)
        assert without.values["energy"] == pytest.approx(np.nansum(without.slots["tx_energy_j"]))


@pytest.mark.slow
def test_the_margin_holds_with_the_error_of_each_link() -> None:
    """At most 1 % of the uploads are lost where pilots leave links of different path gains different errors."""
    uplink = {"tx_power_dbm": 0.0, "rate": {"outage": 0.01, "min_rate_bps": 1.0}}
    links = links_of(digital(5, -20.0, uplink=uplink))
    lost, relative = list[bool](), list[float]()
    for index in range(1, 1501):
        drawn, slot = links.draw(np.arange(CLIENTS), Moment(index, 0.0), 1.0)
        assert slot is not None
        relative += (np.abs(slot.estimate - slot.channel)[:, 0, 0, 0] ** 2 / slot.path_gain).tolist()
        lost += [not link.delivers for link in drawn if link.sends]
    means = np.reshape(relative, (-1, CLIENTS)).mean(axis=0)
    assert means.max() > 3 * means.min() and means.max() > 0.01
    assert len(lost) > 5000
    assert_mean(np.array(lost, dtype=float), 0.01, std=np.sqrt(0.01 * 0.99))


def test_an_announced_upload_lasts_with_its_pilots() -> None:
    for piloted, plain, seconds in (
        (digital(500), digital(None), 500 * CLIENTS / BAND),
        (
            sdma("zf", channel__csi={"pilot_symbols": 500}, uplink={"rate": {"outage": None}}),
            sdma("zf"),
            4 * 500 / BAND,
        ),
    ):
        spans = [upload_span(one, build_simulation(one, PLAN).deployment.uplink).seconds for one in (piloted, plain)]
        assert spans[0] - spans[1] == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize(
    "kind", ["digital", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("sdma", "secagg"))]
)
def test_a_run_goes_on_from_a_checkpoint_and_repeats_to_the_same_bits(kind: str, tmp_path: Path) -> None:
    scenario = {
        "digital": digital(20, channel__correlation=CLARKE, channel__csi={"refresh": "piece"}),
        "sdma": sdma("mmse", channel__csi={"pilot_symbols": 20}),
        "secagg": digital(20, uplink={"kind": "secure_aggregation", "protocol": "secagg"}),
    }[kind]
    goes_on_to_the_same_bits(scenario, tmp_path)
    wfl.simulate(scenario, tmp_path / "out", pictures=False, device="cpu")
    assert verify(open_recording(tmp_path / "out" / "trace.h5")).difference is None


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"channel__csi": {"error_std": 0.1}}, r"csi\.pilot_symbols: found 20 with error_std: 0\.1"),
        ({"uplink": {"ofdma": "reallocate"}}, r"ofdma: found reallocate with channel\.csi\.pilot_symbols: 20"),
        (
            {"uplink": {"rate": {"model": "recorded", "file": "log.csv"}}},
            r"csi\.pilot_symbols: found 20 with uplink\.rate",
        ),
        ({"channel__fading": {"model": "tdl"}}, r"csi\.pilot_symbols: found 20 with tdl fading"),
        (
            {"channel__fading": {"model": "nakagami"}},
            r"outage: found 0\.01 with nakagami fading and channel\.csi\.pilot_s",
        ),
    ],
)
def test_what_is_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        digital(**overrides)


def test_an_ideal_uplink_has_no_pilots_and_an_snr_no_power_of_them() -> None:
    with pytest.raises(ScenarioError, match=r"csi\.pilot_symbols: found 5 with uplink\.kind: ideal, which has no chan"):
        small(uplink={"kind": "ideal"}, channel__csi={"pilot_symbols": 5})
    with pytest.raises(ScenarioError, match=r"csi\.pilot_power_dbm: found 3\.0 with uplink\.snr_db"):
        small(uplink={"kind": "digital"}, channel__csi={"pilot_symbols": 5, "pilot_power_dbm": 3.0})
