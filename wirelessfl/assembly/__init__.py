"""From a scenario to runtime objects: the only room that knows both.

Each family has one ``build_<family>``: a ``match`` over its variants that ends in ``assert_never``, so that mypy
reports a variant that was forgotten. Here, and nowhere earlier, the user's own modules are imported.
"""

from __future__ import annotations

from wirelessfl.assembly.deadline import training_time
from wirelessfl.assembly.shortfall import jammer_shortfall
from wirelessfl.assembly.simulation import build_simulation
from wirelessfl.assembly.slot import coherence_s, slot_pieces
from wirelessfl.assembly.upload_span import upload_span

__all__ = ["build_simulation", "coherence_s", "jammer_shortfall", "slot_pieces", "training_time", "upload_span"]
