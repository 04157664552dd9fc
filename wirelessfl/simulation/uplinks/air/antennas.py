"""What an adversary reads at all antennas of a slot over the air: both quadratures, behind a whitening filter."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.radio import LateArrival, principal_directions
from wirelessfl.simulation.uplinks.air.every_antenna import EveryAntenna
from wirelessfl.simulation.uplinks.air.transmitters import Transmitters
from wirelessfl.streams import Streams

Values = NDArray[np.float64]

# Symbols of all antennas that are whitened at once, which bounds the memory
_TILE = 1 << 12


def antenna_readings(
    transmitters: Transmitters,
    blocks: Iterable[CohortBlock],
    late: LateArrival | None,
    noise_std: float,
    streams: Streams,
    round_index: int,
) -> Values:
    """Readings (S, d) of C receivers with A antennas each, whose noise has standard deviation 1 and is white.

    S is 2CA, the quadratures of every antenna, or CA where two coordinates share a symbol.

    Args:
        transmitters: of the slot.
        blocks: updates of the senders.
        late: how late the senders arrive, or None.
        noise_std: σ_c at each antenna.
        streams: of the noise at the antennas and of the jammer.
        round_index: the round.
    """
    plan, dimension, packed = transmitters.plan, transmitters.air.dimension, transmitters.iq_packing
    receivers, antennas = plan.heard.shape[1], plan.heard.shape[4]
    air = EveryAntenna(receivers * antennas, dimension, packed, len(transmitters.ranges))
    for block in blocks:
        sent = transmitters.send(block)
        heard = plan.heard[block.positions].transpose(1, 4, 0, 2, 3)
        channel = heard.reshape(receivers * antennas, *heard.shape[2:])
        air.add(sent.symbols, channel * sent.gains.tx_gain, None if late is None else late[block.positions])
    stream, uses = streams.generator("antenna_noise", round_index), -(-dimension // 2) if packed else dimension
    # (C A, m, 2) parts side by side, or (C A, 2, m) one after the other: as they are read
    readings = np.empty((receivers * antennas, uses, 2) if packed else (receivers * antennas, 2, uses))
    parts = np.moveaxis(readings, 2 if packed else 1, 0)
    for part in parts:
        for row in part:
            row[:] = noise_std * stream.standard_normal(uses)
    air.add_to(parts[0], parts[1])
    _whiten(transmitters, parts, noise_std, streams, round_index)
    return readings.reshape(receivers * antennas * (1 if packed else 2), -1)[:, :dimension]


def _whiten(transmitters: Transmitters, parts: Values, noise_std: float, streams: Streams, round_index: int) -> None:
    # What is received in two parts (2, C A, m), with jamming, times Σ^{−1/2} of the block and subcarriers in which each
    # symbol lies, in place
    plan, per_symbol = transmitters.plan, 2 if transmitters.iq_packing else 1
    jammed = plan.jammer is not None and plan.jammer_gain > 0
    if not jammed or plan.jammer is None:
        parts /= noise_std
        return
    antennas, count = plan.jammer.channel.shape[2:]
    drawn = streams.generator("jammer_noise", round_index).standard_normal((2, count, parts.shape[2]))
    jammer = plan.jammer_gain * plan.jammer.parts.reshape(-1, antennas, count)
    for (first, end), arriving in zip(transmitters.ranges, jammer, strict=True):
        directions, power = principal_directions(arriving)
        shorter = (1.0 - 1.0 / np.sqrt(1.0 + power / noise_std**2)) * directions.T
        last = -(-end // per_symbol)
        for begin in range(-(-first // per_symbol), last, _TILE):
            tile = slice(begin, min(begin + _TILE, last))
            part = parts[0, :, tile] + 1j * parts[1, :, tile]
            part += arriving @ (drawn[0, :, tile] + 1j * drawn[1, :, tile])
            part -= shorter @ (directions.conj() @ part)
            part /= noise_std
            parts[0, :, tile], parts[1, :, tile] = part.real, part.imag
