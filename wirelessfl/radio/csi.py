"""Channel state information: what the receiver and the clients believe the channel to be."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from wirelessfl.streams import NodeStream

Estimator = Literal["ls", "mmse"]


def estimate_channel(
    channel: NDArray[np.complex128],
    path_gain: NDArray[np.float64],
    error_std: float,
    estimator: Estimator,
    stream: NodeStream,
) -> NDArray[np.complex128]:
    """The estimate ĥ = h + e of each channel, e ~ CN(0, error_std² β).

    ``ls`` is ĥ as it stands. ``mmse`` scales it by 1/(1 + error_std²); for Rayleigh fading it is then the conditional
    mean of h, so that E[h/ĥ | ĥ] = 1, where least squares is biased low by that factor.

    Args:
        channel: h (n,), path gain included.
        path_gain: β (n,), E|h|².
        error_std: standard deviation of the error relative to sqrt(β), per complex dimension; 0 gives h exactly.
        estimator: "ls" or "mmse".
        stream: the draws of these n nodes.

    Returns:
        ĥ (n,).

    Raises:
        ValueError: if ``error_std`` is negative or not finite, or the estimator unknown.
    """
    scale = _estimator_scale(error_std, estimator)
    if error_std == 0:
        return channel
    error = error_std * np.sqrt(path_gain) * stream.complex_normal()[:, 0]
    return (channel + error) * scale


def mean_estimate_power(path_gain: NDArray[np.float64], error_std: float, estimator: Estimator) -> NDArray[np.float64]:
    """E|ĥ|² (n,) for any fading law of mean power 1: β (1 + error_std²) for ls, β/(1 + error_std²) for mmse."""
    return path_gain * (1.0 + error_std**2) * _estimator_scale(error_std, estimator) ** 2


def _estimator_scale(error_std: float, estimator: Estimator) -> float:
    if not 0 <= error_std < np.inf:
        raise ValueError(f"error_std must be finite and at least 0, not {error_std}")
    if estimator not in get_args(Estimator):
        raise ValueError(f"estimator must be one of {get_args(Estimator)}, not {estimator!r}")
    return 1.0 / (1.0 + error_std**2) if estimator == "mmse" else 1.0
