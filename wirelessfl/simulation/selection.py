"""The clients of each round: a rule, and what is remembered for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import ScenarioError
from wirelessfl.learning.selection import SelectAll, Selection, SelectionContext
from wirelessfl.learning.selection.rules import Known
from wirelessfl.memory import NodeMemory
from wirelessfl.simulation.jobs import JobsInFlight
from wirelessfl.simulation.round import Round
from wirelessfl.streams import Streams


def _nobody_heard() -> NodeMemory:
    return NodeMemory(heard_in=np.nan, gains=np.nan, losses=np.nan)


@dataclass(frozen=True)
class ClientSelection:
    """The clients of each round.

    Attributes:
        rule: selects them.
        count: how many, at most.
        samples: (K,) n_i of the registered clients.
        heard: of those who took part the round of it, their channel and their loss; written where the rule reads it.
    """

    rule: Selection
    count: int
    samples: NDArray[np.int64]
    heard: NodeMemory = field(default_factory=_nobody_heard)

    @property
    def reads_losses(self) -> bool:
        """Whether clients report their losses, without noise."""
        return "losses" in self.rule.facts().reads

    def select(self, round_index: int, streams: Streams) -> NDArray[np.int64]:
        """Ascending numbers of the clients selected in a round.

        Raises:
            ScenarioError: a rule from outside gives something else.
        """
        clients = self.rule.select(self._context(round_index, streams), self.count)
        fits = isinstance(clients, np.ndarray) and clients.dtype == np.int64 and clients.ndim == 1
        if not fits or len(clients) > self.count or np.any(np.diff(clients, prepend=-1, append=len(self.samples)) < 1):
            raise ScenarioError(
                f"clients.selection.scheme: {type(self.rule).__name__} selected {clients}; allowed: at most "
                f"{self.count} ascending int64 numbers from 0 to {len(self.samples) - 1}; `check_selection` tests it"
            )
        return clients

    def _context(self, round_index: int, streams: Streams) -> SelectionContext:
        def known(column: str) -> NDArray[np.float64]:
            return self.heard.recall(np.arange(len(self.samples)))[1][column]

        sources: dict[Known, Callable[[], NDArray[np.float64]]] = {
            "samples": lambda: self.samples.astype(np.float64),
            "gains": lambda: known("gains"),
            "losses": lambda: known("losses"),
            "age": lambda: round_index - known("heard_in"),
        }
        reads = self.rule.facts().reads
        granted = {name: read for name, read in sources.items() if name in reads}
        return SelectionContext(len(self.samples), round_index, streams, granted)

    def note(self, this: Round, heard: NDArray[np.int64]) -> None:
        """Entry of a finished round, in which the clients at the positions ``heard`` were heard."""
        if not self.rule.facts().reads - {"samples"}:
            return
        columns = self.heard.recall(this.clients)[1]
        for record in this.links:
            power = np.abs(record.links.estimate) ** 2
            columns["gains"][record.positions] = power.mean(axis=(1, 2, 3))
        columns["heard_in"][heard] = this.index
        columns["losses"][heard] = this.train_loss(heard)
        self.heard.write(this.clients, **columns)

    def state(self) -> dict[str, Any]:
        """What is remembered."""
        return self.heard.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Selection as a state has it."""
        self.heard.restore(state)


@dataclass(frozen=True, kw_only=True)
class KeepAtWork(ClientSelection):
    """As many clients as a rule selects: those with a job in flight, and new ones in place of the others.

    Attributes:
        jobs: who is at work.
    """

    jobs: JobsInFlight

    @override
    def select(self, round_index: int, streams: Streams) -> NDArray[np.int64]:
        """The clients at work, and new ones drawn uniformly from the others."""
        at_work = self.jobs.clients
        if isinstance(self.rule, SelectAll) or not len(at_work):
            return super().select(round_index, streams)
        generator = streams.generator("selection", round_index)
        # So many in random order hold, after those at work have been left out, at least as many as are missing.
        drawn = generator.choice(len(self.samples), size=self.count, replace=False)
        new = drawn[~self.jobs.at_work(drawn)][: self.count - len(at_work)]
        return np.sort(np.concatenate([at_work, new])).astype(np.int64)
