"""Client-level noise that a trusted server adds to the aggregate: DP-FedAvg, DP-FedAvg-WAV and Dyn-DP-FedAvg.

The server adds up clipped updates with fixed public weights, Σ p_i/q Δ_i over the clients that take part, each selected
with probability q; the sum is never divided by who arrived. Dyn-DP-FedAvg is the same with clip and noise multiplier on
a ``Geometric`` schedule. Everything here is NumPy, drawn once a round.
"""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.privacy.wavelet import haar_weights, inverse_haar


def server_weights(weights: NDArray[np.float64], sample_rate: float) -> NDArray[np.float64]:
    """(n,) the fixed public factors p_i/q on the updates of selected clients.

    Args:
        weights: (n,) p_i = n_i/|D|.
        sample_rate: q, the probability of a client to be selected.

    Raises:
        ValueError: If the rate lies outside (0, 1].
    """
    _require_rate(sample_rate)
    return weights / sample_rate


def server_noise_std(noise_multiplier: float, clip: float, sample_rate: float, count: float) -> float:
    """σ = z C/(q K) on the aggregate (McMahan et al., ICLR 2018, Algorithm 1 with the estimator of fixed denominator).

    With equal weights p_i = 1/K the noise multiplier is z; in general it is z/(K max p_i). The wavelet paper prints
    the number of samples |D| for K, whose true multiplier is z/max n_i.

    Args:
        noise_multiplier: z, zero or more.
        clip: C, the bound on the norm of every client's update, positive.
        sample_rate: q in (0, 1].
        count: K, the number of registered clients (or |D|, as printed), at least 1.

    Raises:
        ValueError: If a value is out of range.
    """
    _require_rate(sample_rate)
    precondition(
        0 <= noise_multiplier < np.inf and 0 < clip < np.inf and 1 <= count < np.inf,
        f"found noise multiplier {noise_multiplier}, clip {clip} and count {count}; "
        "allowed are at least 0, above 0 and at least 1",
    )
    return noise_multiplier * clip / (sample_rate * count)


def white_server_noise(dimension: int, noise_std: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """(d,) N(0, σ² I): DP-FedAvg."""
    return generator.standard_normal(dimension) * noise_std


def haar_server_noise(dimension: int, noise_std: float, generator: np.random.Generator) -> NDArray[np.float64]:
    """(d,) noise of N(0, (σ/W)²) on the Haar coefficients of the zero-padded aggregate, cut to d: DP-FedAvg-WAV."""
    length = 1 << max(dimension - 1, 0).bit_length()
    coefficients = generator.standard_normal(length) * (noise_std / haar_weights(length))
    return np.asarray(inverse_haar(coefficients)[:dimension], dtype=np.float64)


def _require_rate(sample_rate: float) -> None:
    precondition(0 < sample_rate <= 1, f"sample_rate must lie in (0, 1], found {sample_rate}")
