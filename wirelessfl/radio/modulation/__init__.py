"""Modulations over the air: how updates become symbols that add up, and what the server makes of the sum."""

from wirelessfl.radio.modulation.a_dsgd import ADsgd
from wirelessfl.radio.modulation.analog import Analog
from wirelessfl.radio.modulation.base import Modulation
from wirelessfl.radio.modulation.blind import Blind
from wirelessfl.radio.modulation.d_dsgd import DDsgd
from wirelessfl.radio.modulation.fsk_vote import FskVote
from wirelessfl.radio.modulation.obda import Obda
from wirelessfl.radio.modulation.waveform import Heard, Outgoing, Waveform

__all__ = ["ADsgd", "Analog", "Blind", "DDsgd", "FskVote", "Heard", "Modulation", "Obda", "Outgoing", "Waveform"]
