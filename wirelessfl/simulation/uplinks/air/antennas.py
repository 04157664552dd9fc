"""What an adversary reads at all antennas of a slot over the air: both quadratures, behind a whitening filter."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.radio import LateArrival
from wirelessfl.simulation.uplinks.air.every_antenna import EveryAntenna
from wirelessfl.simulation.uplinks.air.transmitters import Transmitters
from wirelessfl.streams import Streams

Complex = NDArray[np.complex128]


def antenna_readings(
    transmitters: Transmitters,
    blocks: Iterable[CohortBlock],
    late: LateArrival | None,
    noise_std: float,
    streams: Streams,
    round_index: int,
) -> NDArray[np.float64]:
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
        symbols, sent, _ = transmitters.send(block)
        heard = plan.heard[block.positions].transpose(1, 4, 0, 2, 3)
        channel = heard.reshape(receivers * antennas, *heard.shape[2:])
        air.add(symbols, channel * sent.tx_gain, None if late is None else late[block.positions])
    received = air.received().reshape(receivers, antennas, -1)
    drawn = streams.generator("antenna_noise", round_index).standard_normal((2, *received.shape))
    received += noise_std * (drawn[0] + 1j * drawn[1])
    return _real(_whitened(transmitters, received, noise_std, streams, round_index), packed)[:, :dimension]


def _whitened(
    transmitters: Transmitters, received: Complex, noise_std: float, streams: Streams, round_index: int
) -> Complex:
    # (C, A, n) what is received, with jamming, times Σ^{−1/2} of the block and subcarriers in which each symbol lies
    plan, per_symbol = transmitters.plan, 2 if transmitters.iq_packing else 1
    jammed = plan.jammer is not None and plan.jammer_gain > 0
    if not jammed or plan.jammer is None:
        return received / noise_std
    drawn = streams.generator("jammer_noise", round_index).standard_normal((2, received.shape[2]))
    jammer = plan.jammer_gain * plan.jammer.channel.reshape(-1, plan.jammer.channel.shape[2])
    for (first, end), arriving in zip(transmitters.ranges, jammer, strict=True):
        symbols = slice(-(-first // per_symbol), -(-end // per_symbol))
        part = received[0, :, symbols] + arriving[:, None] * (drawn[0, symbols] + 1j * drawn[1, symbols])
        size = np.linalg.norm(arriving)
        along = arriving / size
        shorter = 1.0 - 1.0 / np.sqrt(1.0 + (size / noise_std) ** 2)
        received[0, :, symbols] = (part - shorter * along[:, None] * (along.conj() @ part)) / noise_std
    return received


def _real(symbols: Complex, packed: bool) -> NDArray[np.float64]:
    # (S, d) the real numbers that symbols (C, A, n) stand for, quadratures apart where none is packed
    parts = np.stack([symbols.real, symbols.imag], axis=-1 if packed else 2)
    return parts.reshape(symbols.shape[0] * symbols.shape[1] * (1 if packed else 2), -1)
