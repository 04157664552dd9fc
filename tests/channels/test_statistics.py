"""Statistics of channel files against channels whose delays and Doppler shifts are known in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from tests.channels.made import made
from wirelessfl.channels import ChannelRecord, figures_of
from wirelessfl.channels.statistics import summary_of
from wirelessfl.radio import clarke_gains, tapped_delay_line
from wirelessfl.streams import Streams


def delay_line(profile: str, spread_s: float, spacing_hz: float, subcarriers: int) -> ChannelRecord:
    """Gains of a tapped delay line of this package, over many independent snapshots."""
    line = tapped_delay_line(profile, spread_s)  # type: ignore[arg-type]
    frequency = np.asarray(spacing_hz * (np.arange(subcarriers) - (subcarriers - 1) / 2), dtype=np.float64)
    drawn = np.random.default_rng(5).normal(size=(2, 400, 10, 1, len(line.power)))
    taps = (drawn[0] + 1j * drawn[1]) / np.sqrt(2)
    return ChannelRecord(taps @ line.response(frequency) * 1e-5, np.arange(400.0), frequency)


@pytest.mark.parametrize("profile", ["A", "C"])
def test_the_delay_spread_is_that_of_the_profile(profile: str) -> None:
    found = figures_of(delay_line(profile, 100e-9, 50e3, 128))
    assert found.delay_spread_s == pytest.approx(100e-9, rel=0.03)


def test_the_profile_over_the_delay_is_exponential() -> None:
    """Power e^{−τ/σ}: a straight line of −10/ln 10 dB per σ; 200 ns, of which 20 MHz resolve 50 ns."""
    found = figures_of(delay_line("exponential", 200e-9, 20e6 / 128, 128))
    assert found.delay_s is not None and found.delay_power is not None
    inside = (found.delay_s > 150e-9) & (found.delay_s < 900e-9)
    slope = np.polyfit(found.delay_s[inside], np.log(found.delay_power[inside]), 1)[0]
    assert slope == pytest.approx(-1 / 200e-9, rel=0.05)
    assert found.delay_power.sum() == pytest.approx(1.0)


def walked(delays_at_rest: bool, positions: bool = True) -> tuple[ChannelRecord, np.ndarray[Any, Any]]:
    """Two paths of equal power, each client's a while apart, over a walk of 60 m away from the receiver; and σ (6,)."""
    seconds, frequency = np.arange(60.0), np.asarray(2e6 * (np.arange(16) - 7.5), dtype=np.float64)
    apart = np.array([0.0, 1e-9, 3e-9, 5e-9, 8e-9, 10e-9])
    place = np.zeros((60, 6, 3))
    place[..., 0] = 5.0 + 7.0 * np.arange(6) + seconds[:, None]
    direct = place[..., 0] / 299_792_458.0 if not delays_at_rest else np.zeros((60, 6))
    turns = np.exp(2j * np.pi * np.random.default_rng(2).uniform(size=(60, 6, 1)))
    late = np.exp(-2j * np.pi * frequency * (direct + apart)[..., None]) * turns
    gains = 1e-5 * (np.exp(-2j * np.pi * frequency * direct[..., None]) + late)[:, :, None, :]
    record = ChannelRecord(
        gains, seconds, frequency, place if positions else None, np.zeros(3), source="two paths of equal power"
    )
    return record, apart / 2


@pytest.mark.parametrize("delays_at_rest", [False, True])
def test_a_walk_is_no_delay_spread(delays_at_rest: bool) -> None:
    """Half of the delay between two equal paths; the walk alone once made 60 ns of it."""
    record, spread = walked(delays_at_rest)
    found = figures_of(record)
    assert found.delay_spread_s == pytest.approx(spread.mean(), rel=0.06)
    assert found.frequency_correlation == pytest.approx(np.cos(2 * np.pi * 2e6 * spread).mean(), abs=0.002)
    if not delays_at_rest:
        assert figures_of(walked(False, positions=False)[0]).delay_spread_s > 10 * found.delay_spread_s


def test_neighbours_correlate_as_the_law_says() -> None:
    """|R(Δf)| of TDL-C at 300 ns: 0.734 at 1 MHz (RADIO.md)."""
    found = figures_of(delay_line("C", 300e-9, 1e6, 8))
    assert found.frequency_correlation == pytest.approx(0.734, abs=0.02)


def test_the_doppler_spectrum_is_jakes() -> None:
    """P(f) = 1/(π √(f_D² − f²)): its integral up to f is 1/2 + arcsin(f/f_D)/π, its spread f_D/√2."""
    doppler, interval, nodes = 20.0, 5e-3, np.arange(300)
    times = np.asarray(interval * np.arange(512), dtype=np.float64)
    cycles = np.broadcast_to(doppler * times, (300, 512))
    gains = clarke_gains(cycles, Streams(4).nodes("fading", 0, nodes))
    record = ChannelRecord(1e-5 * gains.T[:, :, None, None], times)
    found = figures_of(record)
    assert found.doppler_hz is not None and found.doppler_power is not None
    assert found.doppler_spread_hz == pytest.approx(doppler / np.sqrt(2), rel=0.03)
    up_to = np.cumsum(found.doppler_power)
    for share in (-0.8, -0.3, 0.0, 0.4, 0.9):
        at = int(np.searchsorted(found.doppler_hz, share * doppler, side="right")) - 1
        assert up_to[at] == pytest.approx(0.5 + np.arcsin(share) / np.pi, abs=0.03)
    outside = np.abs(found.doppler_hz) > 1.1 * doppler
    assert found.doppler_power[outside].sum() < 1e-3
    lag = (gains[:, 4:] * gains[:, :-4].conj()).mean()
    assert lag.real == pytest.approx(special.j0(2 * np.pi * doppler * 4 * interval), abs=0.05)


def test_mean_gains_and_clients_without_a_path() -> None:
    record = made(gain_db=-90)
    record.gains[:, 2] = 0
    record.gains[:, 4] *= 10
    summary, found = summary_of(record), figures_of(record)
    assert summary["clients_without_path"] == 1 and summary["zero_gains"] == 40
    assert found.mean_gain_db[2] == -np.inf
    assert found.mean_gain_db[4] == pytest.approx(-70, abs=1.0)
    assert summary["weakest_client_db"] == pytest.approx(-90, abs=1.5)


def test_what_one_snapshot_or_one_subcarrier_cannot_tell() -> None:
    found = figures_of(made(snapshots=1))
    assert found.delay_s is None and found.doppler_hz is None
    summary = summary_of(made(snapshots=1))
    assert summary["interval_s"] is None and summary["delay_spread_s"] is None and summary["doppler_spread_hz"] is None


def test_uneven_times_have_no_spectrum() -> None:
    record = made(snapshots=4)
    uneven = ChannelRecord(record.gains, np.array([0.0, 1.0, 3.0, 4.0]))
    assert figures_of(uneven).doppler_hz is None
