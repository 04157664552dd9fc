"""Codecs of digital uploads."""

from wirelessfl.learning.compression.base import Codec, Payload
from wirelessfl.learning.compression.codecs import NoCodec, RandomRounding

__all__ = ["Codec", "NoCodec", "Payload", "RandomRounding"]
