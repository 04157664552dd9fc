"""Imported channels in whole runs: the gains of the file, its time, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.channels.made import made
from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.analysis.audit.audit import audit_simulation
from wirelessfl.assembly import build_simulation, jammer_shortfall
from wirelessfl.channels import write_channels
from wirelessfl.errors import DataError, ModelWarning, ScenarioError
from wirelessfl.radio import ImportedChannels, Moment
from wirelessfl.radio.slot_schedule import MAX_DISTORTION, self_distortion
from wirelessfl.trace import Status

WATTS: dict[str, Any] = {"uplink__tx_power_dbm": 10.0, "faults__fade_threshold": 0.01}


def at(path: Path, **keys: Any) -> dict[str, Any]:
    """The key of a file's fading."""
    return {"channel__fading": {"model": "imported", "file": str(path), **keys}}


@pytest.fixture(name="flat")
def flat_file(tmp_path: Path) -> Path:
    return write_channels(made(), tmp_path / "h.h5")


@pytest.mark.parametrize("start", [0, 7])
def test_the_channel_is_that_of_the_file_at_that_time(flat: Path, start: int) -> None:
    """Step-hold: the last snapshot at or before the beginning of the slot."""
    simulation, rounds, _ = run(small(**at(flat, start=start), **WATTS, timing__cycles_per_sample=3e8))
    held = made()
    seen = set()
    for this in rounds:
        found = this.slots["channel_re"] + 1j * this.slots["channel_im"]
        number = start + math.floor(this.round.slot_opens / 5.0)
        seen.add(number)
        np.testing.assert_allclose(found, held.gains[number, :, 0, 0], rtol=1e-6)
    assert len(seen) > 1, "the rounds are longer than a snapshot"
    beta = (np.abs(held.gains) ** 2).mean(axis=(0, 2, 3))
    np.testing.assert_allclose(rounds[0].slots["path_gain"], beta, rtol=1e-6)
    assert simulation.ledger.epsilon_accounted() < math.inf


def test_time_goes_round_with_loop() -> None:
    channels = ImportedChannels(made(snapshots=4).gains, np.array([0.0, 1.0, 3.0, 4.0]), 1, True, "h")
    times = np.array([0.0, 0.5, 1.9999, 2.0, 3.0, 3.9999, 4.0, 5.0, 9.0])
    assert channels.snapshots(times, 1).tolist() == [1, 1, 1, 2, 3, 3, 0, 1, 0]


def test_the_last_snapshot_lasts_as_long_as_the_one_before() -> None:
    channels = ImportedChannels(made(snapshots=3).gains, np.array([0.0, 1.0, 3.0]), 0, False, "h.h5")
    assert channels.snapshots(np.array([4.9999999]), 1).tolist() == [2]
    message = (
        r"h\.h5 ends 5 s after the simulation begins; found round 6, which needs a channel at 5 s, snapshot 3, and "
    )
    with pytest.raises(DataError, match=message + r"snapshots 0 to 2; allowed: 1 more snapshots"):
        channels.snapshots(np.array([1.0, 5.0]), 6)
    with pytest.raises(DataError, match="snapshot 5, and"):
        channels.snapshots(np.array([9.5]), 6)


def test_a_single_snapshot_holds_for_ever() -> None:
    channels = ImportedChannels(made(snapshots=1).gains, np.zeros(1), 0, False, "h")
    assert channels.snapshots(np.array([0.0, 1e9]), 1).tolist() == [0, 0]
    assert channels.doppler_hz == 0.0


def test_a_run_that_outlasts_its_file_says_which_snapshot_it_lacks(tmp_path: Path) -> None:
    path = write_channels(made(snapshots=2, interval_s=1e-3), tmp_path / "h.h5")
    with pytest.raises(DataError, match=r"channel\.fading\.file: h\.h5 ends .* found round 1, .*loop: true"):
        run(small(**at(path), **WATTS))
    assert len(run(small(**at(path, loop=True), **WATTS))[1]) == 3


@pytest.mark.parametrize("iq_packing", [False, True])
@pytest.mark.parametrize("groups", [None, 1, 4])
def test_what_is_received_is_the_sum(tmp_path: Path, groups: int | None, iq_packing: bool) -> None:
    """Without noise worth the name every antenna and group of the file is inverted."""
    path = write_channels(made(antennas=3, subcarriers=8, gain_db=-20), tmp_path / "h.npz")
    ideal, _, _ = run(small(rounds=1, uplink__kind="ideal", uplink__clip=1.0))
    with pytest.warns(ModelWarning, match=r"channel\.fading\.groups: found \d groups") if groups else _none():
        found, rounds, _ = run(
            small(
                rounds=1,
                **at(path, groups=groups),
                uplink__receiver={"antennas": 3, "combiner": "max_min"},
                uplink__tx_power_dbm=200.0,
                uplink__iq_packing=iq_packing,
                uplink__power_control={"server_gain": 1e9},
            )
        )
    np.testing.assert_allclose(found.state.parameters, ideal.state.parameters, rtol=0, atol=2e-6)
    channel = rounds[0].slots["channel_re"] + 1j * rounds[0].slots["channel_im"]
    width = 8 // (groups or 8)
    held = made(antennas=3, subcarriers=8, gain_db=-20).gains[0, :, :, width // 2 :: width].transpose(0, 2, 1)
    np.testing.assert_allclose(channel, held if groups != 1 else held[:, 0], rtol=1e-6)


class _none:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def test_a_slot_is_divided_by_the_snapshots(tmp_path: Path) -> None:
    """No piece is longer than the least interval; each has the gain of the snapshot at its beginning."""
    path = write_channels(made(snapshots=5000, interval_s=2e-4), tmp_path / "h.h5")
    _, rounds, _ = run(small(rounds=1, **at(path, loop=True), **WATTS))
    channel = rounds[0].slots["channel_re"] + 1j * rounds[0].slots["channel_im"]
    pieces = channel.shape[1]
    airtime = float(rounds[0].values["airtime"])
    assert pieces == math.ceil(airtime / 2e-4 - 1e-9)
    begin = rounds[0].round.slot_opens + airtime / pieces * np.arange(pieces)
    number = np.floor((begin + 1e-12) / 2e-4).astype(int) % 5000
    held = made(snapshots=5000, interval_s=2e-4).gains[:, :, 0, 0]
    np.testing.assert_allclose(channel, held[number].T, rtol=1e-6)


def test_the_resolved_doppler_shift_has_its_definition() -> None:
    channels = ImportedChannels(made(snapshots=3).gains, np.array([0.0, 0.02, 1.0]), 0, False, "h")
    assert self_distortion(0.02, channels.doppler_hz) == pytest.approx(MAX_DISTORTION, rel=1e-9)


@pytest.mark.parametrize("kind", ["digital", "secure_aggregation", "ideal"])
def test_other_uplinks_run(flat: Path, kind: str) -> None:
    power = {} if kind == "ideal" else {"tx_power_dbm": 10.0}
    _, rounds, _ = run(small(**at(flat), uplink={"kind": kind, **power}))
    assert len(rounds) == 3
    if kind == "digital":
        found = rounds[0].slots["channel_re"] + 1j * rounds[0].slots["channel_im"]
        np.testing.assert_allclose(found, made().gains[0, :, 0, 0], rtol=1e-6)


def test_the_digital_rate_is_that_of_the_gain(flat: Path) -> None:
    """Energy is p·bits/(B/K log₂(1 + p|h|²/(N0 B/K))), by hand."""
    _, rounds, _ = run(small(**at(flat), uplink={"kind": "digital", "tx_power_dbm": 10.0}))
    band, watts = 1e6 / 6, 1e-2
    density = 1.380649e-23 * 290.0 * 10**0.5  # kT at a noise figure of 5 dB
    rate = band * np.log2(1 + watts * np.abs(made().gains[0, :, 0, 0]) ** 2 / (density * band))
    bits = rounds[0].slots["tx_energy_j"] / watts * rate
    np.testing.assert_allclose(bits, 32 * (64 * 8 + 8 + 8 * 10 + 10), rtol=2e-3)


def test_distances_are_those_of_the_file(tmp_path: Path) -> None:
    places = np.zeros((40, 6, 3))
    places[:, :, 0] = 10.0 * (1 + np.arange(6)) + np.arange(40)[:, None]
    path = write_channels(made(position_m=places, receiver_m=np.zeros(3)), tmp_path / "h.h5")
    simulation, _, _ = run(small(**at(path, start=3), **WATTS))
    found = simulation.deployment.network.last_distances(np.arange(6))
    later = round(float(found[0] - 10.0))
    assert later >= 3
    np.testing.assert_allclose(found, 10.0 * (1 + np.arange(6)) + later)


@pytest.mark.parametrize("antennas", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_audit_finds_nothing_against_the_ledger(tmp_path: Path, antennas: int) -> None:
    path = write_channels(made(antennas=antennas, subcarriers=4), tmp_path / "h.h5")
    receiver = {"antennas": antennas, "combiner": "random" if antennas > 1 else "sum"}
    scenario = small(
        **at(path),
        uplink__receiver=receiver,
        uplink__tx_power_dbm=10.0,
        uplink__power_control={"server_gain": 2.0},
    )
    found = audit_simulation(build_simulation(scenario, PLAN), "imported", trials=200)
    assert not found.contradicts_ledger, found.contradiction


def test_a_jammer_has_the_gains_of_the_file(tmp_path: Path) -> None:
    jammer = {"epsilon": 2.0, "power_db": 20.0, "max_shortfall": 1.0}
    keys: dict[str, Any] = {**WATTS, "uplink__jammer": jammer, "uplink__power_control": {"server_gain": 60.0}}
    without = write_channels(made(), tmp_path / "without.h5")
    with pytest.raises(DataError, match=r"without\.h5: found no gains of the jammer"):
        build_simulation(small(**at(without), **keys), PLAN)
    gains = 1e-5 * np.exp(1j * np.arange(40)).reshape(40, 1, 1)
    path = write_channels(made(jammer=gains), tmp_path / "h.h5")
    _, (this, *_), _ = run(small(**at(path), **keys))
    link = None if this.round.slot is None else this.round.slot.jammer
    assert link is not None and abs(link.channel[0, 0, 0]) == pytest.approx(1e-5, rel=1e-6)
    rotating = small(**at(without), **{**keys, "uplink__jammer": {**jammer, "role": "rotating"}})
    assert len(run(rotating)[1]) == 3


@pytest.mark.slow
def test_the_jammer_falls_short_by_the_gains_of_the_file(tmp_path: Path) -> None:
    """|h_CJ|² is 1e-10 in three of four snapshots, and 1e-14 in the fourth: it falls short in a quarter."""
    size = np.where(np.arange(40) % 4 == 0, 1e-7, 1e-5).reshape(40, 1, 1)
    path = write_channels(made(jammer=size + 0j), tmp_path / "h.h5")
    shares = set()
    for power_db in range(-10, 160, 10):
        jammer = {"epsilon": 2.0, "power_db": float(power_db), "max_shortfall": 1.0}
        scenario = small(**at(path), **WATTS, uplink__jammer=jammer, uplink__power_control={"server_gain": 60.0})
        simulation = build_simulation(scenario, PLAN)
        shares.add(jammer_shortfall(simulation.deployment.uplink, simulation.deployment.selection)[0])
    assert shares == {0.0, 0.25, 1.0}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clients__count": 5}, r"channel\.fading\.file: h\.npz: found the gains of 6 clients; allowed: 5"),
        (
            {"channel__fading__start": 40},
            r"channel\.fading\.start: found 40, and 40 snapshots in h\.npz; allowed: 0 to",
        ),
        (
            {"channel__fading__groups": 3},
            r"channel\.fading\.groups: found 3 with 8 subcarriers in h\.npz; allowed: a div",
        ),
        (
            {"uplink__receiver__antennas": 4},
            r"uplink\.receiver\.antennas: found 4, and gains of 2 antennas .* allowed: 2",
        ),
        ({"timing__bandwidth_hz": 2e6}, r"timing\.bandwidth_hz: found 2e\+06 Hz, and gains over 1e\+06 Hz in h\.npz"),
        ({"channel__fading__format": "hdf5"}, r"channel\.fading\.file: .*h\.npz: found npz; allowed: hdf5"),
        ({"channel__fading__file": "no.h5"}, r"channel\.fading\.file: found no file no\.h5"),
    ],
)
def test_what_does_not_fit_the_file_is_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    path = write_channels(made(antennas=2, subcarriers=8), tmp_path / "h.npz")
    keys: dict[str, Any] = {**WATTS, "uplink__receiver__antennas": 2}
    with pytest.raises(DataError, match=message):
        build_simulation(small(**{**at(path), **keys, **changed}), PLAN)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"uplink__snr_db": 5.0}, r"uplink\.snr_db: found 5\.0 with .* absolute; allowed: uplink\.tx_power_dbm"),
        ({"channel__pathloss": {"model": "free_space"}}, r"channel\.pathloss\.model: found free_space with"),
        (
            {"channel__correlation": {"model": "clarke", "doppler_hz": 5.0}},
            r"channel\.correlation\.model: found clarke",
        ),
        ({"channel__correlation": {"model": "my_mod:Mine"}}, r"channel\.correlation\.model: found my_mod:Mine with"),
        (
            {"uplink": {"kind": "digital", "tx_power_dbm": 10.0, "harq": {"max": 2}}},
            r"uplink\.harq: found retransmissions with imported fading; allowed: null",
        ),
        ({"channel__fading": {"model": "imported"}}, r"channel\.fading\.file: found null"),
        (
            {"channel__fading__groups": 4, "uplink": {"kind": "digital", "tx_power_dbm": 10.0}},
            r"channel\.fading\.groups: found 4 with uplink\.kind: digital; allowed: 1",
        ),
        (
            {"uplink__receiver": {"antennas": 2, "correlation": {"model": "one_ring"}}},
            r"uplink\.receiver\.correlation\.model: found one_ring with channel\.fading\.model: imported",
        ),
        ({"uplink__receiver": {"antennas": 2, "array": {"spacing": 1.0}}}, r"uplink\.receiver\.array: found an array"),
        ({"topology": {"kind": "multi_cell"}}, r"channel\.fading\.model: found imported with topology\.kind"),
        (
            {"timing__ofdm": {"subcarrier_spacing_hz": 15e3, "subcarriers": 24}, "channel__fading__groups": 16},
            r"channel\.fading\.groups: found 16 with 24 subcarriers \(timing\.ofdm\)",
        ),
        (
            {
                "uplink__power_control": {"policy": "truncated_inversion", "power_limit": "average"},
                "uplink__tx_power_dbm": 10.0,
                "faults__fade_threshold": 0.1,
            },
            r"uplink\.power_control\.power_limit: found average with the fading imported",
        ),
    ],
)
def test_what_is_not_modelled_is_refused(flat: Path, overrides: dict[str, Any], message: str) -> None:
    keys = {**at(flat), **overrides}
    with pytest.raises(ScenarioError, match=message):
        small(**keys)


@pytest.mark.parametrize("kind", ["digital", "secure_aggregation"])
def test_a_wide_file_or_an_array_needs_over_the_air(tmp_path: Path, kind: str) -> None:
    uplink = {"kind": kind, "tx_power_dbm": 10.0}
    wide = write_channels(made(subcarriers=8), tmp_path / "wide.h5")
    with pytest.raises(DataError, match=rf"found 8, one for each subcarrier in wide\.h5, with uplink\.kind: {kind}"):
        build_simulation(small(**at(wide), uplink=uplink), PLAN)
    array = write_channels(made(antennas=2), tmp_path / "array.h5")
    with pytest.raises(DataError, match=rf"uplink\.kind: found {kind}, and gains of 2 antennas in array\.h5"):
        build_simulation(small(**at(array), uplink=uplink), PLAN)


def test_gains_of_zero(tmp_path: Path) -> None:
    record = made()
    record.gains[3, 2] = 0
    path = write_channels(record, tmp_path / "h.h5")
    keys = {"uplink__tx_power_dbm": 10.0}
    with pytest.raises(
        DataError, match=r"found a gain of 0 for client 2 in snapshot 3 \(and 0 more\); allowed over the"
    ):
        build_simulation(small(**at(path), **keys), PLAN)
    _, rounds, _ = run(small(**at(path, start=3), **keys, faults__fade_threshold=0.01))
    assert rounds[0].status[2] == Status.DEEP_FADE
    record.gains[:, 2] = 0
    path = write_channels(record, tmp_path / "h.h5")
    with pytest.raises(DataError, match=r"found gains of 0 in all snapshots for client 2; allowed"):
        build_simulation(small(**at(path), **keys), PLAN)


def test_decibels_are_warned_about(tmp_path: Path) -> None:
    path = write_channels(made(gain_db=30), tmp_path / "h.h5")
    with pytest.warns(ModelWarning, match=r"found a mean gain of 30\.\d dB, above 0 dB"):
        build_simulation(small(**at(path), **WATTS), PLAN)


def test_a_slot_longer_than_the_file(tmp_path: Path) -> None:
    path = write_channels(made(snapshots=2, interval_s=1e-4), tmp_path / "h.h5")
    with pytest.raises(
        DataError, match=r"found 2 snapshots from channel\.fading\.start 0 on, 0\.0002 s, with a slot of"
    ):
        build_simulation(small(**at(path), **WATTS), PLAN)


def test_estimates_err_relative_to_the_clients_own_mean(flat: Path) -> None:
    csi = {"error_std": 0.3, "estimator": "mmse"}
    simulation = build_simulation(small(**at(flat), **WATTS, channel__csi=csi), PLAN)
    source, nodes = simulation.deployment.network.clients, np.arange(6)
    errors = []
    for index in range(1, 400):
        found = source.channels(nodes, Moment(index, float(index % 40)))
        beta = found.path_gain[:, None, None, None]
        ls = found.estimate * (1 + 0.3**2)
        errors.append(np.abs(ls - found.channel) ** 2 / beta)
    assert np.mean(errors) == pytest.approx(0.3**2, rel=0.05)


WIDE: dict[str, Any] = {"uplink__receiver": {"antennas": 2, "combiner": "max_min"}, **WATTS}
LINK = {"kind": "digital", "tx_power_dbm": 10.0}


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({**WIDE, "uplink__iq_packing": True}, id="I/Q packing"),
        pytest.param({**WIDE, "channel__csi": {"pilot_symbols": 4, "refresh": "piece"}}, id="pilots for each piece"),
        pytest.param({**WIDE, "channel__sync": {"cfo_hz": 50.0, "phase_std": 0.1}}, id="carrier offsets"),
        pytest.param({**WIDE, "timing__ofdm": {"subcarrier_spacing_hz": 62500.0, "subcarriers": 16}}, id="OFDM"),
        pytest.param({**WIDE, "timing__deadline_s": 1.0, "faults__crash_rate_per_s": 0.5}, id="deadline, crashes"),
        pytest.param({**WIDE, "clients__selection": {"scheme": "poisson", "rate": 0.5}}, id="selection"),
        pytest.param({**WIDE, "uplink__power_control": {"policy": "full_power"}}, id="another policy"),
        pytest.param(
            {
                **WIDE,
                "uplink__jammer": {"epsilon": 2.0, "role": "rotating", "calibration": "exact", "max_shortfall": 1.0},
                "uplink__power_control": {"server_gain": 2.0},
            },
            id="jammer against all antennas",
            marks=pytest.mark.slow,
        ),
        pytest.param({"uplink": {**LINK, "access": "tdma"}}, id="TDMA"),
        pytest.param({"uplink": LINK, "aggregation": {"mode": "asynchronous", "buffer": 2}}, id="asynchronous"),
        pytest.param({"uplink": {**LINK, "kind": "secure_aggregation", "protocol": "pairwise_prf"}}, id="pairwise"),
    ],
)
def test_it_goes_with(tmp_path: Path, keys: dict[str, Any]) -> None:
    size = {"antennas": 2, "subcarriers": 8} if "uplink__receiver" in keys else {}
    path = write_channels(made(interval_s=0.02, **size), tmp_path / "h.h5")
    _, rounds, _ = run(small(rounds=2, **at(path, loop=True), **keys))
    assert len(rounds) == 2
    channel = rounds[0].slots["channel_re"]
    assert np.all(np.isfinite(channel[rounds[0].status == Status.PARTICIPATED]))
