"""Receivers over the air: antennas, and how they are combined."""

from wirelessfl.radio.reception.base import AdditiveNoise, Receiver
from wirelessfl.radio.reception.max_min import MaxMinBeam, max_min_beam
from wirelessfl.radio.reception.random_beam import RandomBeam
from wirelessfl.radio.reception.sum import SumReceiver

__all__ = ["AdditiveNoise", "MaxMinBeam", "RandomBeam", "Receiver", "SumReceiver", "max_min_beam"]
