"""Uploads that share one band evenly at every instant: what an upload frees when it ends, the others take over."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition

RatesAtShare = Callable[[float], NDArray[np.float64]]
"""Bit/s (n,) of n clients whose power is constant, each with a share B_i/B of the band."""


def shared_band_ends(begins: NDArray[np.float64], bits: float, rates: RatesAtShare) -> NDArray[np.float64]:
    """When n uploads end, in seconds: k that are under way have a share 1/k each.

    Rates are constant between two events, the beginning and the end of an upload, so that the times are exact.

    Args:
        begins: (n,) seconds at which they begin.
        bits: of each.
        rates: positive at every share.
    """
    count = len(begins)
    order = np.argsort(begins, kind="stable")
    ends, left = np.full(count, np.nan), np.full(count, float(bits))
    active, waiting, now = np.zeros(count, dtype=np.bool_), 0, 0.0
    at_share: dict[int, NDArray[np.float64]] = {}
    while waiting < count or active.any():
        if not active.any():
            now = float(begins[order[waiting]])
        while waiting < count and begins[order[waiting]] <= now:
            active[order[waiting]] = True
            waiting += 1
        under_way = int(np.count_nonzero(active))
        if under_way not in at_share:
            at_share[under_way] = rates(1.0 / under_way)
            precondition(bool((at_share[under_way] > 0).all()), "rates must be positive at every share")
        remaining = np.where(active, left / at_share[under_way], np.inf)
        next_end = now + float(remaining.min())
        next_begin = float(begins[order[waiting]]) if waiting < count else np.inf
        if next_begin < next_end:
            left[active] -= at_share[under_way][active] * (next_begin - now)
            now = next_begin
            continue
        over = remaining <= remaining.min()
        left[active] -= at_share[under_way][active] * float(remaining.min())
        ends[over], active[over], now = next_end, False, next_end
    return ends
