"""Secure aggregation: the server learns the sum of the clients' vectors and nothing else.

Three protocols over digital links, with real cryptography and no clock: `pairwise_prf` (`PrfClient`, `PrfRound`),
`secagg` and `secagg_plus` (`SecAggClient`, `SecAggServer`, on the complete graph or on a sparse one). The server is
taken to be honest but curious: it follows the protocol, relays public keys unchanged, and reads all it can.
"""

from wirelessfl.secagg.client import SecAggClient
from wirelessfl.secagg.encoding import (
    FLOAT_ROOM,
    FixedPoint,
    HiddenWeights,
    PublicWeights,
    SumEncoding,
    bits_for,
)
from wirelessfl.secagg.field import PrimeField, RandomBytes
from wirelessfl.secagg.graph import (
    CompleteGraph,
    Neighbourhood,
    SharingGraph,
    SparseGraph,
    choose_neighbourhood,
    complete_neighbourhood,
    correctness_failure,
    harary_graph,
    majority,
    security_failure,
)
from wirelessfl.secagg.keys import KeyPair, SeededBytes, agree, link_key
from wirelessfl.secagg.masks import MaskStream, Ring, RingVector
from wirelessfl.secagg.messages import (
    HEADER_BITS,
    SERVER,
    EncryptedShares,
    KeyAdvertisement,
    MaskedInput,
    Message,
    NeighbourKeys,
    RoundStart,
    ShareDelivery,
    UnmaskRequest,
    UnmaskShares,
)
from wirelessfl.secagg.pairwise_prf import RUN_BYTES, PairwiseSeeds, PrfClient, PrfEnrolment, PrfParameters, PrfRound
from wirelessfl.secagg.parameters import RoundAborted, RoundParameters, RoundResult, Stage
from wirelessfl.secagg.refusals import (
    AlteredMessage,
    ForbiddenRequest,
    ForeignMessage,
    LateMessage,
    MalformedMessage,
    MessageRefused,
    ReplayedMessage,
)
from wirelessfl.secagg.rehearsal import answer, rehearse
from wirelessfl.secagg.server import SecAggServer
from wirelessfl.secagg.sharing import reconstruct, split

__all__ = [
    "FLOAT_ROOM",
    "HEADER_BITS",
    "RUN_BYTES",
    "SERVER",
    "AlteredMessage",
    "CompleteGraph",
    "EncryptedShares",
    "FixedPoint",
    "ForbiddenRequest",
    "ForeignMessage",
    "HiddenWeights",
    "KeyAdvertisement",
    "KeyPair",
    "LateMessage",
    "MalformedMessage",
    "MaskStream",
    "MaskedInput",
    "Message",
    "MessageRefused",
    "NeighbourKeys",
    "Neighbourhood",
    "PairwiseSeeds",
    "PrfClient",
    "PrfEnrolment",
    "PrfParameters",
    "PrfRound",
    "PrimeField",
    "PublicWeights",
    "RandomBytes",
    "ReplayedMessage",
    "Ring",
    "RingVector",
    "RoundAborted",
    "RoundParameters",
    "RoundResult",
    "RoundStart",
    "SecAggClient",
    "SecAggServer",
    "SeededBytes",
    "ShareDelivery",
    "SharingGraph",
    "SparseGraph",
    "Stage",
    "SumEncoding",
    "UnmaskRequest",
    "UnmaskShares",
    "agree",
    "answer",
    "bits_for",
    "choose_neighbourhood",
    "complete_neighbourhood",
    "correctness_failure",
    "harary_graph",
    "link_key",
    "majority",
    "reconstruct",
    "rehearse",
    "security_failure",
    "split",
]
