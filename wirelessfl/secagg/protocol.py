"""Public facts, stages and outcomes of a round, and the refusals of its messages, one class of ValueError a reason.

MessageRefused                 a message that does not fit the round; nothing of it is used
├── ForeignMessage             another session, an unknown sender, another receiver
├── AlteredMessage             its authentication tag, or that of a share inside it, does not verify
├── ReplayedMessage            the same step was already taken with this sender
├── LateMessage                the stage it belongs to is closed
├── MalformedMessage           shapes, ranges or names inside it do not fit the round
└── ForbiddenRequest           answering would give the server both secrets of one client
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from wirelessfl.errors import precondition
from wirelessfl.secagg.encoding import Ring, RingVector

RandomBytes = Callable[[int], bytes]
SESSION_BYTES = 16


class MessageRefused(ValueError):
    """A message that the receiver does not act on; its state is as if the message had never come."""


class ForeignMessage(MessageRefused):
    """A message of another session, from an unknown sender or for another receiver."""


class AlteredMessage(MessageRefused):
    """A message whose authentication tag does not verify."""


class ReplayedMessage(MessageRefused):
    """A message for a step that was already taken."""


class LateMessage(MessageRefused):
    """A message for a stage that is closed, or from a client that dropped out of the round."""


class MalformedMessage(MessageRefused):
    """An authentic message whose content does not fit the round."""


class ForbiddenRequest(MessageRefused):
    """A request for both the mask key and the self-mask seed of one client."""


class Stage(IntEnum):
    """The steps of a client in a round, in order."""

    ADVERTISE_KEYS = 0
    SHARE_KEYS = 1
    MASKED_INPUT = 2
    UNMASK = 3
    FINISHED = 4


@dataclass(frozen=True)
class Neighbourhood:
    """Degree k of the graph and the number t of the k + 1 share holders (the client is one) that recover a secret."""

    num_neighbours: int
    threshold: int

    def __post_init__(self) -> None:
        holders = self.num_neighbours + 1
        precondition(
            2 <= self.threshold <= holders,
            f"the threshold must lie between 2 and the {holders} share holders, not {self.threshold}",
        )
        precondition(
            2 * self.threshold > holders,
            f"a threshold of {self.threshold} among {holders} holders lets the server learn both secrets of a "
            f"client by asking one half of the holders for each: at least {majority(self.num_neighbours)} is needed",
        )


def majority(num_neighbours: int) -> int:
    """The smallest threshold that no two disjoint groups of the k + 1 share holders both reach."""
    return (num_neighbours + 1) // 2 + 1


@dataclass(frozen=True)
class RoundParameters:
    """The public facts of one round.

    Attributes:
        session: 16 bytes that no other round of these clients has, under any protocol.
        dimension: length of the summed vectors.
        ring: ring of the sum.
        neighbourhood: degree of the graph and threshold. `secagg`: `complete_neighbourhood`; `secagg_plus`:
            `choose_neighbourhood`, or any degree.
    """

    session: bytes
    dimension: int
    ring: Ring
    neighbourhood: Neighbourhood

    def __post_init__(self) -> None:
        precondition(
            len(self.session) == SESSION_BYTES, f"a session has {SESSION_BYTES} bytes, not {len(self.session)}"
        )
        precondition(self.dimension >= 1, f"the summed vectors need at least one coordinate, not {self.dimension}")


@dataclass(frozen=True, eq=False)
class RoundResult:
    """A round that succeeded: the sum (d,) of the encoded inputs of ``contributors``, modulo 2**bits."""

    total: RingVector
    contributors: tuple[int, ...]


@dataclass(frozen=True)
class RoundAborted:
    """A round that ended without a sum: nothing but masked vectors was seen."""

    stage: Stage
    reason: str
