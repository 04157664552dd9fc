"""Cumulative costs of every client with a release, for one route and one column of the ledger.

Uses of sampled mechanisms are a sparse matrix of counts that only grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition
from wirelessfl.privacy.accountants import Uses, cheap_upper_bounds, composed_epsilon
from wirelessfl.privacy.costs import Conversion, SampledGaussian, SampledSteps, Spending, Statement
from wirelessfl.privacy.gaussian import gaussian_epsilon, tail_bound_epsilon, zcdp_epsilon

_EVENT_BITS = 31  # in one int64 key: 2**31 distinct sampled mechanisms a run, which no memory holds, and 2**31 clients

_EVENTS = (1 << _EVENT_BITS) - 1


class EventCounts:
    """Counts by client slot and event; cost and memory grow with the entries, not with the clients."""

    def __init__(self) -> None:
        self.events: list[SampledGaussian] = []
        self._ids: dict[SampledGaussian, int] = {}
        self._keys: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # slot << _EVENT_BITS | event, ascending
        self._counts: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._pending: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._num_pending = 0

    def event_id(self, event: SampledGaussian) -> int:
        """The number of an event, in the order of first use."""
        if event not in self._ids:
            self._ids[event] = len(self.events)
            self.events.append(event)
        return self._ids[event]

    def add(self, slots: NDArray[np.int64], events: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Addition of ``counts`` uses of ``events`` for ``slots``, three (n,) arrays; amortised O(n log n)."""
        self._pending.append(((slots << _EVENT_BITS) | events, counts))
        self._num_pending += len(slots)
        if self._num_pending > len(self._keys) + 4096:
            self._merge()

    def _merge(self) -> None:
        if not self._pending:
            return
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._pending)])
        counts = np.concatenate([self._counts, *(counts for _, counts in self._pending)])
        self._keys, place = np.unique(keys, return_inverse=True)
        self._counts = np.zeros(len(self._keys), dtype=np.int64)
        np.add.at(self._counts, place, counts)
        self._pending, self._num_pending = [], 0

    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(slot, event, count) triples, by slot and then event, each (entries,)."""
        self._merge()
        return self._keys >> _EVENT_BITS, self._keys & _EVENTS, self._counts

    def uses_of(self, slots: NDArray[np.int64]) -> list[Uses]:
        """The uses of each of (n,) clients, in the order of first use in the run."""
        self._merge()
        first, last = (np.searchsorted(self._keys, slot << _EVENT_BITS).tolist() for slot in (slots, slots + 1))
        return [
            tuple(
                (self.events[key & _EVENTS], count)
                for key, count in zip(self._keys[start:stop].tolist(), self._counts[start:stop].tolist(), strict=True)
            )
            for start, stop in zip(first, last, strict=True)
        ]


class Profile(NamedTuple):
    """Composed cost of one client, from which its epsilon follows: clients with equal profiles are computed once."""

    mu_squared: float
    uses: Uses


class Account:
    """Costs of all clients with a release, addressed by slot, for one route and one column.

    Attributes:
        reasons: Why nothing is proven about some of the clients, in words.
        conversion: How a total becomes an epsilon; None before the first release.
    """

    def __init__(self) -> None:
        self._mu_squared: NDArray[np.float64] = np.zeros(64)
        self._unproven: NDArray[np.int16] = np.full(64, -1, dtype=np.int16)
        self._counts = EventCounts()
        self._common = Profile(0.0, ())
        self.reasons: list[str] = []
        self.conversion: Conversion | None = None

    @property
    def charges_everyone(self) -> bool:
        """Whether unselected clients have a cost as well."""
        return self._common != Profile(0.0, ())

    @property
    def samples(self) -> bool:
        """Whether any client used a sampled mechanism; without one, ``mu_squared_of`` is the whole cost."""
        return bool(self._counts.events or self._common.uses)

    @property
    def has_own_costs(self) -> bool:
        """Whether clients differ in their costs."""
        return bool(self._counts.events or self.reasons or self._mu_squared.any())

    def add(self, slots: NDArray[np.int64], spending: Spending) -> None:
        """Composition with the spending of one release; ``slots`` (n,) of its clients, each at most once.

        Raises:
            ValueError: If the spending converts to epsilon differently from what is there already.
        """
        precondition(
            self.conversion in (None, spending.conversion),
            f"a run cannot mix the conversions {self.conversion} and {spending.conversion}",
        )
        self.conversion = spending.conversion
        size = int(slots.max(initial=-1)) + 1
        self._mu_squared, self._unproven = grown(self._mu_squared, size), grown(self._unproven, size, fill=-1)
        if spending.unproven is not None:
            if spending.unproven not in self.reasons:
                self.reasons.append(spending.unproven)
            if spending.everyone:
                self._common = Profile(np.inf, ())
            else:
                self._unproven[slots] = self.reasons.index(spending.unproven)
        elif spending.everyone:
            self._add_common(spending)
        else:
            self._mu_squared[slots] += spending.mu_squared
            if spending.sampled is not None:
                self._add_sampled(slots, spending.sampled)

    def _add_common(self, spending: Spending) -> None:
        uses, steps = self._common.uses, spending.sampled
        if steps is not None:
            event = (float(steps.noise_multiplier[0]), float(steps.sample_rate[0]), steps.exchange, steps.fixed_size)
            uses = _together(uses, ((SampledGaussian(*event), int(steps.count[0])),))
        self._common = Profile(self._common.mu_squared + float(spending.mu_squared[0]), uses)

    def _add_sampled(self, slots: NDArray[np.int64], steps: SampledSteps) -> None:
        used = steps.count > 0
        pairs = np.stack([steps.noise_multiplier[used], steps.sample_rate[used]], axis=1)
        distinct, place = np.unique(pairs, axis=0, return_inverse=True)
        ids = [
            self._counts.event_id(SampledGaussian(z, q, steps.exchange, steps.fixed_size)) for z, q in distinct.tolist()
        ]
        self._counts.add(slots[used], np.array(ids, dtype=np.int64)[place.reshape(-1)], steps.count[used])

    def mu_squared_of(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) composed cost of the plain Gaussian mechanisms of clients, infinite where nothing is proven.

        A slot that was never touched has the common cost alone.
        """
        costs = self._common.mu_squared + _entries(self._mu_squared, slots, absent=0.0)
        return np.where(self._is_unproven(slots), np.inf, costs)

    def profiles_of(self, slots: NDArray[np.int64]) -> list[Profile]:
        """Composed cost of each of (n,) clients, sampled mechanisms included."""
        mu_squared, unproven = self.mu_squared_of(slots).tolist(), self._is_unproven(slots).tolist()
        return [
            Profile(cost, () if void else _together(self._common.uses, uses))
            for cost, void, uses in zip(mu_squared, unproven, self._counts.uses_of(slots), strict=True)
        ]

    def _is_unproven(self, slots: NDArray[np.int64]) -> NDArray[np.bool_]:
        return _entries(self._unproven, slots, absent=-1) >= 0

    def epsilons(self, profiles: Sequence[Profile], statement: Statement) -> NDArray[np.float64]:
        """(len(profiles),) epsilon of each profile at the statement's delta; equal profiles are computed once."""
        distinct = list(dict.fromkeys(profiles))
        plain = np.array([profile.mu_squared for profile in distinct if not profile.uses])
        plain_epsilon = iter(self.gaussian_epsilons(plain, statement).tolist())
        epsilon_of = {
            profile: composed_epsilon(profile.mu_squared, profile.uses, statement.delta, statement.accountant)
            if profile.uses
            else next(plain_epsilon)
            for profile in distinct
        }
        return np.array([epsilon_of[profile] for profile in profiles], dtype=np.float64)

    def upper_bounds(self, profiles: Sequence[Profile], statement: Statement) -> NDArray[np.float64]:
        """(len(profiles),) quick upper bounds on ``epsilons``; infinite where the accountant is quick itself."""
        if statement.accountant != "pld":
            return np.full(len(profiles), np.inf)
        if self.conversion == "accountant":
            return cheap_upper_bounds(profiles, statement.delta)
        return self.gaussian_epsilons(np.array([profile.mu_squared for profile in profiles]), statement)

    def gaussian_epsilons(self, mu_squared: NDArray[np.float64], statement: Statement) -> NDArray[np.float64]:
        """(n,) epsilon of plain Gaussian mechanisms of these costs (n,)."""
        delta = statement.delta
        match self.conversion, statement.accountant:
            case ("zcdp", _):
                return zcdp_epsilon(0.5 * mu_squared, delta)
            case ("tail_bound", _):
                return tail_bound_epsilon(2.0 * mu_squared, delta)
            case (_, "pld" | "gdp"):
                return gaussian_epsilon(np.sqrt(mu_squared), delta)
            case (_, accountant):
                return np.array([composed_epsilon(value, (), delta, accountant) for value in mu_squared.tolist()])

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Everything as arrays; ``restore`` is its inverse."""
        slots, events, counts = self._counts.entries()
        return {
            "mu_squared": self._mu_squared.copy(),
            "unproven": self._unproven.copy(),
            "entry_slot": slots,
            "entry_event": events,
            "entry_count": counts.copy(),
            "events": _event_rows(self._counts.events),
            "common_events": _event_rows(event for event, _ in self._common.uses),
            "common_counts": np.array([count for _, count in self._common.uses], dtype=np.int64),
            "common_mu_squared": np.array([self._common.mu_squared]),
            "reasons": encoded(self.reasons),
            "conversion": encoded([self.conversion or ""]),
        }

    @classmethod
    def restore(cls, state: Mapping[str, NDArray[np.generic]]) -> Account:
        """An account as it was when ``state`` was taken.

        Raises:
            KeyError, TypeError, ValueError: ``state`` was taken from something else.
        """
        account = cls()
        account._mu_squared = np.array(state["mu_squared"], dtype=np.float64)
        account._unproven = np.array(state["unproven"], dtype=np.int16)
        shapes = account._mu_squared.shape, account._unproven.shape
        precondition(
            shapes[0] == shapes[1] and len(shapes[0]) == 1,
            f"one entry for each client is needed, found the shapes {shapes}",
        )
        for event in _events_from(state["events"]):
            account._counts.event_id(event)
        account._counts.add(*(np.array(state[f"entry_{name}"], dtype=np.int64) for name in ("slot", "event", "count")))
        common = zip(_events_from(state["common_events"]), state["common_counts"].tolist(), strict=True)
        account._common = Profile(state["common_mu_squared"].tolist()[0], tuple(common))
        account.reasons = decoded(state["reasons"])
        account.conversion = state["conversion"].tolist()[0].decode() or None
        return account


def _entries(array: NDArray[Any], slots: NDArray[np.int64], absent: float) -> NDArray[Any]:
    # (n,) the entries of ``array`` at ``slots``; ``absent`` where it is too short.
    there = slots < len(array)
    return np.where(there, array[np.where(there, slots, 0)], absent)


def grown(array: NDArray[Any], size: int, fill: int = 0) -> NDArray[Any]:
    """``array`` with room for ``size`` entries, doubled and padded with ``fill`` if it is too short."""
    missing = size - len(array)
    if missing <= 0:
        return array
    return np.concatenate([array, np.full(max(missing, len(array)), fill, dtype=array.dtype)])


def encoded(texts: Iterable[str]) -> NDArray[np.bytes_]:
    """Texts in UTF-8; ``decoded`` is the inverse."""
    return np.array([text.encode() for text in texts], dtype=np.bytes_)


def decoded(texts: NDArray[np.generic]) -> list[str]:
    """Texts of an array in UTF-8."""
    return [text.decode() for text in texts.tolist()]


def _together(common: Uses, own: Uses) -> Uses:
    # What everyone is charged and what a client used itself
    uses = dict(common)
    for event, count in own if common else ():
        uses[event] = uses.get(event, 0) + count
    return tuple(uses.items()) if common else own


def _event_rows(events: Iterable[SampledGaussian]) -> NDArray[np.float64]:
    # (events, 4) rows of noise multiplier, sample rate, exchange and fixed size.
    return np.array([tuple(map(float, event)) for event in events], dtype=np.float64).reshape(-1, 4)


def _events_from(rows: NDArray[np.generic]) -> list[SampledGaussian]:
    return [SampledGaussian(row[0], row[1], bool(row[2]), bool(row[3])) for row in rows.tolist()]
