"""Receivers over the air: antennas, and how they are combined."""

from wirelessfl.radio.reception.base import Receiver
from wirelessfl.radio.reception.sum import SumReceiver

__all__ = ["Receiver", "SumReceiver"]
