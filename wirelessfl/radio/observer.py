"""An external observer: a receiver at a place of its own, which hears clients and jammer beside the released models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.channel_source import ChannelSource
from wirelessfl.radio.jammer_link import JAMMER, JammerLink
from wirelessfl.radio.propagation import Moment
from wirelessfl.radio.slot_schedule import AT_ONCE, Instants


@dataclass(frozen=True, eq=False)
class Overheard:
    """Channels to the antennas of an observer over a slot.

    Attributes:
        channel: h_e (n, T, F, A) of n clients.
        jammer: of each antenna of the jammer, for its part of the power (T, F, A, N); None without one.
        noise_std: σ_e at each antenna, per real dimension.
    """

    channel: NDArray[np.complex128]
    jammer: NDArray[np.complex128] | None
    noise_std: float


@dataclass(frozen=True)
class Observer:
    """A receiver that listens and takes no part.

    Attributes:
        clients: channels of the clients to it, of draws of their own.
        jammer: (N,) channels of the antennas of an external jammer to it; none without one.
        noise_std: σ_e at each antenna, per real dimension, where the server's antennas have σ_c = 1.
    """

    clients: ChannelSource
    jammer: tuple[ChannelSource, ...]
    noise_std: float

    @property
    def sources(self) -> tuple[ChannelSource, ...]:
        """Channels of all that it hears."""
        return (self.clients, *self.jammer)

    def hears(
        self,
        nodes: NDArray[np.int64],
        sending: NDArray[np.int64],
        jams: NDArray[np.int64] | None,
        moment: Moment,
        instants: Instants = AT_ONCE,
    ) -> Overheard:
        """The channels of those clients that send, and of the jammer, over a slot.

        Where a channel is remembered from its last draw to the next one, those of silent clients are drawn as well:
        without them the later ones would be others.

        Args:
            nodes: (n,) clients of the slot.
            sending: (k,) positions among them of those that send.
            jams: (1,) the client that jams; None where it is a node of its own, or nobody.
            moment: when the slot begins.
            instants: of the slot.
        """
        if self.clients.remembers:
            channel = self.clients.channels(nodes, moment, instants).channel[sending]
        else:
            channel = self.clients.channels(nodes[sending], moment, instants).channel
        jamming = [source.channels(JAMMER, moment, instants) for source in self.jammer]
        if jams is not None:
            jamming = [self.clients.channels(jams, moment, instants)]
        return Overheard(channel, JammerLink.of(jamming).parts if jamming else None, self.noise_std)


def joint_amplitude(
    signal: NDArray[np.complex128], jamming: NDArray[np.complex128] | None, released: int, packed: bool
) -> NDArray[np.float64]:
    """‖Σ^{−1/2} v‖ (...) of a real coordinate that arrives by S complex readings, in units of their noise.

    Of the first ``released`` readings the server keeps the real part alone, unless two coordinates share a symbol; of
    all others both parts are seen. Circular jamming is common to all of them: Σ = I + B Bᵀ, the columns of B what
    arrives of the two quadratures of each of its N streams. With B = QR, vᵀΣ⁻¹v = ‖v − QQᵀv‖² + uᵀ(I + RRᵀ)⁻¹u,
    u = Qᵀv, in which nothing cancels under strong jamming.

    Args:
        signal: what arrives of the coordinate (..., S), each over σ of its reading.
        jamming: what arrives of each stream (..., S, N), of axes that go with those of the signal, over the same σ;
            None without any.
        released: readings that are known from the released models.
        packed: whether two coordinates share a symbol.
    """
    vector = _rows(signal, released, packed)
    if jamming is None:
        return np.asarray(np.linalg.norm(vector, axis=-1))
    streams = np.swapaxes(jamming, -1, -2)
    quadratures = [_rows(turned, released, packed) for turned in (streams, 1j * streams)]
    common = np.swapaxes(np.concatenate(quadratures, axis=-2), -1, -2)
    basis, triangle = np.linalg.qr(common)
    along = (np.swapaxes(basis, -1, -2) @ vector[..., None])[..., 0]
    across = vector - (basis @ along[..., None])[..., 0]
    rank = triangle.shape[-2]
    gram = np.eye(rank) + triangle @ np.swapaxes(triangle, -1, -2)
    gram = np.broadcast_to(gram, (*along.shape[:-1], rank, rank))
    hidden = (along * np.linalg.solve(gram, along[..., None])[..., 0]).sum(axis=-1)
    return np.asarray(np.sqrt((across**2).sum(axis=-1) + hidden))


def _rows(values: NDArray[np.complex128], released: int, packed: bool) -> NDArray[np.float64]:
    # (..., 2S − released | 2S) real parts of all readings, and imaginary ones of those of which they are seen
    imaginary = values.imag if packed else values.imag[..., released:]
    return np.concatenate([values.real, imaginary], axis=-1)
