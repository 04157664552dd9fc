"""Objects of a run, made from a scenario: the only package that imports both.

`make_object` makes the member of a family that a scenario names; other choices end in ``assert_never``. Here, and
nowhere earlier, the user's own modules are imported.
"""

from wirelessfl.assembly.first_round import topology_graph, upload_span
from wirelessfl.assembly.header import client_values, closing_attributes, trace_header
from wirelessfl.assembly.inputs import other_data
from wirelessfl.assembly.jammer_power import jammer_shortfall
from wirelessfl.assembly.plan import choose_plan, plan_to_look, recorded_plan
from wirelessfl.assembly.simulation import build_simulation
from wirelessfl.assembly.slot import coherence_s, slot_pieces, training_time

__all__ = [
    "build_simulation",
    "choose_plan",
    "client_values",
    "closing_attributes",
    "coherence_s",
    "jammer_shortfall",
    "other_data",
    "plan_to_look",
    "recorded_plan",
    "slot_pieces",
    "topology_graph",
    "trace_header",
    "training_time",
    "upload_span",
]
