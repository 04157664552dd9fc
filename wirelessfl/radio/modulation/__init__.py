"""Modulations over the air: how updates become symbols that add up, and what the server makes of the sum."""

from wirelessfl.radio.modulation.analog import Analog
from wirelessfl.radio.modulation.base import Modulation

__all__ = ["Analog", "Modulation"]
