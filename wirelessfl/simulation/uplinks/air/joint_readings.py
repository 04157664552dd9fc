"""What an observer reads of a slot: what released models tell, and its own antennas, behind a whitening filter."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.radio import principal_directions
from wirelessfl.simulation.uplinks.air.every_antenna import EveryAntenna, complex_noise
from wirelessfl.simulation.uplinks.air.ranges import scale_ranges
from wirelessfl.simulation.uplinks.air.transmitters import Transmitters
from wirelessfl.streams import Streams

Complex = NDArray[np.complex128]


def joint_readings(
    transmitters: Transmitters,
    signals: Mapping[int, NDArray[np.float64]],
    blocks: Iterable[CohortBlock],
    jamming: NDArray[np.float64],
    streams: Streams,
    round_index: int,
) -> NDArray[np.float64]:
    """Readings of C receivers and of an observer's A antennas, whose noise has standard deviation 1 and is white.

    (C + 2A, d), of receivers the real part alone, or (C + A, d) where two coordinates share a symbol.

    Args:
        transmitters: of the slot, with an observer; with a jammer of one receiver.
        signals: y (d,) of each receiver with senders, with noise and jamming.
        blocks: updates of the senders, those that made the signals.
        jamming: (d,) the jammer's noise in the signal, in units of what arrives of it.
        streams: of the noise at the observer, and of what the server does not read of the jammer's signals.
        round_index: the round.
    """
    plan, packed, dimension = transmitters.plan, transmitters.iq_packing, transmitters.air.dimension
    overheard, jammed = plan.overheard, plan.jammer_gain > 0
    assert overheard is not None, "the slot has an observer"
    antennas, blocks_and_groups = overheard.channel.shape[3], overheard.channel.shape[1:3]
    air = EveryAntenna(antennas, dimension, packed, len(transmitters.ranges))
    for block in blocks:
        sent = transmitters.send(block)
        air.add(sent.symbols, overheard.channel[block.positions].transpose(3, 0, 1, 2) * sent.gains.tx_gain, None)
    uses = -(-dimension // 2) if packed else dimension
    own = complex_noise(streams.generator("observer_noise", round_index), antennas, uses, 1.0)
    air.add_to(own.real, own.imag, 1.0 / overheard.noise_std)
    noise = {station: np.broadcast_to(plan.noise_std[station], blocks_and_groups) for station in signals}
    read = np.stack([scale_ranges(y.copy(), transmitters.ranges, 1.0 / noise[c]) for c, y in signals.items()])
    if not jammed or plan.jammer_behind is None or overheard.jammer is None:
        return _real_rows(read, own, packed)
    read_noise = _pairs(jamming) if packed else jamming + 1j * _standard(streams, "unread_jamming", round_index, uses)
    further = _further_noise(streams, round_index, overheard.jammer.shape[3], uses)
    behind = plan.jammer_gain * plan.jammer_behind.parts.reshape(len(transmitters.ranges), -1)
    there = plan.jammer_gain * overheard.jammer.reshape(len(behind), antennas, -1) / overheard.noise_std
    (server_noise,) = noise.values()
    rows, per_symbol = list[NDArray[np.float64]](), 2 if packed else 1
    for (first, end), std, read_of, arriving in zip(
        transmitters.ranges, server_noise.ravel(), behind, there, strict=True
    ):
        symbols = slice(-(-first // per_symbol), -(-end // per_symbol))
        sent_noise = _streams_of(read_noise[symbols], further[:, symbols], read_of)
        arrived = own[:, symbols] + arriving @ sent_noise
        every = np.concatenate([read_of[None] / std, arriving])
        rows.append(_whitened(_real_rows(read[:, first:end], arrived, packed), every, packed))
    return np.concatenate(rows, axis=1)


def _further_noise(streams: Streams, round_index: int, count: int, uses: int) -> Complex:
    # (N, m) circular noise, of which the server reads nothing; none of a jammer with one antenna
    if count == 1:
        return np.zeros((1, uses), dtype=np.complex128)
    return complex_noise(streams.generator("further_jamming", round_index), count, uses, 1.0)


def _standard(streams: Streams, purpose: str, round_index: int, count: int) -> NDArray[np.float64]:
    return streams.generator(purpose, round_index).standard_normal(count)


def _streams_of(read: Complex, further: Complex, behind: Complex) -> Complex:
    # (N, m) white circular noise u of N streams, given that of their sum the server reads bᵀu = ‖b‖ read
    size = np.linalg.norm(behind)
    if size == 0:  # nothing of it arrives at the server
        behind, size = np.eye(1, len(behind), dtype=np.complex128)[0], np.float64(1.0)
    direction = behind.conj() / size
    return np.asarray(further + direction[:, None] * (read - direction.conj() @ further))


def _whitened(rows: NDArray[np.float64], jamming: Complex, packed: bool) -> NDArray[np.float64]:
    # Σ^{−1/2} times the rows (S, n) of a range, Σ = I + B Bᵀ with what arrives of the two quadratures of each stream
    if packed:  # circular in every reading
        values = _pairs(rows)
        directions, power = principal_directions(jamming)
        values -= ((1.0 - 1.0 / np.sqrt(1.0 + power)) * directions.T) @ (directions.conj() @ values)
        return _apart(values, rows.shape[1])
    quadratures = [np.concatenate([turned.real, turned.imag[1:]]) for turned in (jamming, 1j * jamming)]
    basis, sizes, _ = np.linalg.svd(np.concatenate(quadratures, axis=1), full_matrices=False)
    shorter = 1.0 - 1.0 / np.hypot(1.0, sizes)
    return np.asarray(rows - basis @ (shorter[:, None] * (basis.T @ rows)))


def _real_rows(read: NDArray[np.float64], own: Complex, packed: bool) -> NDArray[np.float64]:
    # (S, n) what is read of each coordinate: at receivers (C, n), and at the antennas
    there = _apart(own, read.shape[1]) if packed else np.concatenate([own.real, own.imag])
    return np.concatenate([read, there])


def _pairs(values: NDArray[np.float64]) -> Complex:
    # (..., m) symbols of two coordinates each, the last of an odd number with one part alone
    even = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, values.shape[-1] % 2)])
    return np.asarray(even[..., 0::2] + 1j * even[..., 1::2])


def _apart(symbols: Complex, count: int) -> NDArray[np.float64]:
    # (A, n) the coordinates of symbols (A, m)
    return np.stack([symbols.real, symbols.imag], axis=-1).reshape(len(symbols), -1)[:, :count]
