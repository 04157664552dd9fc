"""One column of the ledger: an account for each route of release, of which the smallest epsilon counts.

The worst client is among those whose costs no other client's costs dominate.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy.account import Account, Profile
from wirelessfl.privacy.costs import Spending, Statement
from wirelessfl.privacy.gaussian import gaussian_epsilon

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
    uses = (((-event.noise_multiplier, event.sample_rate, count) for event, count in route.uses) for route in profile)
    return [
        number
        for route, its_uses in zip(profile, uses, strict=True)
        for number in (route.mu_squared, *chain.from_iterable(its_uses))
    ]


def pareto_front(costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) whether no other row of the (n, dims) distinct rows is at least as large everywhere."""
    if costs.shape[1] == 1:
        return np.asarray(costs[:, 0] == costs[:, 0].max())
    front = np.empty(len(costs), dtype=np.bool_)
    for start in range(0, len(costs), _BLOCK):
        at_least = (costs[None, :, :] >= costs[start : start + _BLOCK, None, :]).all(axis=2)
        front[start : start + _BLOCK] = at_least.sum(axis=1) == 1  # only itself
    return front


Profiles = Sequence[tuple[Profile, ...]]
"""Per client, what it spent along each route, in the order of the routes."""

_COMPOSED_EXACTLY = 64  # distinct clients that ``epsilons`` composes with sampled mechanisms, a part of a second each
_NO_GUARANTEE = Profile(np.inf, ())


class Column:
    """Accounts by route, published or accounted.

    Args:
        statement: For whom, against whom and at which delta.

    Attributes:
        beside: Plain Gaussian costs that come on top of those of every route.
        largest: Largest epsilon of all clients, as far as it is known.
    """

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.accounts: defaultdict[str, Account] = defaultdict(Account)
        self.beside = Account()
        self.largest = 0.0

    def add(self, route: str, slots: NDArray[np.int64], spending: Spending) -> None:
        """Composition with the spending of one release along a route."""
        self.accounts[route].add(slots, spending)

    @property
    def charges_everyone(self) -> bool:
        """Whether unselected clients have a cost as well."""
        return any(account.charges_everyone for account in (*self.accounts.values(), self.beside))

    @property
    def clients_differ(self) -> bool:
        """Whether there is more to a client's cost than what everyone is charged along one route."""
        own = any(account.has_own_costs for account in (*self.accounts.values(), self.beside))
        return len(self.accounts) > 1 or own

    @property
    def _samples(self) -> bool:
        # Whether there are sampled mechanisms; without them, costs are numbers and need no profiles.
        return any(account.samples for account in self.accounts.values())

    def epsilons_by_route(self, slots: NDArray[np.int64], uncovered: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(routes, n) of clients; a route that is ``uncovered`` (routes, n) is no guarantee for a client."""
        if self._samples:
            return self._composed(self._profiles(slots, uncovered))
        return self._gaussian(self._costs(slots, uncovered))

    def epsilons(self, slots: NDArray[np.int64], uncovered: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(n,) the smallest over the routes, 0 where nothing was released.

        Where more distinct clients have sampled mechanisms than can be composed in reasonable time, RDP bounds each of
        them, and so does ``largest``, the epsilon that none of them exceeds.

        Args:
            slots: (n,) of the clients.
            uncovered: (routes, n) where a route is no guarantee.
        """
        if not self.accounts:
            return self.epsilons_beside(slots)
        if not self._samples:
            costs, place = np.unique(self._costs(slots, uncovered), axis=0, return_inverse=True)
            return np.asarray(self._gaussian(costs).min(axis=0)[place.reshape(-1)])
        profiles = self._profiles(slots, uncovered)
        to_compose = {profile for profile in profiles if any(route.uses for route in profile)}
        if len(to_compose) > _COMPOSED_EXACTLY:
            return np.minimum(self._upper_bounds(profiles), self.largest)
        return np.asarray(self._composed(profiles).min(axis=0))

    def epsilons_beside(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) of what comes on top of every route, alone."""
        costs, place = np.unique(self.beside.mu_squared_of(slots), return_inverse=True)
        return np.asarray(gaussian_epsilon(np.sqrt(costs), self.statement.delta)[place])

    def gaussian_mu(self, slots: NDArray[np.int64], uncovered: NDArray[np.bool_]) -> float:
        """The μ of the dearest of clients, with what comes on top; NaN unless one route of plain Gaussian costs is."""
        if self._samples or len(self.accounts) != 1:
            return float("nan")
        return float(np.sqrt(self._costs(slots, uncovered).max()))

    def raise_largest(self, slots: NDArray[np.int64], uncovered: NDArray[np.bool_]) -> None:
        """Rise of ``largest`` to the largest epsilon of these clients; composes as few as it can."""
        if not len(slots) or self.largest == np.inf:
            return
        if not self.accounts:
            self.largest = max(self.largest, float(self.epsilons_beside(slots).max()))
            return
        if self._samples:
            profiles = self._profiles(slots, uncovered)
            candidates = [profiles[place] for place in undominated(profiles)]
            bounds = self._upper_bounds(candidates)
            for place in np.argsort(-bounds):
                if bounds[place] <= self.largest:
                    break
                self.largest = max(self.largest, float(self._composed([candidates[place]]).min()))
            return
        costs = self._costs(slots, uncovered)
        if costs.shape[1] == 1:
            highest = costs.max(axis=0, keepdims=True)
        else:
            distinct = np.unique(costs, axis=0)
            highest = distinct[pareto_front(distinct)]
        self.largest = max(self.largest, float(self._gaussian(highest).min(axis=0).max()))

    def _costs(self, slots: NDArray[np.int64], uncovered: NDArray[np.bool_]) -> NDArray[np.float64]:
        # (n, routes) the Gaussian costs.
        costs = np.stack([account.mu_squared_of(slots) for account in self.accounts.values()])
        costs = costs + self.beside.mu_squared_of(slots)
        return np.where(uncovered, np.inf, costs).T

    def _gaussian(self, costs: NDArray[np.float64]) -> NDArray[np.float64]:
        # (routes, n) epsilons of Gaussian costs (n, routes).
        accounts = self.accounts.values()
        return np.stack([a.gaussian_epsilons(cost, self.statement) for a, cost in zip(accounts, costs.T, strict=True)])

    def _profiles(self, slots: NDArray[np.int64], uncovered: NDArray[np.bool_]) -> Profiles:
        by_route = [
            [
                _NO_GUARANTEE if missing else profile
                for missing, profile in zip(row, account.profiles_of(slots), strict=True)
            ]
            for row, account in zip(uncovered.tolist(), self.accounts.values(), strict=True)
        ]
        beside = self.beside.mu_squared_of(slots).tolist()
        return [
            tuple(profile._replace(mu_squared=profile.mu_squared + more) for profile in routes) if more else routes
            for routes, more in zip(zip(*by_route, strict=True), beside, strict=True)
        ]

    def _composed(self, profiles: Profiles) -> NDArray[np.float64]:
        # (routes, n) epsilons of profiles (n).
        routes = enumerate(self.accounts.values())
        return np.stack(
            [account.epsilons([profile[row] for profile in profiles], self.statement) for row, account in routes]
        )

    def _upper_bounds(self, profiles: Profiles) -> NDArray[np.float64]:
        bounds = np.full(len(profiles), np.inf)
        for row, account in enumerate(self.accounts.values()):
            bounds = np.minimum(bounds, account.upper_bounds([profile[row] for profile in profiles], self.statement))
        return bounds
