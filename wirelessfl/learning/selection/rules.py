"""Rules for the selection of clients: all, some at random or in turn, or each with one probability; what they read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import ScenarioError, precondition
from wirelessfl.streams import Streams

Known = Literal["samples", "gains", "losses", "age"]
"""Numbers of the registered clients that a rule may read."""


@dataclass(frozen=True)
class SelectionFacts:
    """Numbers that a rule reads; nothing else is kept for it, or handed to it.

    Attributes:
        reads: Names of attributes of ``SelectionContext``. Sample numbers, channel gains and who was heard when are
            public. Losses are private data that clients report without noise: with them no ε is finite.

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
    """Knowledge of the server when the clients of a round are selected.

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
        """(K,) |ĥ_i|² as last estimated, the mean over a slot; NaN where nothing was."""
        return self._read("gains")

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


@dataclass(frozen=True)
class SelectAll(Selection):
    """Every registered client, every round."""

    @override
    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        return np.arange(context.registered, dtype=np.int64)


@dataclass(frozen=True)
class SelectUniform(Selection):
    """``count`` clients, uniformly without replacement; the cost follows ``count``, not the registered."""

    @override
    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        generator = context.streams.generator("selection", context.round_index)
        chosen = generator.choice(context.registered, size=count, replace=False, shuffle=False)
        return np.sort(chosen).astype(np.int64)


@dataclass(frozen=True)
class SelectRoundRobin(Selection):
    """``count`` clients in turn, in cyclic order of their numbers.

    In T rounds each of K clients takes part ⌊T·count/K⌋ or ⌈T·count/K⌉ times. Who does so when is known to everybody,
    so that no privacy is gained by it.
    """

    @override
    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        first = (context.round_index - 1) * count % context.registered
        return np.sort((first + np.arange(count, dtype=np.int64)) % context.registered)


@dataclass(frozen=True)
class SelectPoisson(Selection):
    """Each registered client with probability ``rate``, independently."""

    rate: float

    @override
    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        # A binomial number of clients, then that many without replacement: the same law, at the cost of the few.
        generator = context.streams.generator("selection", context.round_index)
        drawn = int(generator.binomial(context.registered, self.rate))
        chosen = generator.choice(context.registered, size=drawn, replace=False, shuffle=False)
        return np.sort(chosen).astype(np.int64)
