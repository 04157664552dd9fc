"""Uses of sampled mechanisms by client: a sparse matrix of counts that only grow."""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy.accountants import Uses
from wirelessfl.privacy.spending import SampledGaussian

_EVENT_BITS = 31  # in one int64 key: 2**31 distinct sampled mechanisms a run, which no memory holds, and 2**31 clients


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
        return self._keys >> _EVENT_BITS, self._keys & ((1 << _EVENT_BITS) - 1), self._counts

    def uses_of(self, slots: NDArray[np.int64]) -> list[Uses]:
        """The uses of each of (n,) clients, in the order of first use in the run."""
        if not self.events:
            return [()] * len(slots)
        self._merge()
        first = np.searchsorted(self._keys, slots << _EVENT_BITS).tolist()
        last = np.searchsorted(self._keys, (slots + 1) << _EVENT_BITS).tolist()
        return [self._uses_between(start, stop) for start, stop in zip(first, last, strict=True)]

    def _uses_between(self, start: int, stop: int) -> Uses:
        mask = (1 << _EVENT_BITS) - 1
        return tuple(
            (self.events[key & mask], count)
            for key, count in zip(self._keys[start:stop].tolist(), self._counts[start:stop].tolist(), strict=True)
        )
