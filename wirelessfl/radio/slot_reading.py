"""The server's reading of one slot, of updates that are all at hand."""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.superposition import Array, Superposition


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
