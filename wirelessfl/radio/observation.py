"""What all antennas of a receiver together tell of a signal: the signal-to-noise ratio behind the best combiner.

A signal h x under circular noise of covariance Σ per real dimension is seen as loudly as hᴴΣ⁻¹h allows (the matched
filter behind a whitening filter; Kay, "Detection Theory", 1998, chapter 4).
"""

import numpy as np
from numpy.typing import NDArray


def whitened_amplitude(
    channel: NDArray[np.complex128],
    noise_std: float,
    jamming: NDArray[np.complex128] | None = None,
) -> NDArray[np.float64]:
    """‖Σ^{−1/2} h‖ (...) at A antennas, Σ = σ_c² I + a aᴴ with the received jamming a = α_CJ h_CJ.

    By the formula of Sherman and Morrison, hᴴΣ⁻¹h = (‖h‖² − |aᴴh|²/(σ_c² + ‖a‖²))/σ_c²: with one antenna
    |h|²/(σ_c² + |a|²), with several what of h is orthogonal to a is not hidden by any jamming.

    Args:
        channel: h (..., A).
        noise_std: σ_c at each antenna, per real dimension, positive.
        jamming: a (..., A), circular, of axes that go with those of h; None without a jammer.
    """
    if jamming is None:
        return np.asarray(np.linalg.norm(channel, axis=-1) / noise_std)
    free, hidden = _across_and_along(channel, jamming)
    jammed = (np.abs(jamming) ** 2).sum(axis=-1)
    return np.asarray(np.sqrt(free / noise_std**2 + hidden / (noise_std**2 + jammed)))


def floor_amplitude(
    channel: NDArray[np.complex128], noise_std: float, jamming: NDArray[np.complex128]
) -> NDArray[np.float64]:
    """‖P⊥ h‖/σ_c (...): what `whitened_amplitude` falls to as the jammer's power grows without limit.

    Args:
        channel: h (..., A).
        noise_std: σ_c at each antenna, per real dimension, positive.
        jamming: the jammer's channel (..., A).
    """
    return np.asarray(np.sqrt(_across_and_along(channel, jamming)[0]) / noise_std)


def _across_and_along(
    channel: NDArray[np.complex128], jamming: NDArray[np.complex128]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # ‖P⊥ h‖² and ‖P h‖² (...); as a difference the first would cancel where nearly all is hidden
    norm = np.linalg.norm(jamming, axis=-1, keepdims=True)
    direction = np.divide(jamming, norm, out=np.zeros_like(jamming), where=norm > 0)
    along = (direction.conj() * channel).sum(axis=-1)
    across = channel - along[..., None] * direction
    return (np.abs(across) ** 2).sum(axis=-1), np.abs(along) ** 2
