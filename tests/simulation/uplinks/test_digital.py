"""Digital uplinks: arrivals, rates, outage, energy, and who is charged for what."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import run, small
from tests.simulation.uplinks.cells import play
from tests.statistics import assert_mean
from wirelessfl.errors import ScenarioError
from wirelessfl.radio.digital_links import Link
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.uplinks import DigitalUplink
from wirelessfl.trace import EventKind, Status

TIMING_COMPUTE = (1.0, 2.0, 3.0, 9.0)
TIMING_LINKS = tuple(Link(1.0 / bps) for bps in (1e6, 2e6, 4e6, 8e6))


def digital(**overrides: Any) -> Scenario:
    """The small scenario with a digital uplink; keys of the uplink without prefix."""
    others = {key: overrides.pop(key) for key in list(overrides) if "__" in key or key in ("rounds", "seed", "stop")}
    return small(uplink={"kind": "digital", **overrides}, **others)


@pytest.mark.parametrize(
    ("timing", "total", "heard"),
    [
        ({}, 30.0, [0, 1, 2, 3]),
        ({"wait_for": {"count": 3}}, 27.0, [0, 1, 2]),
        ({"deadline_s": 7.0}, 21.0, [1, 2]),
    ],
)
def test_the_timing_case_of_radio_md(timing: dict[str, Any], total: float, heard: list[int]) -> None:
    scenario = digital(clients__count=4, **{f"timing__{key}": value for key, value in timing.items()})
    # 250,000 parameters at 32 bit are 8 Mbit: uploads of 8, 4, 2 and 1 s after 1, 2, 3 and 9 s.
    played = play(scenario, TIMING_COMPUTE, TIMING_LINKS, dimension=250_000)
    assert played.rounds[-1].values["sim_time"] == total
    for number, this in enumerate(played.rounds, start=1):
        assert np.flatnonzero(this.status == Status.PARTICIPATED).tolist() == heard
        assert this.values["participants"] == len(heard)
        arrivals = {node: time for time, node in played.times(EventKind.ARRIVE, number)}
        began = total / 3 * (number - 1)
        assert arrivals == {client: began + (9.0, 6.0, 5.0, 10.0)[client] for client in heard}
    assert played.learner.trained == [(number, heard) for number in (1, 2, 3)]


def test_a_late_upload_counts_as_transmitted_and_one_that_never_began_does_not() -> None:
    deadline = play(digital(clients__count=4, timing__deadline_s=7.0), TIMING_COMPUTE, TIMING_LINKS, 250_000)
    # Client 0 was in the middle of its upload, client 3 still training.
    assert [(number, clients) for number, clients, _ in deadline.learner.charged] == [(m, [0, 1, 2]) for m in (1, 2, 3)]
    np.testing.assert_array_equal(deadline.rounds[0].slots["tx_time"], [6.0, 4.0, 2.0, math.nan])
    assert deadline.rounds[0].round.releases[0].clients.tolist() == [0, 1, 2]
    # Client 3 begins to send at the instant at which the window closes: not a bit of it is sent.
    first = play(digital(clients__count=4, timing__wait_for={"count": 3}), TIMING_COMPUTE, TIMING_LINKS, 250_000)
    assert first.learner.charged[0][1] == [0, 1, 2]
    assert np.isnan(first.rounds[0].slots["tx_time"][3])


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"uplink__access": "tdma"},
        {"aggregation": {"mode": "asynchronous", "buffer": 6}},
        {"uplink__kind": "secure_aggregation"},
        {"uplink__kind": "secure_aggregation", "uplink__protocol": "secagg"},
    ],
    ids=["ofdma", "tdma", "asynchronous", "pairwise_prf", "secagg"],
)
def test_an_upload_of_less_than_a_tick_is_charged(keys: dict[str, Any]) -> None:
    """2,720 bits at 1e16 bit/s take 0.3 ps, on a clock of picoseconds: who sent is charged, not who took time."""
    uplink = {"kind": "digital", "rate": {"model": "fixed", "rate_bps": 1e16}, "snr_db": 300.0}
    scenario = small(uplink=uplink, model__hidden=[1], rounds=1, timing__bandwidth_hz=1e15, **keys)
    simulation, rounds, _ = run(scenario)
    this = rounds[0]
    heard = this.clients[this.round.with_status(Status.PARTICIPATED)]
    assert len(heard) == 6
    assert [release.clients.tolist() for release in this.round.releases] == [heard.tolist()]
    assert simulation.ledger.epsilon_accounted() == math.inf
    np.testing.assert_array_equal(this.slots["tx_time"], 0.0)


def test_energy_is_power_times_time_on_the_air() -> None:
    played = play(
        digital(clients__count=4, tx_power_dbm=20.0, timing__deadline_s=7.0), TIMING_COMPUTE, TIMING_LINKS, 250_000
    )
    this = played.rounds[0]
    np.testing.assert_allclose(this.slots["tx_energy_j"], 0.1 * np.array([6.0, 4.0, 2.0, math.nan]), rtol=1e-12)
    assert this.values["energy"] == pytest.approx(0.1 * 12.0, rel=1e-12)
    assert this.values["airtime"] == 6.0  # the first sends from 1 s on, the window closes at 7 s
    # In units of N0/2: 2 p T/N0, N0 = k T0 10^(NF/10) (RADIO.md).
    density = 1.380649e-23 * 290.0 * 10**0.5
    np.testing.assert_allclose(this.slots["tx_energy"][:3], 2 * 0.1 * np.array([6.0, 4.0, 2.0]) / density, rtol=1e-12)


def test_airtime_is_the_time_in_which_anybody_sends() -> None:
    links = (Link(1e-3), Link(1e-3), Link(1e-3))
    # 320 bits take 0.32 s: sending from 1, 1.2 and 5 s on.
    played = play(digital(clients__count=3), (1.0, 1.2, 5.0), links)
    assert played.rounds[0].values["airtime"] == pytest.approx(0.52 + 0.32, abs=1e-12)


def test_uploads_last_as_long_as_shannon_says() -> None:
    _, rounds, _ = run(digital(snr_db=13.0, timing__bandwidth_hz=2e6, rate={"min_rate_bps": 1.0}))
    for this in rounds:
        power = this.slots["channel_re"] ** 2 + this.slots["channel_im"] ** 2
        # γ = |h|² p/(N0 B_i), SNR_i = 2p/(N0 B), B_i = B/6.
        rate = 2e6 / 6 * np.log2(1 + 10**1.3 * power / 2 * 6)
        np.testing.assert_allclose(this.slots["tx_time"], 32 * 610 / rate, rtol=1e-9)
        finish = this.slots["compute_time"] + this.slots["tx_time"]
        assert this.values["airtime"] <= finish.max()
    lasted = rounds[1].values["sim_time"] - rounds[0].values["sim_time"]
    last = np.max(rounds[1].slots["compute_time"] + rounds[1].slots["tx_time"])
    assert lasted == pytest.approx(32 * 610 / 1e7 + last, abs=1e-11)


def test_watts_and_snr_are_the_same_link() -> None:
    watts = 10 ** (0.1 * 10.0 - 3)
    snr = 2 * watts / (1.380649e-23 * 290.0 * 10**0.5 * 1e6)
    by_watts, by_snr = digital(tx_power_dbm=10.0), digital(snr_db=10 * math.log10(snr))
    one, other = run(by_watts)[1][0], run(by_snr)[1][0]
    np.testing.assert_allclose(one.slots["tx_time"], other.slots["tx_time"], rtol=1e-9)
    np.testing.assert_allclose(one.slots["tx_energy"], other.slots["tx_energy"], rtol=1e-9)
    assert np.isfinite(one.slots["tx_energy_j"]).all()
    assert np.isnan(other.slots["tx_energy_j"]).all() and np.isnan(other.values["energy"])


def test_with_perfect_links_it_is_the_ideal_uplink() -> None:
    ideal, _, _ = run(small(uplink={"kind": "ideal"}))
    sent, _, _ = run(digital())
    np.testing.assert_array_equal(ideal.state.parameters, sent.state.parameters)


@pytest.mark.parametrize("rate", [{"model": "adaptive", "min_rate_bps": 2e4}, {"model": "fixed", "rate_bps": 2e4}])
def test_outage_follows_the_law_of_rayleigh_fading(rate: dict[str, Any]) -> None:
    clients, rounds = 60, 50
    scenario = digital(
        rounds=rounds, snr_db=0.0, rate=rate, clients__count=clients, timing__bandwidth_hz=6e5, evaluate__every=100
    )
    played = play(scenario)
    # 10 kHz a client, γ̄ = SNR/2 · 60: the rate of 2 bit/s/Hz is missed with probability 1 − e^{−3/30}.
    expected = 1 - math.exp(-(2 ** (2e4 / 1e4) - 1) / 30.0)
    assert expected == pytest.approx(-math.expm1(-0.1), rel=1e-12)
    missed = Status.DEEP_FADE if rate["model"] == "adaptive" else Status.OUTAGE
    out = np.array([this.status == missed for this in played.rounds], dtype=float).ravel()
    assert_mean(out, expected, math.sqrt(expected * (1 - expected)))
    for this in played.rounds:
        lost = this.status == missed
        if rate["model"] == "adaptive":  # those who know stay silent
            assert np.isnan(this.slots["tx_time"][lost]).all()
            assert not np.intersect1d(this.round.releases[0].clients, this.clients[lost]).size
        else:  # those who do not send in vain, and have transmitted
            np.testing.assert_allclose(this.slots["tx_time"], 320 / 2e4, rtol=1e-9)
            assert this.round.releases[0].clients.tolist() == this.clients.tolist()
        assert this.values["participants"] == clients - lost.sum()


def test_a_deep_fade_keeps_silent_as_over_the_air() -> None:
    _, rounds, _ = run(digital(rounds=10, faults__fade_threshold=0.5))
    for this in rounds:
        power = np.hypot(this.slots["channel_re"], this.slots["channel_im"]) ** 2
        np.testing.assert_array_equal(this.status == Status.DEEP_FADE, power < 0.5)


def test_an_estimate_that_promises_too_much_loses_the_upload() -> None:
    without_margin = {"min_rate_bps": 1.0, "outage": None}
    _, rounds, _ = run(digital(rounds=10, channel__csi={"error_std": 0.3}, rate=without_margin))
    for this in rounds:
        power = np.hypot(this.slots["channel_re"], this.slots["channel_im"])
        believed = np.hypot(this.slots["csi_re"], this.slots["csi_im"])
        np.testing.assert_array_equal(this.status == Status.OUTAGE, believed > power)
        assert np.isfinite(this.slots["tx_time"]).all()


def test_few_bits_are_sent_sooner_and_round_without_bias() -> None:
    _, exact, _ = run(digital(rounds=1))
    simulation, rounds, _ = run(digital(rounds=1, bits=4))
    np.testing.assert_allclose(
        rounds[0].slots["tx_time"], exact[0].slots["tx_time"] * (4 * 610 + 32) / (32 * 610), rtol=1e-9
    )
    uplink, parts = simulation.deployment.uplink, simulation.deployment
    assert isinstance(uplink, DigitalUplink)
    before = run(small(uplink={"kind": "ideal"}, rounds=1))[0].deployment.learner
    state = before.initial_state(0)
    blocks = list(parts.learner.train(state.parameters, state, rounds[0].clients, 1))
    updates = np.concatenate([block.updates.numpy() for block in blocks])
    order = np.argsort(np.concatenate([block.positions for block in blocks]))
    weight = parts.network.registry.weight(rounds[0].clients)
    received = simulation.state.parameters - state.parameters
    # Every coordinate lands on one of the two levels beside it: at most one step of 2 max|Δ|/15 away.
    step = 2 * np.abs(updates[order]).max(axis=1) / 15
    error = received - weight @ updates[order]
    assert np.all(np.abs(error) <= weight @ step * (1 + 1e-5))
    assert np.abs(error).max() > 0.05 * (weight @ step)
    # Mean 0, each client's error of variance at most step²/4.
    assert_mean(error, 0.0, math.sqrt(float((weight**2) @ (step**2) / 4)))


def test_crashed_clients_send_nothing() -> None:
    _, rounds, _ = run(digital(rounds=6, faults__crash_rate_per_s=40.0))
    crashed = [this.status == Status.CRASHED for this in rounds]
    assert 0 < sum(int(each.sum()) for each in crashed) < 36
    for this, gone in zip(rounds, crashed, strict=True):
        if "tx_time" in this.slots:
            assert np.isnan(this.slots["tx_time"][gone]).all()


def test_batteries_run_empty() -> None:
    links = (Link(1e-3),) * 3
    # 0.32 s at 0.1 W are 32 mJ a round, also for the upload that comes too late; the client that trains on spends none.
    scenario = digital(rounds=5, clients__count=3, tx_power_dbm=20.0, faults__battery_j=0.08, timing__deadline_s=2.0)
    played = play(scenario, (1.0, 1.9, 5.0), links)
    drained = played.simulation.state.battery_used_j
    assert [int((this.status == Status.BATTERY_EMPTY).sum()) for this in played.rounds] == [0, 0, 0, 1, 1]
    np.testing.assert_allclose(drained, [0.096, 5 * 0.01, 0.0], rtol=1e-9)


def test_a_round_without_anybody_leaves_the_model() -> None:
    played = play(digital(faults__availability={"p": 0.0}))
    assert played.learner.trained == [] and played.learner.charged == []
    assert not played.simulation.state.parameters.any()
    assert [this.values["energy"] for this in played.rounds] == [0.0] * 3


def test_a_battery_needs_watts() -> None:
    with pytest.raises(ScenarioError, match=r"faults\.battery_j.*tx_power_dbm"):
        digital(faults__battery_j=1.0)
    digital(faults__battery_j=1.0, tx_power_dbm=10.0)


def test_one_after_the_other_airtimes_add() -> None:
    """TDMA: ready at 1, 2, 3, 9 s with 8, 4, 2, 1 s to send: arrivals at 9, 13, 15, 16 s."""
    played = play(digital(clients__count=4, rounds=1, access="tdma"), TIMING_COMPUTE, TIMING_LINKS, 250_000)
    assert played.times(EventKind.TRANSMIT) == [(1.0, 0), (9.0, 1), (13.0, 2), (15.0, 3)]
    assert played.times(EventKind.ARRIVE) == [(9.0, 0), (13.0, 1), (15.0, 2), (16.0, 3)]
    assert played.rounds[0].values["airtime"] == 8 + 4 + 2 + 1
    together = play(digital(clients__count=4, rounds=1, access="tdma"), (1.0,) * 4, TIMING_LINKS, 250_000)
    assert played.rounds[0].values["sim_time"] == together.rounds[0].values["sim_time"] == 16.0
    assert [node for _, node in together.times(EventKind.ARRIVE)] == [0, 1, 2, 3], "in the order of their numbers"


def test_who_waits_for_its_turn_at_the_deadline_is_late_and_has_sent_nothing() -> None:
    scenario = digital(clients__count=4, rounds=1, access="tdma", tx_power_dbm=20.0, timing__deadline_s=14.0)
    played = play(scenario, TIMING_COMPUTE, TIMING_LINKS, 250_000)
    (this,) = played.rounds
    late = Status.LATE
    assert this.status.tolist() == [Status.PARTICIPATED, Status.PARTICIPATED, late, late]
    np.testing.assert_array_equal(this.slots["tx_time"], [8.0, 4.0, 1.0, math.nan])
    assert played.learner.charged[0][1] == [0, 1, 2]
    assert played.times(EventKind.LATE) == [(14.0, 2), (14.0, 3)]


def test_everyone_has_the_whole_band_in_turn() -> None:
    """γ = SNR |h|²/2 over the full band (RADIO.md): the in-phase-only SNR would be 3 dB optimistic."""
    _, rounds, _ = run(digital(snr_db=13.0, access="tdma", rate={"min_rate_bps": 1.0}))
    for this in rounds:
        power = this.slots["channel_re"] ** 2 + this.slots["channel_im"] ** 2
        np.testing.assert_allclose(
            this.slots["tx_time"], 32 * 610 / (1e6 * np.log2(1 + 10**1.3 * power / 2)), rtol=1e-9
        )
        assert this.values["airtime"] == pytest.approx(np.sum(this.slots["tx_time"]), rel=1e-9)


def test_short_packets_take_longer_by_the_normal_approximation_and_their_repetitions() -> None:
    packets = {"blocklength": 200, "error_probability": 0.01}
    _, rounds, _ = run(digital(snr_db=13.0, rate={"min_rate_bps": 1e-3, "packets": packets}))
    for this in rounds:
        power = this.slots["channel_re"] ** 2 + this.slots["channel_im"] ** 2
        snr = 10**1.3 * power / 2 * 6
        # Polyanskiy, Poor, Verdú: log2(1 + γ) − √(V/n) Q⁻¹(ε) log2 e with V = γ (γ + 2)/(γ + 1)², Q⁻¹(0.01) = 2.3263.
        dispersion = snr * (snr + 2) / (snr + 1) ** 2
        rate = 1e6 / 6 * (np.log2(1 + snr) - np.sqrt(dispersion / 200) * 2.3263478740 * math.log2(math.e))
        sends = this.status == Status.PARTICIPATED
        np.testing.assert_allclose(this.slots["tx_time"][sends], (32 * 610 / (rate * 0.99))[sends], rtol=1e-9)
        assert np.all(rate[~sends] <= 1e-2), "silent only where such packets carry nothing"
        assert sends.any()


def test_very_long_packets_without_errors_are_shannons() -> None:
    long = {"blocklength": 10**9, "error_probability": 1e-9}
    one, other = (run(digital(snr_db=13.0, rate=rate))[1][0] for rate in ({"packets": long}, {}))
    np.testing.assert_allclose(one.slots["tx_time"], other.slots["tx_time"], rtol=1e-3)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"access": "cdma"}, "uplink.access: found cdma"),
        ({"rate": {"packets": {"blocklength": 10}}}, "uplink.rate.packets.blocklength: found 10"),
        ({"rate": {"packets": {"error_probability": 0.6}}}, "uplink.rate.packets.error_probability: found 0.6"),
        ({"rate": {"model": "fixed", "packets": {}}}, "packets: found an unknown key"),
    ],
)
def test_bad_links_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message.replace(".", r"\.")):
        digital(**keys)
