"""What server and clients of a round know beforehand, and what a round ends with."""

from dataclasses import dataclass
from enum import IntEnum

from wirelessfl.errors import precondition
from wirelessfl.secagg.graph import Neighbourhood
from wirelessfl.secagg.masks import Ring, RingVector
from wirelessfl.secagg.messages import SESSION_BYTES


class Stage(IntEnum):
    """The steps of a client in a round, in order."""

    ADVERTISE_KEYS = 0
    SHARE_KEYS = 1
    MASKED_INPUT = 2
    UNMASK = 3
    FINISHED = 4


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
