"""The event shell: SimPy processes that exchange messages and call the core."""

from __future__ import annotations

from wirelessfl.simulation.clock import seconds
from wirelessfl.simulation.header import client_values, closing_attributes, trace_header
from wirelessfl.simulation.plan import choose_plan, plan_to_look, recorded_plan
from wirelessfl.simulation.recorder import FinishedRound, round_record
from wirelessfl.simulation.rehearsal import Forecast, rehearse
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.run import Simulation, StopRules
from wirelessfl.simulation.state import SimulationState
from wirelessfl.simulation.topology import topology_graph

__all__ = [
    "FinishedRound",
    "Forecast",
    "Round",
    "Simulation",
    "SimulationState",
    "StopRules",
    "choose_plan",
    "client_values",
    "closing_attributes",
    "plan_to_look",
    "recorded_plan",
    "rehearse",
    "round_record",
    "seconds",
    "topology_graph",
    "trace_header",
]
