"""Receivers: antennas, and how they are combined, over the air and for streams in one band."""

from wirelessfl.radio.reception.base import AdditiveNoise, Receiver
from wirelessfl.radio.reception.linear import LinearMmse, StreamCombiner, ZeroForcing, stream_sinr
from wirelessfl.radio.reception.max_min import MaxMinBeam, max_min_beam
from wirelessfl.radio.reception.random_beam import RandomBeam
from wirelessfl.radio.reception.sum import SumReceiver

__all__ = [
    "AdditiveNoise",
    "LinearMmse",
    "MaxMinBeam",
    "RandomBeam",
    "Receiver",
    "StreamCombiner",
    "SumReceiver",
    "ZeroForcing",
    "max_min_beam",
    "stream_sinr",
]
