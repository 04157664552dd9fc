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
    """‖Σ^{−1/2} h‖ (...) at A antennas, Σ = σ_c² I + G Gᴴ with the received jamming G of N independent streams.

    With G = U diag(s) Vᴴ, hᴴΣ⁻¹h = ‖h − UUᴴh‖²/σ_c² + Σ_k |u_kᴴh|²/(σ_c² + s_k²), in which nothing cancels under strong
    jamming: with one antenna |h|²/(σ_c² + |g|²); what of h is orthogonal to all columns of G is not hidden by any
    jamming.

    Args:
        channel: h (..., A).
        noise_std: σ_c at each antenna, per real dimension, positive.
        jamming: G (..., A, N), circular of unit variance per stream and real dimension, of axes that go with those of
            h; None without a jammer.
    """
    if jamming is None:
        return np.asarray(np.linalg.norm(channel, axis=-1) / noise_std)
    directions, power = principal_directions(jamming)
    free, hidden = _across_and_along(channel, directions)
    return np.asarray(np.sqrt(free / noise_std**2 + (hidden / (noise_std**2 + power)).sum(axis=-1)))


def floor_amplitude(
    channel: NDArray[np.complex128], noise_std: float, jamming: NDArray[np.complex128]
) -> NDArray[np.float64]:
    """‖P⊥ h‖/σ_c (...): what `whitened_amplitude` falls to as the jammer's power grows without limit.

    Args:
        channel: h (..., A).
        noise_std: σ_c at each antenna, per real dimension, positive.
        jamming: the jammer's channels (..., A, N).
    """
    directions, power = principal_directions(jamming)
    free, hidden = _across_and_along(channel, directions)
    rounding = max(jamming.shape[-2:]) * np.finfo(np.float64).eps
    no_jamming = power <= rounding**2 * power.max(axis=-1, keepdims=True)
    return np.asarray(np.sqrt(free + np.where(no_jamming, hidden, 0.0).sum(axis=-1)) / noise_std)


def principal_directions(
    jamming: NDArray[np.complex128],
) -> tuple[NDArray[np.complex128], NDArray[np.float64]]:
    """Orthonormal directions u_k (..., K, A) in which jamming G (..., A, N) arrives, and its power s_k² in each.

    K is the lesser of A and N; directions without power are there as well.
    """
    if jamming.shape[-1] == 1:  # without rounding beyond that of the norm
        only = jamming[..., 0]
        norm = np.linalg.norm(only, axis=-1, keepdims=True)
        direction = np.divide(only, norm, out=np.zeros_like(only), where=norm > 0)
        return direction[..., None, :], (np.abs(only) ** 2).sum(axis=-1)[..., None]
    vectors, singular, _ = np.linalg.svd(jamming, full_matrices=False)
    return np.swapaxes(vectors, -1, -2), singular**2


def _across_and_along(
    channel: NDArray[np.complex128], directions: NDArray[np.complex128]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # ‖P⊥ h‖² (...) and |u_kᴴh|² (..., K); as a difference the first would cancel where nearly all is hidden
    along = (directions.conj() * channel[..., None, :]).sum(axis=-1)
    across = channel - (along[..., None] * directions).sum(axis=-2)
    return (np.abs(across) ** 2).sum(axis=-1), np.abs(along) ** 2
