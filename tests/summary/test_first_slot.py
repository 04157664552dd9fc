"""Pictures of beams and spectra: the numbers in them against closed forms and the trace of the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import wirelessfl as wfl
from tests.channels.made import made
from tests.simulation.scenarios import PLAN, SMALL, small
from tests.speed import rest_slow
from wirelessfl import api
from wirelessfl.assembly import build_simulation
from wirelessfl.assembly.first_slot import FirstSlot, first_slot
from wirelessfl.cli import main
from wirelessfl.errors import InputError
from wirelessfl.radio import ArrayGeometry
from wirelessfl.radio.tapped_delay_line import TappedDelayLine, group_frequencies
from wirelessfl.scenario import Scenario

LINE_OF_SIGHT = {"model": "rician", "k_db": 60}
TDL = {"model": "tdl", "profile": "C", "delay_spread_s": 1e-7, "groups": 8}
BLIND: dict[str, Any] = {  # its server reads all antennas and forms no beam
    "uplink__receiver": {"antennas": 8},
    "uplink__modulation": {"scheme": "blind"},
    "uplink__power_control": {"policy": "no_csi"},
}
ABSENT = {"availability": {"p": 0.6}, "fade_threshold": 0.5}


def slot_of(scenario: Scenario) -> FirstSlot:
    """The first slot of a scenario."""
    return first_slot(lambda: build_simulation(scenario, PLAN))


@pytest.mark.parametrize("spacing", [0.25, 0.5])
def test_the_pattern_of_a_sum_is_the_array_factor(spacing: float) -> None:
    """|sin(Aψ/2)/sin(ψ/2)|²/A with ψ = 2π·spacing·sin φ."""
    angles = np.linspace(-1.5, 1.5, 100)  # not at broadside, where both sines vanish
    psi = 2 * np.pi * spacing * np.sin(angles)
    expected = (np.sin(6 * psi / 2) / np.sin(psi / 2)) ** 2 / 6
    found = ArrayGeometry(1, 6, spacing).pattern(np.ones(6, dtype=np.complex128), angles)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert ArrayGeometry(1, 6, spacing).pattern(np.full(6, 2j), np.zeros(1))[0] == pytest.approx(6.0)


def test_clients_on_a_line_of_sight_lie_on_the_pattern() -> None:
    slot = slot_of(small(channel__fading=LINE_OF_SIGHT, uplink__receiver={"antennas": 5, "combiner": "max_min"}))
    assert slot.geometry is not None
    pattern = slot.geometry.pattern(slot.weights[0], slot.azimuth)
    np.testing.assert_allclose(slot.gain[:, 0], pattern, rtol=0.02)


@pytest.mark.parametrize("csi", rest_slow([0.3, 0.0]))
def test_it_is_the_slot_that_the_run_has(csi: float, tmp_path: Path) -> None:
    """Clients, gains in groups of subcarriers, and who sends: as the trace has them."""
    scenario = small(channel__fading=TDL, faults=ABSENT, timing__bandwidth_hz=5e6, channel__csi={"error_std": csi})
    slot = slot_of(scenario)
    result = wfl.simulate(scenario, tmp_path / "run", device="cpu", pictures=False)
    with wfl.open_trace(result.trace) as trace:
        first = trace.isel(round=0)
        asked = np.isfinite(first["channel_re"].to_numpy()[:, 0])
        estimate = first["csi_re"].to_numpy() + 1j * first["csi_im"].to_numpy()
        assert slot.clients.tolist() == first["client_id"].to_numpy()[asked].tolist()
        np.testing.assert_array_equal(slot.estimate[:, :, 0], estimate[asked])
        share = first["truncated_share"].to_numpy()[asked]
    np.testing.assert_allclose(1 - slot.sends.mean(axis=1), share)
    np.testing.assert_array_equal(slot.sends, slot.gain >= slot.fade_threshold)


def test_energy_and_jamming_of_each_group_are_those_of_the_equations(tmp_path: Path) -> None:
    """|α_i|τ/√P_i = min(α_u p_i/(|ĥ_i|√P_i), 1) where a client sends, and (α_CJ|h_CJ|/σ_c)², from the trace."""
    keys: dict[str, Any] = {"channel__fading": TDL, "timing__bandwidth_hz": 5e6, "uplink__jammer": {"epsilon": 5.0}}
    scenario = small(**keys, faults={"fade_threshold": 0.5}, channel__csi={"error_std": 0.2}, uplink__snr_db=3.0)
    slot = slot_of(scenario)
    result = wfl.simulate(scenario, tmp_path / "run", device="cpu", pictures=False)
    with wfl.open_trace(result.trace) as trace:
        first = trace.isel(round=0)
        values = {name: float(first[name]) for name in ("server_gain", "channel_noise_std", "jammer_gain")}
        estimate = np.hypot(first["csi_re"].to_numpy(), first["csi_im"].to_numpy())
        jammer = np.hypot(first["jammer_channel_re"].to_numpy(), first["jammer_channel_im"].to_numpy())
        dimension = int(trace.attrs["dimension"])
    amplitude = 10**0.15 * np.sqrt(dimension) * values["channel_noise_std"]  # √P_i
    expected = np.minimum(values["server_gain"] / len(estimate) / (estimate * amplitude), 1.0) ** 2
    assert 0 < slot.sends.mean() < 1
    np.testing.assert_allclose(slot.sent, np.where(slot.sends, expected, 0.0), rtol=1e-9)
    np.testing.assert_allclose(
        slot.jamming, (values["jammer_gain"] * jammer / values["channel_noise_std"]) ** 2, rtol=1e-9
    )
    assert values["jammer_gain"] > 0


def test_where_all_are_silent_nothing_is_sent() -> None:
    keys: dict[str, Any] = {"channel__fading": TDL, "timing__bandwidth_hz": 5e6, "uplink__jammer": {"epsilon": 5.0}}
    slot = slot_of(small(**keys, faults={"fade_threshold": 1e6}))
    assert not slot.sends.any() and not slot.sent.any() and np.isnan(slot.jamming).all()


def test_the_spectrum_of_a_delay_line_is_the_transform_of_its_taps() -> None:
    """Taps at whole samples 1/B: the response at frequencies k B/F is the discrete Fourier transform."""
    power = np.array([0.5, 0.3, 0.0625, 0.1375])
    line = TappedDelayLine(np.array([0.0, 1.0, 2.0, 5.0]) / 5e6, power)
    taps = np.zeros(8)
    taps[[0, 1, 2, 5]] = np.sqrt(power)
    middle = np.exp(-2j * np.pi * np.arange(8) * (0.5 - 4) / 8)  # groups lie symmetrically about the middle of the band
    np.testing.assert_allclose(
        line.response(group_frequencies(8, 5e6)).sum(axis=0), np.fft.fft(taps * middle), atol=1e-12
    )


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ({}, ["topology", "labels"]),
        ({"uplink": {"kind": "ideal"}}, ["topology", "labels"]),
        ({"uplink__receiver": {"antennas": 2, "combiner": "sum"}}, ["topology", "labels", "beam"]),
        (BLIND, ["topology", "labels"]),
        ({"channel__fading": TDL, "timing__bandwidth_hz": 5e6}, ["topology", "labels", "spectrum"]),
    ],
)
def test_a_scenario_has_the_pictures_that_say_something(keys: dict[str, Any], names: list[str]) -> None:
    assert list(api.plots_of(small(**keys))) == names


def test_imported_channels_have_gains_without_directions(tmp_path: Path) -> None:
    """|Σ_a h_a|² over A of the gains in the file, in units of their mean power at one antenna."""
    file = made(antennas=3)
    keys: dict[str, Any] = {"uplink__tx_power_dbm": 10.0, "uplink__receiver": {"antennas": 3, "combiner": "sum"}}
    path = wfl.write_channels(file, tmp_path / "h.h5")
    scenario = small(**keys, channel__fading={"model": "imported", "file": str(path)})
    slot = slot_of(scenario)
    assert slot.geometry is None and np.isnan(slot.azimuth).all()
    found = file.gains[0, slot.clients, :, 0]
    mean = (np.abs(file.gains) ** 2).mean(axis=(0, 2, 3))[slot.clients]
    np.testing.assert_allclose(slot.gain[:, 0], np.abs(found.sum(axis=1)) ** 2 / 3 / mean, rtol=1e-6)
    api.plot_beam(scenario, tmp_path / "beam.svg")
    assert "<svg" in (tmp_path / "beam.svg").read_text(encoding="utf-8")


def test_both_are_drawn(tmp_path: Path) -> None:
    scenario = small(
        channel__fading=TDL,
        timing__bandwidth_hz=5e6,
        uplink__receiver={"antennas": 4, "combiner": "max_min"},
        uplink__jammer={"epsilon": 5.0},
    )
    for name, plot in (("beam", api.plot_beam), ("spectrum", api.plot_spectrum)):
        plot(scenario, tmp_path / f"{name}.svg")
        assert "<svg" in (tmp_path / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("keys", "names"),
    [({"antennas": 1}, {"labels", "topology"}), ({"antennas": 2, "combiner": "sum"}, {"beam", "labels", "topology"})],
)
def test_the_command_writes_what_the_scenario_has(
    keys: dict[str, Any], names: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL + f"uplink: {{receiver: {json.dumps(keys)}}}\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["validate", "small.yaml", "--plot", "--figures", "svg"])
    assert result.exit_code == 0, result.output
    assert {path.name for path in tmp_path.glob("*.svg")} == {f"small-{name}.svg" for name in names}


def test_what_a_scenario_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no beam to draw; allowed: uplink\.receiver\.antennas from 2"):
        api.plot_beam(small(), tmp_path / "beam.png")
    with pytest.raises(InputError, match=r"no spectrum to draw; allowed: channel\.fading\.groups from 2"):
        api.plot_spectrum(small(), tmp_path / "spectrum.png")
    assert not list(tmp_path.iterdir())
