"""The ledger: published and accounted epsilon of every client, from the releases of every round."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.privacy.account import Account, decoded, encoded, grown
from wirelessfl.privacy.column import Column
from wirelessfl.privacy.costs import PrivacyFacts, Spending, Statement
from wirelessfl.privacy.gaussian import EPSILON_CAP
from wirelessfl.privacy.releases.base import Release
from wirelessfl.privacy.releases.losses import LossRelease
from wirelessfl.privacy.releases.unselected import cost_if_selected, joined
from wirelessfl.privacy.remarks import ENDS_BY_CLIENTS_DATA

_ANY_ROUTE = ""
_NOBODY = np.zeros(0, dtype=np.int64)


class Ledger:
    """Sum of the costs of all releases; O(active clients) per release, whatever the population.

    Releases of different routes (local noise, channel noise, ...) that cover the same participation are
    alternatives: for every client the smaller of the valid guarantees counts. A route that did not cover
    each of a client's participations is no guarantee for that client.

    Args:
        facts: Public constants of the population.
        statement: For whom, against whom and at which delta.
    """

    def __init__(self, facts: PrivacyFacts, statement: Statement) -> None:
        self.facts = facts
        self.statement = statement
        self._clear()

    def _clear(self) -> None:
        self._published, self._accounted = Column(self.statement), Column(self.statement)
        self._rounds: dict[str, NDArray[np.int64]] = {}  # route -> participations per slot
        self._last_round: dict[str, NDArray[np.int64]] = {}  # route -> 1 + round of the last one per slot
        self._slot_of: NDArray[np.int32] = np.full(self.facts.num_clients, -1, dtype=np.int32)
        self._touched, self._num_touched = _NOBODY, 0
        self._changed: list[NDArray[np.int64]] = []
        self._remarks: dict[str, None] = {}
        self._kinds = _NOBODY
        self._reported_in = -1  # the last round of which losses were reported
        self._reports: LossRelease | None = None  # of that round, known while it is added

    # ------------------------------------------------------------------------------------------ adding

    def add(self, release: Release) -> None:
        """Composition with one release. All releases of a round come before those of the next.

        Raises:
            ValueError: If a client is unknown, has no samples or is named twice.
        """
        clients = np.asarray(release.clients, dtype=np.int64)
        precondition(
            not len(clients) or (clients.min() >= 0 and clients.max() < self.facts.num_clients),
            f"a release names clients outside 0..{self.facts.num_clients - 1}",
        )
        precondition(len(_distinct(clients)) == len(clients), "a release names a client twice")
        precondition(not np.any(self.facts.samples[clients] == 0), "a release names a client without samples")
        slots = self._slots(clients)
        if isinstance(release, LossRelease):
            self._accounted.beside.add(slots, release.accounted(self.facts, self.statement))
            self._reported_in, self._reports = release.round_index, release
            self._changed.append(slots)
            self._remarks.update(dict.fromkeys(release.remarks(self.facts, self.statement)))
            return
        self._published.add(release.route, slots, release.published(self.facts))
        self._changed.append(slots)
        spending = release.accounted(self.facts, self.statement)
        self._count_participation(release, slots)
        if self._reports is not None and self._reports.round_index == release.round_index:
            spending, slots = self._of_all_who_might(self._reports, release, spending, slots)
        self._accounted.add(release.route, slots, spending)
        self._changed.append(slots)
        self._remarks.update(dict.fromkeys(release.remarks(self.facts, self.statement)))

    def _of_all_who_might(
        self, reports: LossRelease, release: Release, spending: Spending, slots: NDArray[np.int64]
    ) -> tuple[Spending, NDArray[np.int64]]:
        # Who was selected follows the noisy losses of the round: all who might have been pay what it would have cost.
        if reports.everyone:
            return self._of_every_kind(reports, release, slots)
        other = np.isin(reports.clients, release.clients, invert=True)
        others = self._slots(reports.clients[other])
        self._count_participation(release, others)
        would = cost_if_selected(release, reports.plans, self.facts, self.statement, other)
        return joined(spending, would), np.concatenate([slots, others])

    def _of_every_kind(
        self, reports: LossRelease, release: Release, slots: NDArray[np.int64]
    ) -> tuple[Spending, NDArray[np.int64]]:
        # One slot for all clients with as many samples: what those of them who took part have spent is no more
        kinds = np.array(() if reports.plans is None else reports.plans.samples, dtype=np.int64)
        if not len(self._kinds):
            self._know(kinds)
        known = reports.plans if len(kinds) and np.array_equal(kinds, self._kinds) else None
        if known is not None:
            slots = self._slots(self.facts.num_clients + np.arange(len(kinds)))
            self._count_participation(release, slots)
        would = cost_if_selected(release, known, self.facts, self.statement)
        return (would if known else replace(would, everyone=True)), slots

    def _know(self, kinds: NDArray[np.int64]) -> None:
        # Numbers of samples that stand for all clients with as many; they are counted behind these
        self._kinds = kinds
        self._slot_of = np.append(self._slot_of, np.full(len(kinds), -1, dtype=np.int32))

    def epsilon_selection(self) -> float:
        """Epsilon of the losses reported for the selection alone, worst client; NaN where none have noise."""
        slots = np.arange(self._num_touched + 1)
        return float(self._accounted.epsilons_beside(slots).max()) if self._reported_in >= 0 else np.nan

    def accounted_mu(self, client: int) -> float:
        """The μ behind the accounted epsilon of a client, where one route of plain Gaussian costs is; else NaN."""
        if self.is_void:
            return np.nan
        kind = np.flatnonzero(self._kinds == self.facts.samples[client])
        slot = int(self._slot_of[self.facts.num_clients + kind[0] if len(kind) else client])
        slots = np.array([self._num_touched if slot < 0 else slot])
        return self._accounted.gaussian_mu(slots, self._uncovered(slots))

    def remark(self, sentence: str) -> None:
        """Remark on the meaning of the two ε."""
        self._remarks[sentence] = None

    def _slots(self, clients: NDArray[np.int64]) -> NDArray[np.int64]:
        # (n,) numbers of the clients in the order in which they were first touched.
        new = clients[self._slot_of[clients] < 0]
        end = self._num_touched + len(new)
        self._slot_of[new] = np.arange(self._num_touched, end)
        self._touched = grown(self._touched, end)
        self._touched[self._num_touched : end] = new
        self._num_touched = end
        return self._slot_of[clients].astype(np.int64)

    def _count_participation(self, release: Release, slots: NDArray[np.int64]) -> None:
        # A participation is a round; a route may release more than once in it.
        for name in (_ANY_ROUTE, release.route):
            count = grown(self._rounds.get(name, _NOBODY), self._num_touched)
            last = grown(self._last_round.get(name, _NOBODY), self._num_touched)
            count[slots] += last[slots] != release.round_index + 1
            last[slots] = release.round_index + 1
            self._rounds[name], self._last_round[name] = count, last

    # ------------------------------------------------------------------------------------------ reading

    @property
    def known_clients(self) -> NDArray[np.int64]:
        """(n,) clients with a cost of their own, in the order of their first release."""
        known = self._touched[: self._num_touched]
        return known[known < self.facts.num_clients]

    def epsilon_published(self) -> float:
        """Published epsilon of the worst client so far; 0 before the first release, infinite if nothing is claimed."""
        self._refresh()
        return self._published.largest

    def epsilon_accounted(self) -> float:
        """Accounted epsilon of the worst client so far; infinite where nothing is proven."""
        self._refresh()
        return np.inf if self.is_void else self._accounted.largest

    @property
    def is_void(self) -> bool:
        """Whether something that is no release tells of private data, so that no guarantee holds for anybody."""
        return ENDS_BY_CLIENTS_DATA in self._remarks

    def client_epsilons(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(published, accounted), each (K,), of every registered client; 0 for those who released nothing.

        Beyond 64 clients that differ in their sampled mechanisms, these are upper bounds (RDP, and the worst client's
        epsilon); the largest is always that of ``epsilon_published`` or ``epsilon_accounted``.
        """
        self._refresh()
        published, accounted = self._client_epsilons(self._published), self._client_epsilons(self._accounted)
        count, samples, kinds = self.facts.num_clients, self.facts.samples, self._kinds
        if len(kinds):
            of_kinds, place = accounted[count:], np.searchsorted(kinds, samples).clip(max=len(kinds) - 1)
            known = np.where(kinds[place] == samples, of_kinds[place], of_kinds.max())
            accounted[:count] = np.where(samples > 0, known, accounted[:count])
        return published[:count], np.full(count, np.inf) if self.is_void else accounted[:count]

    def _client_epsilons(self, column: Column) -> NDArray[np.float64]:
        slots = np.arange(self._num_touched + 1)
        epsilons = column.epsilons(slots, self._uncovered(slots))
        result = np.full(len(self._slot_of), epsilons[-1])
        result[self._touched[: self._num_touched]] = epsilons[:-1]
        return result

    def why_different(self) -> list[str]:
        """Plain sentences: why published and accounted differ, which guarantee counts, and why one is infinite."""
        sentences = list(self._remarks)
        published, accounted = self._published.accounts, self._accounted.accounts
        for route in accounted:
            sentences += [f"No guarantee is proven from {route}: {why}." for why in accounted[route].reasons]
            sentences += [f"No epsilon is published from {route}: {why}." for why in published[route].reasons]
        if self._accounted.largest == np.inf and not any(account.reasons for account in accounted.values()):
            sentences.append(f"An accounted epsilon above {EPSILON_CAP:g} has no meaning and is reported as infinite.")
        if len(accounted) > 1 and self._num_touched and not self.is_void:
            sentences.append(self._decisive_route())
        if self.statement.accountant == "gdp":
            sentences.append("The gdp accountant is the limit of many steps: an approximation, not a bound.")
        return sentences

    def _decisive_route(self) -> str:
        column, slots = self._accounted, np.arange(self._num_touched)
        worst = slots[[np.argmax(column.epsilons(slots, self._uncovered(slots)))]]
        by_route = column.epsilons_by_route(worst, self._uncovered(worst))[:, 0]
        if not np.isfinite(by_route.min()):
            return "None of the routes gives a guarantee for every client."
        decisive = list(column.accounts)[int(np.argmin(by_route))]
        return f"Of several valid guarantees the smallest counts; for the worst client it is that from {decisive}."

    def _refresh(self) -> None:
        # Raise the worst epsilons by the clients whose costs changed; costs never fall.
        if not self._changed:
            return
        changed = _distinct(np.concatenate(self._changed))
        self._changed = []
        for column in (self._published, self._accounted):
            slots = changed
            if column.charges_everyone:  # then all costs changed; the last slot stands for all who never took part
                slots = np.arange(0 if column.clients_differ else self._num_touched, self._num_touched + 1)
            column.raise_largest(slots, self._uncovered(slots))

    def _uncovered(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        # (routes, slots) whether a route misses a participation that another one has.
        size = int(slots.max(initial=0)) + 1
        routes = self._accounted.accounts
        if len(routes) < 2:
            return np.zeros((len(routes), len(slots)), dtype=np.bool_)
        rounds = np.stack([grown(self._rounds[route], size)[slots] for route in routes])
        return np.asarray(rounds < grown(self._rounds[_ANY_ROUTE], size)[slots])

    # ------------------------------------------------------------------------------------------ state

    def state(self) -> dict[str, NDArray[np.generic]]:
        """All that was added, as arrays over the clients with a release; ``restore`` is its inverse."""
        self._refresh()
        routes = list(self._accounted.accounts)
        state: dict[str, NDArray[np.generic]] = {
            "clients": self._touched[: self._num_touched].copy(),
            "worst": np.array([self._published.largest, self._accounted.largest]),
            "remarks": encoded(self._remarks),
            "routes": encoded(routes),
        }
        for row, name in enumerate([*routes, _ANY_ROUTE] if routes else []):
            state[f"rounds/{row}"] = self._rounds[name].copy()
            state[f"last_round/{row}"] = self._last_round[name].copy()
        for kind, column in (("published", self._published), ("accounted", self._accounted)):
            accounts = enumerate(column.accounts.values())
            arrays = ((f"{kind}/{row}", account.state()) for row, account in accounts)
            state.update({f"{place}/{name}": array for place, own in arrays for name, array in own.items()})
        if self._reported_in >= 0:
            state["might"] = np.array([self._reported_in, *self._kinds])
            beside = self._accounted.beside.state()
            state.update({f"accounted/beside/{name}": array for name, array in beside.items()})
        return state

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Ledger as ``state`` has it, taken from one with the same facts and statement."""
        self._clear()
        self._know(np.array(state["might"][1:] if "might" in state else (), dtype=np.int64))
        self._slots(np.array(state["clients"], dtype=np.int64))
        self._published.largest, self._accounted.largest = state["worst"].tolist()
        self._remarks = dict.fromkeys(decoded(state["remarks"]))
        routes = decoded(state["routes"])
        for row, name in enumerate([*routes, _ANY_ROUTE] if routes else []):
            self._rounds[name] = np.array(state[f"rounds/{row}"], dtype=np.int64)
            self._last_round[name] = np.array(state[f"last_round/{row}"], dtype=np.int64)
        for kind, column in (("published", self._published), ("accounted", self._accounted)):
            for row, route in enumerate(routes):
                prefix = f"{kind}/{row}/"
                own = {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
                column.accounts[route] = Account.restore(own)
        if "might" in state:  # reports are told anew in each round
            self._reported_in = int(state["might"][0])
            prefix = "accounted/beside/"
            own = {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
            self._accounted.beside = Account.restore(own)


def recompute(releases: Iterable[Release], facts: PrivacyFacts, statement: Statement) -> Ledger:
    """The ledger of a recorded run, for any delta, unit, adjacency, adversary or accountant."""
    ledger = Ledger(facts, statement)
    for release in releases:
        ledger.add(release)
    return ledger


def _distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    # The distinct numbers, ascending; those of a round mostly are.
    return numbers if (numbers[1:] > numbers[:-1]).all() else np.unique(numbers)
