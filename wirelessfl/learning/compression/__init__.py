"""Codecs of digital uploads."""

from wirelessfl.learning.compression.codecs import Codec, NoCodec, Payload, RandomRounding

__all__ = ["Codec", "NoCodec", "Payload", "RandomRounding"]
