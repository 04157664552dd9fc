"""The protocol of a release, and releases without any noise."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.privacy.costs import Caveat, PrivacyFacts, Spending, Statement, no_guarantee


@runtime_checkable
class Release(Protocol):
    """Release of the clients of one round, with its cost.

    A round may be covered by several releases of different routes at once, such as local noise and the noise
    of the channel. Each route is a guarantee of its own, and the smaller one counts.

    Attributes:
        route: Whose noise protects, in words that fit after "the guarantee from".
    """

    route: ClassVar[str]

    @property
    def round_index(self) -> int:
        """Communication round."""

    @property
    def clients(self) -> NDArray[np.int64]:
        """(n,) the clients whose data the release depends on, each once.

        A late upload, or a client that vanished after its masked input, counts: it has transmitted.
        """

    @property
    def relation(self) -> str:
        """Relation: which runs the paper's published figure compares, such as "one sample more or fewer"."""

    def published(self, facts: PrivacyFacts) -> Spending:
        """Spending by the paper's theorem, fed with this round's numbers."""

    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        """Spending that holds for the mechanism that ran, for the statement's unit, adjacency and adversary."""

    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        """Plain sentences that say why the two differ."""


def per_client(name: str, values: ArrayLike, num_clients: int) -> NDArray[np.float64]:
    """``values`` as (n,) non-negative floats.

    Raises:
        ValueError: If they do not broadcast to (n,), or one is negative or NaN.
    """
    array = np.asarray(values, dtype=np.float64)
    precondition(
        array.shape in ((), (num_clients,)),
        f"{name} must have one value a client ({num_clients}), found shape {array.shape}",
    )
    precondition(np.all(array >= 0), f"{name} must not be negative or NaN")
    return np.broadcast_to(array, (num_clients,))


def of_clients(release: Release, kept: NDArray[np.bool_]) -> Release:
    """The record of some of its clients: columns over clients are cut, everything else stays.

    Args:
        release: a record of n clients.
        kept: (n,) of whom.
    """
    if kept.all():
        return release
    assert is_dataclass(release) and not isinstance(release, type), "records are dataclasses"
    columns = {one.name: getattr(release, one.name) for one in fields(release)}
    cut = {name: column[kept] for name, column in columns.items() if np.shape(column) == kept.shape}
    return replace(release, **cut)


def sentences(*remarks: tuple[object, str]) -> Iterator[str]:
    """The sentences whose condition holds, of (condition, sentence) pairs."""
    return (sentence for holds, sentence in remarks if holds)


@dataclass(frozen=True, eq=False)
class Record:
    """Record of the clients of one round, the beginning of every release.

    Attributes:
        round_index: Communication round.
        clients: (n,) the clients whose data the release depends on, each once.
    """

    round_index: int
    clients: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BareRelease(Record):
    """Updates without noise of the channel or the server: only local noise can protect them."""

    route: ClassVar[str] = "an upload without noise"
    relation: ClassVar[str] = "any two runs"

    @property
    def reason(self) -> str:
        """Why nothing is proven."""
        return Caveat.NOTHING_ADDS_NOISE.value

    def published(self, facts: PrivacyFacts) -> Spending:
        """No paper claims privacy for it."""
        return no_guarantee(len(self.clients), self.reason)

    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        """Nothing holds."""
        return no_guarantee(len(self.clients), self.reason)

    def remarks(self, facts: PrivacyFacts, statement: Statement) -> Iterator[str]:
        """None: both columns agree."""
        return sentences()


@dataclass(frozen=True, eq=False)
class LossReport(BareRelease):
    """Local losses that clients report without noise, for the selection of clients.

    Attributes:
        everyone: Whether clients report that are not among ``clients``, who uploaded: any may have been asked.
    """

    route: ClassVar[str] = "a loss without noise"

    everyone: bool = False

    @override
    def accounted(self, facts: PrivacyFacts, statement: Statement) -> Spending:
        return no_guarantee(None if self.everyone else len(self.clients), self.reason)

    @property
    @override
    def reason(self) -> str:
        return "clients report their losses without noise, for the selection of later rounds"


@dataclass(frozen=True, eq=False)
class RobustRelease(BareRelease):
    """Aggregate of a robust rule, to which a trusted server added noise that is made for the sum."""

    route: ClassVar[str] = "the noise that the server adds to the result of a robust rule"

    @property
    @override
    def reason(self) -> str:
        return (
            "one client may move the result of a robust rule by more than its share of the mean, for which the noise "
            "is made"
        )


@dataclass(frozen=True, eq=False)
class UnvouchedRelease(BareRelease):
    """Upload by code from outside that sees private data and leaves no record of what it costs.

    Attributes:
        code: The code, in words that go on with "is code from outside".
    """

    route: ClassVar[str] = "what code from outside adds"

    code: str

    @property
    @override
    def reason(self) -> str:
        return f"{self.code} is code from outside that sees private data and leaves no release of its own"
