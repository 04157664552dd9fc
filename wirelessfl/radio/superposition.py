"""What the server hears: the sum of all signals on the air, formed block by block.

A block of k updates (k, d) is read once and never copied; memory beyond it is one vector (two with I/Q packing).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any
"""A NumPy array or a torch tensor; both know ``@``, slices and in-place addition."""


class Superposition:
    """The noise-free received signal of one slot, summed over blocks of clients.

    Without I/Q packing each coordinate is one real symbol, and the server keeps the real part of Σ c_i Δ_i with
    c_i = h_i α_i. With packing coordinates 2k and 2k+1 are the real and imaginary part of symbol k (an odd d is padded
    with a zero), so a coefficient that is not real mixes the two: cross-talk under imperfect CSI.

    Args:
        dimension: d, coordinates of an update.
        iq_packing: whether two coordinates share a symbol.
    """

    def __init__(self, dimension: int, iq_packing: bool = False) -> None:
        self._dimension = dimension
        self._iq_packing = iq_packing
        self._sum: Array = None

    def add(self, updates: Array, coefficients: NDArray[np.complex128]) -> None:
        """Adds a block of signals.

        Args:
            updates: Δ (k, d), real; NumPy or torch, the same kind and dtype in all blocks of a slot.
            coefficients: c_i = h_i α_i (k,), complex NumPy array.

        Raises:
            ValueError: if the shapes do not fit.
        """
        if tuple(updates.shape) != (len(coefficients), self._dimension):
            expected = (len(coefficients), self._dimension)
            raise ValueError(f"updates have shape {tuple(updates.shape)}, expected {expected}")
        parts = [coefficients.real, coefficients.imag] if self._iq_packing else [coefficients.real]
        block = _like(updates, np.stack(parts)) @ updates
        if self._sum is None:
            self._sum = block
        else:
            self._sum += block

    def received(self) -> Array:
        """The received signal (d,) in the kind and dtype of the updates; NumPy zeros if nobody transmitted."""
        if self._sum is None:
            return np.zeros(self._dimension)
        if not self._iq_packing:
            return self._sum[0]
        in_phase, quadrature = self._sum[0], self._sum[1]
        pairs = self._dimension // 2 * 2
        received = in_phase + 0
        received[0:pairs:2] -= quadrature[1:pairs:2]
        received[1:pairs:2] += quadrature[0:pairs:2]
        return received


def superpose(
    updates: Array,
    weights: NDArray[np.float64],
    channel: NDArray[np.complex128],
    estimate: NDArray[np.complex128],
    backoff: NDArray[np.float64],
    server_gain: float,
    clip: float,
    noise: Array,
) -> Array:
    """The server's reading y/α_u = Σ_i Re(h_i/ĥ_i) p_i Δ_i/(τ s_i) + noise/α_u of one slot.

    Args:
        updates: Δ (n, d), NumPy or torch.
        weights: p_i (n,).
        channel: h_i (n,).
        estimate: ĥ_i (n,).
        backoff: s_i (n,).
        server_gain: α_u.
        clip: τ.
        noise: everything else that arrives at the receiver in phase, receiver noise and jamming, (d,) or 0.

    Returns:
        (d,), before any rescaling by τ.
    """
    tx_gain = server_gain * weights / (estimate * clip * backoff)
    air = Superposition(updates.shape[1])
    air.add(updates, channel * tx_gain)
    return (air.received() + noise) / server_gain


def _like(block: Array, values: NDArray[np.float64]) -> Array:
    """``values`` in the kind, dtype and device of ``block``."""
    return block.new_tensor(values) if hasattr(block, "new_tensor") else values.astype(block.dtype)
