"""Upper bounds on epsilon that cost microseconds: they tell which clients need not be composed exactly."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.privacy.accountants import Uses
from wirelessfl.privacy.gaussian import gaussian_epsilon
from wirelessfl.privacy.spending import SampledGaussian

_ORDERS = np.array([*range(2, 65), 128, 256], dtype=np.float64)


def cheap_upper_bounds(profiles: Sequence[tuple[float, Uses]], delta: float) -> NDArray[np.float64]:
    """(len(profiles),) bounds at ``delta``, each the smaller of two.

    One is the exact curve of all mechanisms without amplification by sampling. The other is RDP at integer orders, for
    Poisson sampling told apart by add/remove.

    Args:
        profiles: (``gdp_mu²`` of the plain Gaussian mechanisms, uses of sampled ones) of each client.
        delta: In (0, 1).
    """
    unsampled = [mu_squared + sum(n * event.full_mu_squared for event, n in uses) for mu_squared, uses in profiles]
    rdp = np.empty((len(profiles), len(_ORDERS)))
    for row, (mu_squared, uses) in enumerate(profiles):
        rdp[row] = 0.5 * mu_squared * _ORDERS
        for event, count in uses:
            rdp[row] += count * _integer_rdp(event)
    return np.minimum(gaussian_epsilon(np.sqrt(unsampled), delta), _rdp_to_epsilon(rdp, delta))


@lru_cache(maxsize=65536)
def _integer_rdp(event: SampledGaussian) -> NDArray[np.float64]:
    # ln(sum of C(a,k) (1−q)^(a−k) q^k e^(k(k−1)/2z²))/(a−1) (Mironov, Talwar, Zhang 2019, Section 3.3).
    if event.exchange or event.fixed_size:
        return np.full(len(_ORDERS), np.inf)
    k = np.arange(_ORDERS[-1] + 1)
    order = _ORDERS[:, None]
    chosen = np.minimum(k, order)  # terms beyond the order are dropped below
    log_binomial = special.gammaln(order + 1) - special.gammaln(chosen + 1) - special.gammaln(order - chosen + 1)
    log_term = log_binomial + (order - chosen) * np.log1p(-event.sample_rate) + chosen * np.log(event.sample_rate)
    with np.errstate(over="ignore"):
        log_term += chosen * (chosen - 1) * (0.5 / event.noise_multiplier**2)
    log_moment = special.logsumexp(np.where(k <= order, log_term, -np.inf), axis=1)
    rdp: NDArray[np.float64] = np.maximum(log_moment, 0.0) / (_ORDERS - 1)
    return rdp


def _rdp_to_epsilon(rdp: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    # Best epsilon over the orders (Canonne, Kamath and Steinke 2020, Proposition 12).
    epsilon = rdp + np.log1p(-1 / _ORDERS) - (np.log(delta) + np.log(_ORDERS)) / (_ORDERS - 1)
    best: NDArray[np.float64] = np.maximum(epsilon.min(axis=1, initial=np.inf), 0.0)
    return best
