"""The protocol of a rule for the selection of clients: what it may read, what it gives, and what it learns."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.errors import ScenarioError, precondition
from wirelessfl.learning.selection.sparse import SparseVector
from wirelessfl.streams import NodeStream, Streams

Known = Literal["samples", "gains", "relative_gains", "fresh_gains", "fresh_relative_gains", "losses", "age", "speed"]
"""Numbers of the registered clients that a rule may read."""

Numbers = NDArray[np.float64] | SparseVector
"""(K,) numbers of the registered clients."""

LossStatistic = Literal["mean", "batch_mean", "rms", "training_mean"]
"""Number that a client makes of the losses of its samples."""

FRESH: frozenset[Known] = frozenset({"fresh_gains", "fresh_relative_gains"})
"""Those for which all registered clients send pilots at the beginning of every round."""


@dataclass(frozen=True)
class LossReports:
    """Losses that clients report for the selection.

    Attributes:
        when: "asked" by a query of candidates before the selection, for the loss of the current global model; "after"
            beside each upload.
        statistic: "mean" of the samples' losses, "batch_mean" of a mini-batch, "rms" √(mean ℓ²) at the model that the
            client received, or "training_mean" of the local training.
        noise_std: standard deviation of the Gaussian noise of each report; None for none.
        clip: bound on the loss of each sample (on the whole of a "training_mean"), where there is noise.

    Raises:
        ValueError: a number is out of range.
    """

    when: Literal["asked", "after"]
    statistic: LossStatistic
    noise_std: float | None = None
    clip: float = 5.0

    def __post_init__(self) -> None:
        precondition(self.noise_std is None or 0 < self.noise_std < np.inf, "noise_std must be positive or None")
        precondition(0 < self.clip < np.inf, "clip must be positive and finite")

    @property
    def bound(self) -> float | None:
        """The clip of a sample's loss; None without noise."""
        return None if self.noise_std is None else self.clip

    def noised(self, losses: NDArray[np.float64], stream: NodeStream) -> NDArray[np.float64]:
        """(n,) reports of losses (n,): clipped, with the noise of each client; without noise the losses themselves.

        A loss that is not a number is reported as the clip.
        """
        if self.noise_std is None:
            return losses
        bounded = np.clip(np.nan_to_num(losses, nan=self.clip), 0.0, self.clip)
        return np.asarray(bounded + self.noise_std * stream.normal()[:, 0])


@dataclass(frozen=True)
class SelectionFacts:
    """Numbers that a rule reads; nothing else is kept for it, or handed to it.

    Attributes:
        reads: Names of attributes of ``SelectionContext``. Sample numbers, channel gains and who was heard when are
            public. Losses are private data; what clients report without noise leaves no finite ε.
        reports: which losses clients report, of a rule that reads them.

    Raises:
        ValueError: if a name is unknown.
    """

    reads: frozenset[Known] = frozenset()
    reports: LossReports = LossReports("after", "training_mean")

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
        sources: Of each name that the rule reads, the numbers (K,), computed when they are asked for; sparse where few
            clients have one.
        asked: (a,) ascending candidates that answered a query; None where there was none.
    """

    registered: int
    round_index: int
    streams: Streams
    sources: Mapping[Known, Callable[[], Numbers]] = field(default_factory=dict)
    asked: NDArray[np.int64] | None = None

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
        """(K,) losses as last reported, in answer to a query or beside an upload; NaN where nothing was."""
        return self._read("losses")

    @property
    def age(self) -> NDArray[np.float64]:
        """(K,) rounds since a client was last heard; NaN where it never was."""
        return self._read("age")

    @property
    def speed(self) -> NDArray[np.float64]:
        """(K,) local trainings a second by samples and nominal processor speed, without random delays."""
        return self._read("speed")

    def sparse(self, name: Known) -> SparseVector:
        """(K,) the numbers of a name, at the cost of the clients of whom one is known; NaN of the others."""
        found = self._source(name)
        return found if isinstance(found, SparseVector) else SparseVector.known(found)

    def _read(self, name: Known) -> NDArray[np.float64]:
        found = self._source(name)
        return found.dense() if isinstance(found, SparseVector) else found

    def _source(self, name: Known) -> Numbers:
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


@runtime_checkable
class AskingSelection(ScoredSelection, Protocol):
    """A rule that draws candidates first, who may be asked for their losses."""

    @abstractmethod
    def candidates_of(self, context: SelectionContext) -> NDArray[np.int64]:
        """Ascending numbers of the candidates of a round; who they are depends on public numbers alone."""


@dataclass(frozen=True, eq=False)
class RoundFeedback:
    """What the server has learnt of the clients that were heard in a finished round.

    Attributes:
        registered: K.
        round_index: the round.
        clients: (n,) ascending numbers of those who were heard.
        gains: (n,) |ĥ_i|² for the transmission; NaN where nothing was estimated.
        losses: (n,) as reported; NaN where nothing was.
        samples: (n,) n_i.
        duration_s: (n,) seconds from the broadcast to the end of the upload, without waiting for others.
    """

    registered: int
    round_index: int
    clients: NDArray[np.int64]
    gains: NDArray[np.float64]
    losses: NDArray[np.float64]
    samples: NDArray[np.int64]
    duration_s: NDArray[np.float64]


@runtime_checkable
class LearningSelection(Selection, Protocol):
    """A rule with averages or utilities of its own, which are part of the checkpoint."""

    def learn(self, feedback: RoundFeedback) -> None:
        """Update by a finished round; ``select`` changes nothing."""
