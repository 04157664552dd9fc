"""The ledger: published and accounted epsilon of every client, from the releases of every round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy.account import Account, Profile
from wirelessfl.privacy.gaussian import EPSILON_CAP
from wirelessfl.privacy.releases.base import Release
from wirelessfl.privacy.spending import Spending, no_guarantee
from wirelessfl.privacy.statement import PrivacyFacts, Statement
from wirelessfl.privacy.worst import undominated

COLUMNS = ("published", "accounted")
_ANY_ROUTE = ""
_NOBODY = np.zeros(0, dtype=np.int64)

SCOPE = (
    "ε covers what the named adversary sees of one run. It does not cover the trace: the seed, update norms, actual "
    "back-off, transmit energies and training losses are private data of the simulated clients."
)


class Ledger:
    """Adds up what the rounds released; costs O(active clients) per release, whatever the population.

    Releases of different routes (local noise, channel noise, ...) that cover the same participation are
    alternatives: for every client the smaller of the valid guarantees counts. A route that did not cover
    each of a client's participations is no guarantee for that client.

    Args:
        facts: Public constants of the population.
        statement: For whom, against whom and at which delta.
        filter_mu: A-priori budget of ``gdp_mu`` that the run enforces. Give it where the ratio of sensitivity to
            noise of plain Gaussian releases follows past outputs: the budget is then reported, not the realised
            sum, and a run that exceeded it has no guarantee.

    Raises:
        ValueError: If ``filter_mu`` is not positive and finite.
    """

    def __init__(self, facts: PrivacyFacts, statement: Statement, filter_mu: float | None = None) -> None:
        if filter_mu is not None and not 0 < filter_mu < np.inf:
            raise ValueError(f"filter_mu must be positive and finite, found {filter_mu}")
        self.facts = facts
        self.statement = statement
        self._filter_mu = filter_mu
        self._clear()

    def _clear(self) -> None:
        self._accounts: dict[str, dict[str, Account]] = {}  # route -> column -> account
        self._rounds: dict[str, NDArray[np.int64]] = {}  # route -> participations per slot
        self._last_round: dict[str, NDArray[np.int64]] = {}  # route -> 1 + round of the last one per slot
        self._slot_of: NDArray[np.int32] = np.full(self.facts.num_clients, -1, dtype=np.int32)
        self._touched: NDArray[np.int64] = np.empty(64, dtype=np.int64)
        self._num_touched = 0
        self._changed: list[NDArray[np.int64]] = []
        self._worst = dict.fromkeys(COLUMNS, 0.0)
        self._remarks: dict[str, None] = {}

    # ------------------------------------------------------------------------------------------ adding

    def add(self, release: Release) -> None:
        """Charge one release. All releases of a round come before those of the next.

        Raises:
            ValueError: If a client is unknown or named twice.
        """
        clients = np.asarray(release.clients, dtype=np.int64)
        if len(clients) and (clients.min() < 0 or clients.max() >= self.facts.num_clients):
            raise ValueError(f"a release names clients outside 0..{self.facts.num_clients - 1}")
        if len(np.unique(clients)) != len(clients):
            raise ValueError("a release names a client twice")
        slots = self._slots(clients)
        accounts = self._accounts_of(release.route)
        accounts["published"].add(slots, release.published(self.facts))
        accounts["accounted"].add(slots, self._accounted(release))
        self._count_participation(release, slots)
        self._changed.append(slots)
        self._remarks.update(dict.fromkeys(release.remarks(self.facts, self.statement)))

    def _accounted(self, release: Release) -> Spending:
        if release.caveat is not None:
            return no_guarantee(len(release.clients), release.caveat.value)
        return release.accounted(self.facts, self.statement)

    def _accounts_of(self, route: str) -> dict[str, Account]:
        if route not in self._accounts:
            self._accounts[route] = {column: Account() for column in COLUMNS}
            if self._filter_mu is not None:
                self._accounts[route]["accounted"].budget = self._filter_mu**2
        return self._accounts[route]

    def _slots(self, clients: NDArray[np.int64]) -> NDArray[np.int64]:
        new = clients[self._slot_of[clients] < 0]
        end = self._num_touched + len(new)
        self._slot_of[new] = np.arange(self._num_touched, end)
        self._touched = _grown(self._touched, end)
        self._touched[self._num_touched : end] = new
        self._num_touched = end
        return self._slot_of[clients].astype(np.int64)

    def _count_participation(self, release: Release, slots: NDArray[np.int64]) -> None:
        """A participation is a round; a route may release more than once in it."""
        for name in (_ANY_ROUTE, release.route):
            count = _grown(self._rounds.get(name, _NOBODY), self._num_touched)
            last = _grown(self._last_round.get(name, _NOBODY), self._num_touched)
            count[slots] += last[slots] != release.round_index + 1
            last[slots] = release.round_index + 1
            self._rounds[name], self._last_round[name] = count, last

    # ------------------------------------------------------------------------------------------ reading

    def epsilon_published(self) -> float:
        """Published epsilon of the worst client so far; 0 before the first release, infinite if nothing is claimed."""
        self._refresh()
        return float(self._worst["published"])

    def epsilon_accounted(self) -> float:
        """Accounted epsilon of the worst client so far; infinite where nothing is proven."""
        self._refresh()
        return float(self._worst["accounted"])

    def client_epsilons(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(published, accounted), each (K,), of every registered client; 0 for those who released nothing."""
        columns = []
        slots = np.arange(self._num_touched)
        for column in COLUMNS:
            result = np.full(self.facts.num_clients, self._epsilons(column, self._untouched_slot())[0])
            result[self._touched[slots]] = self._epsilons(column, slots)
            columns.append(result)
        return columns[0], columns[1]

    def why_different(self) -> list[str]:
        """Plain sentences: why published and accounted differ, which guarantee counts, and why one is infinite."""
        sentences, accounts = list(self._remarks), list(self._accounts.values())
        for route, columns in self._accounts.items():
            sentences += [f"No guarantee is proven from {route}: {why}." for why in columns["accounted"].reasons]
            sentences += [f"No epsilon is published from {route}: {why}." for why in columns["published"].reasons]
        if self.epsilon_accounted() == np.inf and not any(columns["accounted"].reasons for columns in accounts):
            sentences.append(f"An accounted epsilon above {EPSILON_CAP:g} says nothing and is reported as infinite.")
        if len(accounts) > 1 and self._num_touched:
            sentences.append(self._decisive_route())
        if self.statement.accountant == "gdp":
            sentences.append("The gdp accountant is the limit of many steps: an approximation, not a bound.")
        if self._filter_mu is not None:
            sentences.append(
                "The noise follows past outputs: the accounted figure is that of the budget fixed before the run, "
                "not of what was spent."
            )
        return sentences

    def _decisive_route(self) -> str:
        slots = np.arange(self._num_touched)
        by_route = self._epsilons_by_route("accounted", slots)
        worst = int(np.argmax(by_route.min(axis=0)))
        if not np.isfinite(by_route[:, worst].min()):
            return "None of the routes gives a guarantee for every client."
        routes = list(self._accounts)
        decisive = routes[int(np.argmin(by_route[:, worst]))]
        return f"Of several valid guarantees the smallest counts; for the worst client it is that from {decisive}."

    # ------------------------------------------------------------------------------------------ composing

    def _untouched_slot(self) -> NDArray[np.int64]:
        """(1,) a slot that stands for all clients who never took part."""
        return np.array([self._num_touched])

    def _refresh(self) -> None:
        """Raise the worst epsilons by the clients whose costs changed; costs never fall."""
        if not self._changed:
            return
        slots = np.unique(np.concatenate(self._changed))
        self._changed = []
        accounts = [account for columns in self._accounts.values() for account in columns.values()]
        if any(account.charges_everyone for account in accounts):
            everyone_alike = len(self._accounts) == 1 and not any(account.has_own_costs for account in accounts)
            slots = self._untouched_slot() if everyone_alike else np.arange(self._num_touched + 1)
        for column in COLUMNS:
            candidates = undominated(self._profiles(column, slots))
            self._worst[column] = max(self._worst[column], self._epsilons(column, slots[candidates]).max(initial=0.0))

    def _profiles(self, column: str, slots: NDArray[np.int64]) -> list[tuple[Profile, ...]]:
        """Per slot, the profile along each route; a route that left out a participation has infinite cost."""
        uncovered = self._uncovered(slots)
        return [
            tuple(
                Profile(np.inf, ()) if uncovered[row, place] else accounts[column].profile_of(slot)
                for row, accounts in enumerate(self._accounts.values())
            )
            for place, slot in enumerate(slots.tolist())
        ]

    def _uncovered(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(routes, slots) whether a route misses a participation that another one has."""
        size = int(slots.max(initial=0)) + 1
        missed = np.zeros((len(self._accounts), len(slots)), dtype=np.bool_)
        for row, route in enumerate(self._accounts):
            missed[row] = _grown(self._rounds[route], size)[slots] < _grown(self._rounds[_ANY_ROUTE], size)[slots]
        return missed

    def _epsilons_by_route(self, column: str, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        """(routes, slots)."""
        profiles = self._profiles(column, slots)
        result = np.empty((len(self._accounts), len(slots)))
        for row, accounts in enumerate(self._accounts.values()):
            result[row] = accounts[column].epsilons([profile[row] for profile in profiles], self.statement)
        return result

    def _epsilons(self, column: str, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        """(slots,) smallest over the routes, 0 where there is none yet."""
        return self._epsilons_by_route(column, slots).min(axis=0) if self._accounts else np.zeros(len(slots))

    # ------------------------------------------------------------------------------------------ state

    def state(self) -> dict[str, NDArray[np.generic]]:
        """All that was added, as arrays over the touched clients; ``restore`` is its inverse."""
        self._refresh()
        state: dict[str, NDArray[np.generic]] = {
            "clients": self._touched[: self._num_touched].copy(),
            "worst": np.array([self._worst[column] for column in COLUMNS]),
            "remarks": np.array([remark.encode() for remark in self._remarks], dtype=np.bytes_),
            "routes": np.array([route.encode() for route in self._accounts], dtype=np.bytes_),
        }
        for row, name in enumerate([*self._accounts, _ANY_ROUTE] if self._accounts else []):
            state[f"{row}/rounds"] = self._rounds[name].copy()
            state[f"{row}/last_round"] = self._last_round[name].copy()
        for row, accounts in enumerate(self._accounts.values()):
            for column in COLUMNS:
                state.update({f"{row}/{column}/{name}": array for name, array in accounts[column].state().items()})
        return state

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from ``state``, taken from a ledger with the same facts, statement and filter."""
        self._clear()
        self._slots(np.array(state["clients"], dtype=np.int64))
        self._worst = dict(zip(COLUMNS, state["worst"].tolist(), strict=True))
        self._remarks = dict.fromkeys(remark.decode() for remark in state["remarks"].tolist())
        for row, route in enumerate(state["routes"].tolist()):
            name = route.decode()
            self._accounts[name] = {
                column: Account.restore(
                    {
                        key.removeprefix(f"{row}/{column}/"): array
                        for key, array in state.items()
                        if key.startswith(f"{row}/{column}/")
                    }
                )
                for column in COLUMNS
            }
        for row, name in enumerate([*self._accounts, _ANY_ROUTE] if self._accounts else []):
            self._rounds[name] = np.array(state[f"{row}/rounds"], dtype=np.int64)
            self._last_round[name] = np.array(state[f"{row}/last_round"], dtype=np.int64)


def recompute(
    releases: Iterable[Release], facts: PrivacyFacts, statement: Statement, filter_mu: float | None = None
) -> Ledger:
    """The ledger of a recorded run, for any delta, unit, adjacency, adversary or accountant."""
    ledger = Ledger(facts, statement, filter_mu)
    for release in releases:
        ledger.add(release)
    return ledger


def _grown(array: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """``array`` with room for ``size`` entries, doubled and padded with zeros if it is too short."""
    if size <= len(array):
        return array
    return np.concatenate([array, np.zeros(max(size - len(array), len(array)), dtype=array.dtype)])
