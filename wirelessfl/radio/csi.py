"""Channel state information: what the receiver and the clients believe the channel to be."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from wirelessfl.streams import NodeStream

Estimator = Literal["ls", "mmse"]


def estimate_channel(
    channel: NDArray[np.complex128],
    path_gain: NDArray[np.float64],
    error_std: NDArray[np.float64] | float,
    estimator: Estimator,
    stream: NodeStream,
    specular: NDArray[np.complex128] | complex = 0j,
) -> NDArray[np.complex128]:
    """The estimate ĥ of each channel from an observation h + e, e ~ CN(0, error_std² β).

    ``ls`` (least squares) is the observation as it stands. ``mmse`` is the linear estimate of least mean-squared error
    about the known mean √β μ of h, √β μ + a (h + e − √β μ) with a = s/(s + error_std²) and s = 1 − |μ|² the scattered
    power (Kay, "Estimation Theory", 1993, chapter 12). Where the scattered part is Gaussian, as with Rayleigh and
    Rician fading, it is the conditional mean, so that E[h/ĥ | ĥ] = 1; least squares is biased low.

    Args:
        channel: h (n,) or (n, R) for R estimates of each, path gain included.
        path_gain: β (n,), E|h|².
        error_std: standard deviation of the error relative to sqrt(β), (n,) or one number; 0 gives h exactly.
        estimator: "ls" or "mmse".
        stream: the draws of these n nodes.
        specular: μ in the shape of h, the mean of h/√β that is known, such as the line of sight; 0 for a uniform phase.

    Returns:
        ĥ in the shape of h.

    Raises:
        ValueError: if ``error_std`` is negative or not finite, or the estimator unknown.
    """
    each = (len(channel), *(1,) * (channel.ndim - 1))
    std = np.broadcast_to(error_std, (len(channel),)).reshape(each)
    trust = estimate_trust(std, estimator, np.abs(specular) ** 2)
    if np.all(std == 0):
        return channel
    amplitude = np.sqrt(path_gain).reshape(each)
    error = std * amplitude * stream.complex_normal(channel.size // max(len(channel), 1)).reshape(channel.shape)
    mean = amplitude * specular
    return np.asarray(mean + (channel + error - mean) * trust)


def pilot_error_std(pilot_symbols: int, symbol_snr: float, path_gain: NDArray[np.float64]) -> NDArray[np.float64]:
    """σ_e = √(N0/(E β)) (n,), relative to √β: the error of a channel that is observed through n pilot symbols.

    Args:
        pilot_symbols: n, of energy E/n each.
        symbol_snr: E/(n N0), before path loss.
        path_gain: β (n,).
    """
    return np.asarray(1.0 / np.sqrt(pilot_symbols * symbol_snr * path_gain))


def mean_estimate_power(
    path_gain: NDArray[np.float64],
    error_std: NDArray[np.float64] | float,
    estimator: Estimator,
    specular_power: NDArray[np.float64] | float = 0.0,
) -> NDArray[np.float64]:
    """E|ĥ|² (n,) for any fading law of mean power 1.

    β (1 + error_std²) for ls; β (|μ|² + s²/(s + error_std²)) for mmse, s = 1 − |μ|² (`estimate_channel`).

    Args:
        path_gain: β (n,).
        error_std: relative to sqrt(β), (n,) or one number.
        estimator: "ls" or "mmse".
        specular_power: |μ|² (n,) or one number.
    """
    trust = estimate_trust(error_std, estimator, specular_power)
    known = 0.0 if estimator == "ls" else specular_power
    return np.asarray(path_gain * (1.0 - known + np.square(error_std)) * trust**2 + path_gain * known)


def estimate_trust(
    error_std: NDArray[np.float64] | float, estimator: Estimator, specular_power: NDArray[np.float64] | float
) -> NDArray[np.float64] | float:
    """The factor a = s/(s + error_std²) on what was observed beside the known mean, s the scattered power; 1 for ls.

    Args:
        error_std: relative to sqrt(β), (n,) or one number.
        estimator: "ls" or "mmse".
        specular_power: 1 − s, (n,) or one number.

    Raises:
        ValueError: if ``error_std`` is negative or not finite, or the estimator unknown.
    """
    if not np.all((np.asarray(error_std) >= 0) & np.isfinite(error_std)):
        raise ValueError(f"error_std must be finite and at least 0, not {error_std}")
    if estimator not in get_args(Estimator):
        raise ValueError(f"estimator must be one of {get_args(Estimator)}, not {estimator!r}")
    if estimator == "ls":
        return 1.0
    scattered, noise = np.maximum(1.0 - specular_power, 0.0), np.square(error_std)
    # Without noise the observation is the channel, also where nothing is scattered.
    return np.where(noise == 0, 1.0, scattered / np.where(noise == 0, 1.0, scattered + noise))
