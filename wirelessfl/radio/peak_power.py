"""Clipping in the transmitter: an amplifier passes no symbol beyond its peak power."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any
"""A NumPy array or a torch tensor."""


def limit_amplitude(updates: Array, amplitude: NDArray[np.float64], iq_packing: bool = False) -> Array:
    """The updates whose symbols exceed no amplitude: each complex symbol is shortened, its phase kept.

    This is the projection on a product of balls, one for each symbol: it never grows an update and never moves two
    updates apart (it is non-expansive), so that no sensitivity grows. It is not linear, and the server cannot undo it.

    Args:
        updates: Δ (k, d), real; NumPy or torch.
        amplitude: (k,) the largest |symbol| over |α_i|, in units of the updates.
        iq_packing: whether coordinates 2m and 2m+1 are the two parts of symbol m (the last of an odd d stands alone).

    Returns:
        (k, d) of the same kind and dtype, in memory of its own.
    """
    limit = _column(updates, amplitude)
    if not iq_packing:
        return updates.clip(-limit, limit)
    pairs = updates.shape[1] // 2 * 2
    energy = updates[:, 0:pairs:2] ** 2 + updates[:, 1:pairs:2] ** 2
    excess = (energy / limit**2).clip(1.0, None) ** 0.5
    limited = updates.clip(-limit, limit)
    limited[:, 0:pairs:2] = updates[:, 0:pairs:2] / excess
    limited[:, 1:pairs:2] = updates[:, 1:pairs:2] / excess
    return limited


def row_norms(updates: Array) -> NDArray[np.float64]:
    """‖Δ_i‖ (k,) of a block (k, d), in the memory of the host."""
    squared = (updates**2).sum(1)
    return np.sqrt(np.asarray(squared.cpu() if hasattr(squared, "cpu") else squared, dtype=np.float64))


def _column(updates: Array, values: NDArray[np.float64]) -> Array:
    # ``values`` (k,) as (k, 1) in the kind, dtype and device of ``updates``
    column = values[:, None]
    return updates.new_tensor(column) if hasattr(updates, "new_tensor") else column.astype(updates.dtype)
