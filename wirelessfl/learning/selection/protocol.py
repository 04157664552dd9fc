"""The protocol of a rule for the selection of clients: what it may read, what it gives, and what it learns."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import ScenarioError, precondition
from wirelessfl.streams import Streams

Known = Literal["samples", "gains", "relative_gains", "fresh_gains", "fresh_relative_gains", "losses", "age"]
"""Numbers of the registered clients that a rule may read."""

FRESH: frozenset[Known] = frozenset({"fresh_gains", "fresh_relative_gains"})
"""Those for which all registered clients send pilots at the beginning of every round."""


@dataclass(frozen=True)
class SelectionFacts:
    """Numbers that a rule reads; nothing else is kept for it, or handed to it.

    Attributes:
        reads: Names of attributes of ``SelectionContext``. Sample numbers, channel gains and who was heard when are
            public. Losses are private data; what clients report without noise leaves no finite ε.

    Raises:
        ValueError: if a name is unknown.
    """

    reads: frozenset[Known] = frozenset()

    def __post_init__(self) -> None:
        unknown = sorted(self.reads - set(get_args(Known)))
        allowed = " | ".join(get_args(Known))
        precondition(not unknown, f"a selection cannot read {', '.join(unknown)}; allowed: {allowed}")


@dataclass(frozen=True)
class SelectionContext:
    """Knowledge of the server when the clients of a round are selected; nothing in it is later than that.

    Attributes:
        registered: K.
        round_index: Communication round, from 1.
        streams: Randomness of the run; the purpose ``selection`` is the rule's own.
        sources: Of each name that the rule reads, the numbers (K,), computed when they are asked for.
    """

    registered: int
    round_index: int
    streams: Streams
    sources: Mapping[Known, Callable[[], NDArray[np.float64]]] = field(default_factory=dict)

    @property
    def samples(self) -> NDArray[np.float64]:
        """(K,) sample numbers n_i."""
        return self._read("samples")

    @property
    def gains(self) -> NDArray[np.float64]:
        """(K,) |ĥ_i|² as last estimated for a transmission, the mean over a slot; NaN where nothing was."""
        return self._read("gains")

    @property
    def relative_gains(self) -> NDArray[np.float64]:
        """(K,) the same over E|ĥ_i|²."""
        return self._read("relative_gains")

    @property
    def fresh_gains(self) -> NDArray[np.float64]:
        """(K,) |ĥ_i|² from pilots of all registered clients at the beginning of this round, to its own receiver."""
        return self._read("fresh_gains")

    @property
    def fresh_relative_gains(self) -> NDArray[np.float64]:
        """(K,) the same over E|ĥ_i|²."""
        return self._read("fresh_relative_gains")

    @property
    def losses(self) -> NDArray[np.float64]:
        """(K,) local training losses as last reported by those who were heard; NaN where nobody was."""
        return self._read("losses")

    @property
    def age(self) -> NDArray[np.float64]:
        """(K,) rounds since a client was last heard; NaN where it never was."""
        return self._read("age")

    def _read(self, name: Known) -> NDArray[np.float64]:
        refusal = f"clients.selection.scheme: reads {name}; allowed: what the facts() of the rule name"
        precondition(name in self.sources, refusal, ScenarioError)
        return self.sources[name]()


@runtime_checkable
class Selection(Protocol):
    """A rule for the selection of the clients of a round."""

    def facts(self) -> SelectionFacts:
        """Numbers that the rule reads; by default none."""
        return SelectionFacts()

    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        """Ascending numbers of at most ``count`` clients, each once; slots and sums have this order."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """Clients selected for a round.

    Attributes:
        clients: (n,) ascending numbers.
        score: (n,) the number by which a rule preferred each, NaN of clients that were not chosen by one; None of
            rules without scores.
    """

    clients: NDArray[np.int64]
    score: NDArray[np.float64] | None = None


@runtime_checkable
class ScoredSelection(Selection, Protocol):
    """A rule that gives each client a score, which the trace holds."""

    @abstractmethod
    def choose(self, context: SelectionContext, count: int) -> Chosen:
        """The clients of a round with their scores."""

    @override
    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        return self.choose(context, count).clients


@dataclass(frozen=True, eq=False)
class RoundFeedback:
    """What the server has learnt of the clients that were heard in a finished round.

    Attributes:
        registered: K.
        round_index: the round.
        clients: (n,) ascending numbers of those who were heard.
        gains: (n,) |ĥ_i|² for the transmission; NaN where nothing was estimated.
        losses: (n,) as reported; NaN where nothing was.
        duration_s: (n,) seconds from the broadcast to the end of the upload, without waiting for others.
    """

    registered: int
    round_index: int
    clients: NDArray[np.int64]
    gains: NDArray[np.float64]
    losses: NDArray[np.float64]
    duration_s: NDArray[np.float64]


@runtime_checkable
class LearningSelection(Selection, Protocol):
    """A rule with averages or utilities of its own, which are part of the checkpoint."""

    def learn(self, feedback: RoundFeedback) -> None:
        """Update by a finished round; ``select`` changes nothing."""
