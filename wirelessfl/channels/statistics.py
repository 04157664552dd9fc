"""Statistics of channel files: gains, delays, and how fast they change."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.channels.record import ChannelRecord
from wirelessfl.radio.units import SPEED_OF_LIGHT

# Links of which delays and Doppler shifts are taken
_MOST_LINKS = 4096
_EVEN = 1e-3
_EARLY = 16


@dataclass(frozen=True, eq=False)
class ChannelFigures:
    """What a channel file holds, in numbers.

    Attributes:
        mean_gain_db: 10 log₁₀ of the mean |h|² of each client (K,); −∞ for one that no path reaches.
        delay_s: (S,) delays of the power delay profile; None for one subcarrier, or unknown frequencies.
        delay_power: (S,) mean power at these delays, together 1.
        delay_spread_s: root mean square delay spread: mean over the links; NaN without a profile. Where places are
            known a client's walk does not count, only what its paths differ by.
        doppler_hz: (N,) shifts of the Doppler spectrum; None for one snapshot, or uneven times.
        doppler_power: (N,) mean power at these shifts, together 1.
        doppler_spread_hz: root mean square shift of the spectrum about its mean; NaN without one.
        frequency_correlation: |R| of neighbouring subcarriers, in the same way; NaN for one.
    """

    mean_gain_db: NDArray[np.float64]
    delay_s: NDArray[np.float64] | None
    delay_power: NDArray[np.float64] | None
    delay_spread_s: float
    doppler_hz: NDArray[np.float64] | None
    doppler_power: NDArray[np.float64] | None
    doppler_spread_hz: float
    frequency_correlation: float


def figures_of(record: ChannelRecord) -> ChannelFigures:
    """The statistics of some channels; each link has its own mean gain taken out before links are averaged."""
    gains = record.gains
    power = (np.abs(gains.astype(np.complex128)) ** 2).mean(axis=(0, 2, 3))
    with np.errstate(divide="ignore"):
        mean_gain_db = 10.0 * np.log10(power)
    reached = np.flatnonzero(power > 0)
    clients = reached[:: max(1, -(-len(reached) * gains.shape[2] // _MOST_LINKS))]
    links = gains[:, clients].astype(np.complex128) / np.sqrt(power[clients])[:, None, None]
    at_rest = without_walks(links, record, clients)
    delay_s, delay_power = _delays(links, record.frequency_hz)
    spread = float("nan")
    if delay_s is not None and record.frequency_hz is not None:
        spread = _delay_spread(at_rest, _spacing(record.frequency_hz))
    doppler_hz, doppler_power, doppler_spread = _doppler(links, record.time_s)
    return ChannelFigures(
        mean_gain_db, delay_s, delay_power, spread, doppler_hz, doppler_power, doppler_spread, _neighbours(at_rest)
    )


def without_walks(
    gains: NDArray[np.complexfloating], record: ChannelRecord, clients: NDArray[np.int64]
) -> NDArray[np.complexfloating]:
    """Gains without the change of the direct path's delay from snapshot to snapshot, which turns subcarriers apart.

    A walk of 60 m changes all delays by 200 ns together; what neighbouring subcarriers have in common is then less in
    the mean over snapshots than it ever is in one. It is taken out where places are known, of the clients whose
    neighbouring subcarriers it makes more alike: of others the file may have taken it out already.

    Args:
        gains: (N, k, A, S) of some clients.
        record: where they are from.
        clients: (k,) their numbers.
    """
    distance = record.distance_m
    if distance is None or record.frequency_hz is None or gains.shape[0] == 1 or gains.shape[3] == 1:
        return gains
    way = distance[:, clients] - distance[0, clients]
    turned = gains * np.exp(2j * np.pi / SPEED_OF_LIGHT * way[:, :, None, None] * np.asarray(record.frequency_hz))
    alike, alike_turned = (
        np.abs((one[..., 1:] * one[..., :-1].conj()).mean(axis=(0, 2, 3))) for one in (gains, turned)
    )
    return np.where((alike_turned > alike)[:, None, None], turned, gains)


def _neighbours(links: NDArray[np.complexfloating]) -> float:
    if links.shape[3] == 1 or not links.size:
        return float("nan")
    products = (links[..., 1:] * links[..., :-1].conj()).mean(axis=(0, 2))
    return float(np.abs(products).mean() / (np.abs(links) ** 2).mean())


def _delays(
    links: NDArray[np.complex128], frequency_hz: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | tuple[None, None]:
    # The power delay profile by a windowed inverse DFT over evenly spaced subcarriers; delays repeat after 1/spacing
    if frequency_hz is None or len(frequency_hz) == 1 or not _even(frequency_hz) or not links.size:
        return None, None
    count, spacing = len(frequency_hz), _spacing(frequency_hz)
    early = count // _EARLY  # what a window spreads to before the first path
    delay_s = (np.arange(count) - early) / (count * spacing)
    window = np.hanning(count + 2)[1:-1] if count > 2 else np.ones(count)
    profile = (np.abs(np.fft.ifft(links * window, axis=3)) ** 2).mean(axis=(0, 2))  # (K, S)
    total = np.roll(profile.sum(axis=0), early)
    return delay_s, np.asarray(total / total.sum())


def _spacing(frequency_hz: NDArray[np.float64]) -> float:
    return float(frequency_hz[-1] - frequency_hz[0]) / (len(frequency_hz) - 1)


def _delay_spread(links: NDArray[np.complexfloating], spacing: float) -> float:
    # σ of delays from the curvature of the frequency correlation at 0: 1 − |R(Δf)|² = (2πΔf σ)² + O(Δf⁴)
    found = []
    for client in range(links.shape[1]):
        one = links[:, client]
        product = (one[..., 1:] * one[..., :-1].conj()).mean()
        energy = 0.5 * ((np.abs(one[..., 1:]) ** 2).mean() + (np.abs(one[..., :-1]) ** 2).mean())
        share = min(float(np.abs(product) / energy), 1.0) if energy > 0 else 1.0
        found.append(np.sqrt(max(0.0, 1.0 - share**2)) / (2.0 * np.pi * spacing))
    return float(np.mean(found))


def _doppler(
    links: NDArray[np.complex128], time_s: NDArray[np.float64]
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None, float]:
    # The mean periodogram over snapshots at even times
    count = len(time_s)
    if count < 3 or not _even(time_s) or not links.size:
        return None, None, float("nan")
    interval = float(time_s[-1] - time_s[0]) / (count - 1)
    window = np.hanning(count + 2)[1:-1]
    shifts = np.fft.fftshift(np.fft.fftfreq(count, interval))
    flat = links * window[:, None, None, None]
    power = (np.abs(np.fft.fftshift(np.fft.fft(flat, axis=0), axes=0)) ** 2).mean(axis=(1, 2, 3))
    share = power / power.sum()
    mean = float(share @ shifts)
    return shifts, np.asarray(share), float(np.sqrt(share @ (shifts - mean) ** 2))


def _even(numbers: NDArray[np.float64]) -> bool:
    steps = np.diff(numbers)
    return bool(np.all(np.abs(steps - steps.mean()) <= _EVEN * steps.mean()))


def sizes_in_words(record: ChannelRecord) -> str:
    """``45 snapshots, 1 client, ...``."""
    sizes = zip(("snapshot", "client", "antenna", "subcarrier"), record.gains.shape, strict=True)
    return ", ".join(f"{size:,} {noun}{'' if size == 1 else 's'}" for noun, size in sizes)


def summary_of(record: ChannelRecord) -> dict[str, Any]:
    """Shape and statistics of a file as plain JSON; null where something is not known."""
    figures, (snapshots, clients, antennas, subcarriers) = figures_of(record), record.gains.shape
    times, gains_db = np.asarray(record.time_s), figures.mean_gain_db
    reached = gains_db[np.isfinite(gains_db)]
    distance = record.distance_m

    def known(value: float | None) -> float | None:
        return None if value is None or not np.isfinite(value) else float(value)

    return {
        "source": record.source,
        "snapshots": snapshots,
        "clients": clients,
        "antennas": antennas,
        "subcarriers": subcarriers,
        "begin_s": float(times[0]),
        "end_s": float(times[-1]),
        "interval_s": known(float(np.diff(times).min()) if snapshots > 1 else None),
        "bandwidth_hz": known(record.bandwidth_hz),
        "carrier_hz": known(record.carrier_hz),
        "jammer": record.jammer is not None,
        "positions": record.position_m is not None,
        "distance_min_m": known(None if distance is None else distance.min()),
        "distance_max_m": known(None if distance is None else distance.max()),
        "mean_gain_db": known(record.mean_gain_db),
        "weakest_client_db": known(reached.min() if len(reached) else None),
        "strongest_client_db": known(reached.max() if len(reached) else None),
        "clients_without_path": int(clients - len(reached)),
        "zero_gains": int(np.count_nonzero(np.abs(record.gains) == 0)),
        "delay_spread_s": known(figures.delay_spread_s),
        "doppler_spread_hz": known(figures.doppler_spread_hz),
        "neighbour_correlation": known(figures.frequency_correlation),
        "doubt": record.doubt,
    }
