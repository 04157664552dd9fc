"""Which registered clients the server asks in a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.simulation.jobs import JobsInFlight
from wirelessfl.streams import Streams


class Selection(Protocol):
    """Chooses clients; the result is ascending, so that slots and sums have one order."""

    def select(self, registered: int, round_index: int, streams: Streams) -> NDArray[np.int64]:
        """Ascending numbers of the clients selected in a round."""
        ...


@dataclass(frozen=True)
class SelectAll:
    """Every registered client, every round."""

    def select(self, registered: int, round_index: int, streams: Streams) -> NDArray[np.int64]:
        """All clients."""
        return np.arange(registered, dtype=np.int64)


@dataclass(frozen=True)
class SelectUniform:
    """``count`` clients, uniformly without replacement; the cost follows ``count``, not the registered."""

    count: int

    def select(self, registered: int, round_index: int, streams: Streams) -> NDArray[np.int64]:
        """``count`` clients."""
        generator = streams.generator("selection", round_index)
        chosen = generator.choice(registered, size=self.count, replace=False, shuffle=False)
        return np.sort(chosen).astype(np.int64)


@dataclass(frozen=True)
class SelectPoisson:
    """Each registered client with probability ``rate``, independently."""

    rate: float

    def select(self, registered: int, round_index: int, streams: Streams) -> NDArray[np.int64]:
        """A binomial number of clients, then that many without replacement: the same law, at the cost of the few."""
        generator = streams.generator("selection", round_index)
        count = int(generator.binomial(registered, self.rate))
        chosen = generator.choice(registered, size=count, replace=False, shuffle=False)
        return np.sort(chosen).astype(np.int64)


@dataclass(frozen=True)
class KeepAtWork:
    """As many clients as a rule selects: those with a job in flight, and others for those without.

    Attributes:
        selection: how many, and from whom.
        jobs: who is at work.
    """

    selection: SelectAll | SelectUniform
    jobs: JobsInFlight

    def select(self, registered: int, round_index: int, streams: Streams) -> NDArray[np.int64]:
        """The clients at work, and new ones drawn uniformly from the others."""
        at_work = self.jobs.clients
        if isinstance(self.selection, SelectAll) or not len(at_work):
            return self.selection.select(registered, round_index, streams)
        generator = streams.generator("selection", round_index)
        # So many in random order hold, after those at work have been left out, at least as many as are missing.
        drawn = generator.choice(registered, size=self.selection.count, replace=False)
        new = drawn[~self.jobs.at_work(drawn)][: self.selection.count - len(at_work)]
        return np.sort(np.concatenate([at_work, new])).astype(np.int64)
