"""Water-filling: the division of a power over parallel channels that carries the most."""

import numpy as np
from numpy.typing import NDArray


def water_filling(snr: NDArray[np.float64]) -> NDArray[np.float64]:
    """Power shares p (..., F) of mean 1 that maximise Σ log(1 + p_f γ_f): p_f = max(0, w − 1/γ_f).

    Cover, Thomas, "Elements of Information Theory", 2006, section 9.4. Of the water levels w_m = (F + Σ 1/γ over the m
    best)/m, that of the largest m counts at which the weakest of the m still gets power. Where nothing is received the
    shares are equal.

    Args:
        snr: γ (..., F), at equal power.
    """
    count = snr.shape[-1]
    with np.errstate(divide="ignore"):
        depth = 1.0 / snr
    ascending = np.sort(depth, axis=-1)
    level = (count + np.cumsum(ascending, axis=-1)) / np.arange(1, count + 1)
    filled = np.maximum((level > ascending).sum(axis=-1, keepdims=True), 1)
    water = np.take_along_axis(level, filled - 1, axis=-1)
    with np.errstate(invalid="ignore"):
        shares = np.maximum(water - depth, 0.0)
    return np.asarray(np.where(np.isfinite(water), shares, 1.0))
