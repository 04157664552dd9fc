"""Codecs of digital and secure uploads, one file each, and error feedback for any of them."""

from wirelessfl.learning.compression.codecs import (
    FLOAT_BITS,
    Codec,
    DecidingCodec,
    NoCodec,
    Payload,
    RandomRounding,
    RoundCodec,
)
from wirelessfl.learning.compression.error_feedback import ErrorFeedback
from wirelessfl.learning.compression.qsgd import Qsgd
from wirelessfl.learning.compression.rand_k import RandK
from wirelessfl.learning.compression.sign import Sign
from wirelessfl.learning.compression.sparse import SparseUploads
from wirelessfl.learning.compression.sparse_mean import SparseMean
from wirelessfl.learning.compression.top_k import TopK, largest

__all__ = [
    "FLOAT_BITS",
    "Codec",
    "DecidingCodec",
    "ErrorFeedback",
    "NoCodec",
    "Payload",
    "Qsgd",
    "RandK",
    "RandomRounding",
    "RoundCodec",
    "Sign",
    "SparseMean",
    "SparseUploads",
    "TopK",
    "largest",
]
