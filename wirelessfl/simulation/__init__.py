"""The event simulation: SimPy processes that pass messages and call the core."""

from wirelessfl.simulation.medium import seconds
from wirelessfl.simulation.recorder import FinishedRound, round_record
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.rehearsal import Forecast, rehearse
from wirelessfl.simulation.run import Simulation
from wirelessfl.simulation.state import SimulationState
from wirelessfl.simulation.stop_rules import StopRules

__all__ = [
    "FinishedRound",
    "Forecast",
    "Round",
    "Simulation",
    "SimulationState",
    "StopRules",
    "rehearse",
    "round_record",
    "seconds",
]
