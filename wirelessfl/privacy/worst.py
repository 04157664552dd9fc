"""Clients that can be the worst ones: those whose costs no other client's costs dominate."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy.account import Profile

_BLOCK = 256  # profiles compared with all others at a time, which bounds memory


def undominated(profiles: Sequence[tuple[Profile, ...]]) -> NDArray[np.int64]:
    """Positions of profiles that suffice to find the largest epsilon, ascending.

    A profile is dominated if another one of the same structure has, term by term, at least its Gaussian cost,
    its sample rates and its counts, and at most its noise multipliers: its epsilon cannot be larger. Of equal
    profiles one is kept.

    Args:
        profiles: Per client, the profile along each route.
    """
    distinct = {profile: position for position, profile in enumerate(profiles)}
    groups: defaultdict[object, list[tuple[int, list[float]]]] = defaultdict(list)
    for profile, position in distinct.items():
        structure = tuple(tuple((event.exchange, event.fixed_size) for event, _ in route.uses) for route in profile)
        groups[structure].append((position, _cost_vector(profile)))
    kept: list[int] = []
    for members in groups.values():
        positions = np.array([position for position, _ in members])
        kept.extend(positions[pareto_front(np.array([vector for _, vector in members]))].tolist())
    return np.array(sorted(kept), dtype=np.int64)


def _cost_vector(profile: tuple[Profile, ...]) -> list[float]:
    # Numbers that each raise epsilon as they grow.
    vector: list[float] = []
    for route in profile:
        vector.append(route.mu_squared)
        for event, count in route.uses:
            vector += [-event.noise_multiplier, event.sample_rate, count]
    return vector


def pareto_front(costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) whether no other row of the (n, dims) distinct rows is at least as large everywhere."""
    front: NDArray[np.bool_] = np.empty(len(costs), dtype=np.bool_)
    if costs.shape[1] == 1:
        front[:] = costs[:, 0] == costs[:, 0].max()
        return front
    for start in range(0, len(costs), _BLOCK):
        block = costs[start : start + _BLOCK]
        at_least = (costs[None, :, :] >= block[:, None, :]).all(axis=2)
        front[start : start + _BLOCK] = at_least.sum(axis=1) == 1  # only itself
    return front
