"""The clients of each round: a rule, and what is remembered for it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.conformance import method_at
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.selection import (
    AskingSelection,
    Chosen,
    Known,
    LearningSelection,
    LossReports,
    RoundFeedback,
    ScoredSelection,
    SelectAll,
    Selection,
    SelectionContext,
)
from wirelessfl.learning.selection.protocol import FRESH, Numbers
from wirelessfl.learning.selection.sparse import SparseVector
from wirelessfl.memory import Memory, OrderedMemory, memories_among
from wirelessfl.radio.network import Network
from wirelessfl.radio.propagation import Moment
from wirelessfl.radio.slot_schedule import PilotCharge
from wirelessfl.simulation.jobs import JobsInFlight
from wirelessfl.simulation.records import Round
from wirelessfl.streams import Streams

FreshGains = tuple[NDArray[np.float64], NDArray[np.float64]]
# Slots of a round that are made before the first; more come as they are needed
_MOST_EXPECTED = 1024


@dataclass(frozen=True)
class ClientSelection:
    """The clients of each round.

    Attributes:
        rule: selects them.
        count: how many, at most.
        network: channels of the clients by the laws of the scenario, for rules that read fresh gains.
        pilots: what the pilots of all registered clients take for these; None where they cost nothing.
        from_outside: whether the rule is code from outside.
        speed: (K,) nominal local trainings a second, computed when they are asked for.
        heard: of those who took part the round of it, their channel and their loss; written where the rule reads it.
    """

    rule: Selection
    count: int
    network: Network
    pilots: PilotCharge | None = None
    from_outside: bool = False
    speed: Callable[[], NDArray[np.float64]] = lambda: np.zeros(0)
    heard: OrderedMemory = field(
        default_factory=partial(OrderedMemory, heard_in=np.nan, gains=np.nan, relative_gains=np.nan, losses=np.nan)
    )

    @property
    def reports(self) -> LossReports:
        """Losses that clients report for the rule, where it reads any."""
        return self.rule.facts().reports

    @property
    def reads_losses(self) -> bool:
        """Whether the rule reads losses."""
        return "losses" in self.rule.facts().reads

    @property
    def asks(self) -> bool:
        """Whether candidates are asked for their losses before the selection."""
        return isinstance(self.rule, AskingSelection) and self.reports.when == "asked"

    def candidates(self, moment: Moment) -> NDArray[np.int64]:
        """Ascending numbers of the candidates of the round that begins at a moment."""
        assert isinstance(self.rule, AskingSelection)
        return self.rule.candidates_of(self._context(moment, self.network.streams, None, None))

    def fresh_gains(self, moment: Moment) -> FreshGains | None:
        """Gains |ĥ|² (K,) at a moment from pilots of all clients, and their means; None where the rule reads none."""
        return self.network.pilot_gains(moment) if self.rule.facts().reads & FRESH else None

    @property
    def expected(self) -> int:
        """Clients to expect in a round; there may be more where their number is random."""
        scored = isinstance(self.rule, ScoredSelection)
        return min(self.count, _MOST_EXPECTED) if scored else len(self.select(Moment(1, 0.0)))

    def select(self, moment: Moment, streams: Streams | None = None) -> NDArray[np.int64]:
        """Ascending numbers of the clients selected in the round that begins at a moment."""
        return self.choose(moment, streams).clients

    def choose(
        self,
        moment: Moment,
        streams: Streams | None = None,
        gains: FreshGains | None = None,
        answers: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None,
    ) -> Chosen:
        """The clients selected in the round that begins at a moment, with their scores.

        Args:
            moment: the beginning of the round.
            streams: randomness of the rule; None for that of the run.
            gains: as ``fresh_gains`` has them; None where they were not asked for yet.
            answers: (a,) ascending candidates that answered a query, and their losses; None without one.

        Raises:
            ScenarioError: a rule from outside gives something else.
        """
        rule, registered = self.rule, self.network.registry.count
        context = self._context(moment, streams or self.network.streams, gains, answers)
        if isinstance(rule, ScoredSelection):
            return rule.choose(context, self.count)
        clients = rule.select(context, self.count)
        fits = isinstance(clients, np.ndarray) and clients.dtype == np.int64 and clients.ndim == 1
        if not fits or len(clients) > self.count or np.any(np.diff(clients, prepend=-1, append=registered) < 1):
            raise ScenarioError(
                f"clients.selection.scheme: {type(rule).__name__} selected {clients}; allowed: at most "
                f"{self.count} ascending int64 numbers from 0 to {registered - 1}; `check_selection` tests it"
                f"{method_at(rule, 'select')}"
            )
        return Chosen(clients)

    def _context(
        self,
        moment: Moment,
        streams: Streams,
        gains: FreshGains | None,
        answers: tuple[NDArray[np.int64], NDArray[np.float64]] | None,
    ) -> SelectionContext:
        registry = self.network.registry

        def known(column: str) -> SparseVector:
            values = self.heard.column(column)
            there = ~np.isnan(values)
            return SparseVector(registry.count, self.heard.nodes[there], values[there])

        def age() -> SparseVector:
            heard = known("heard_in")
            return replace(heard, values=moment.round_index - heard.values)

        def fresh(relative: bool) -> NDArray[np.float64]:
            gain, mean = self.network.pilot_gains(moment) if gains is None else gains
            return gain / mean if relative else gain

        def losses() -> SparseVector:
            return known("losses") if answers is None else SparseVector(registry.count, *answers)

        sources: dict[Known, Callable[[], Numbers]] = {
            "samples": lambda: registry.samples.astype(np.float64),
            "gains": lambda: known("gains"),
            "relative_gains": lambda: known("relative_gains"),
            "fresh_gains": lambda: fresh(relative=False),
            "fresh_relative_gains": lambda: fresh(relative=True),
            "losses": losses,
            "speed": self.speed,
            "age": age,
        }
        reads = self.rule.facts().reads
        granted = {name: read for name, read in sources.items() if name in reads}
        asked = None if answers is None else answers[0]
        return SelectionContext(registry.count, moment.round_index, streams, granted, asked)

    def note(self, this: Round, heard: NDArray[np.int64]) -> None:
        """Entry of a finished round, in which the clients at the positions ``heard`` were heard."""
        if not self.rule.facts().reads - {"samples"}:
            return
        unknown = np.full(len(this.clients), np.nan)
        gains, relative = unknown.copy(), unknown.copy()
        for record in this.links:
            power = (np.abs(record.links.estimate) ** 2).mean(axis=(1, 2, 3))
            gains[record.positions] = power
            relative[record.positions] = power / record.links.mean_estimate_power
        estimated = np.flatnonzero(np.isfinite(gains))
        self.heard.write(this.clients[estimated], gains=gains[estimated], relative_gains=relative[estimated])
        clients = this.clients[heard]
        losses = np.full(len(heard), np.nan) if this.reported is None else this.reported[heard]
        self.heard.write(clients, heard_in=np.full(len(heard), float(this.index)), losses=losses)
        if isinstance(self.rule, LearningSelection):
            duration = this.compute_time * this.work_share + this.time_on_air
            registry = self.network.registry
            what = gains[heard], losses, registry.samples[clients], duration[heard]
            self.rule.learn(RoundFeedback(registry.count, this.index, clients, *what))

    def memories(self) -> dict[str, Memory]:
        """What it remembers of clients, where its rule reads anything of them."""
        own = {"selection": self.heard} if self.rule.facts().reads else {}
        return {**own, **memories_among(selection_rule=self.rule)}


@dataclass(frozen=True, kw_only=True)
class KeepAtWork(ClientSelection):
    """As many clients as a rule selects: those with a job in flight, and new ones in place of the others.

    Attributes:
        jobs: who is at work.
    """

    jobs: JobsInFlight

    @override
    def choose(
        self,
        moment: Moment,
        streams: Streams | None = None,
        gains: FreshGains | None = None,
        answers: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None,
    ) -> Chosen:
        """The clients at work, and new ones drawn uniformly from the others."""
        at_work = self.jobs.clients
        if isinstance(self.rule, SelectAll) or not len(at_work):
            return super().choose(moment, streams)
        generator = (streams or self.network.streams).generator("selection", moment.round_index)
        # So many in random order hold, after those at work have been left out, at least as many as are missing.
        drawn = generator.choice(self.network.registry.count, size=self.count, replace=False)
        new = drawn[~np.isin(drawn, at_work)][: self.count - len(at_work)]
        clients = np.sort(np.concatenate([at_work, new])).astype(np.int64)
        return Chosen(clients)
