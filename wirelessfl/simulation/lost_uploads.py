"""What clients and edges keep where a server loses the uploads of a round: the same as before the round."""

from collections.abc import Callable, Mapping
from copy import deepcopy

from wirelessfl.memory import Memory
from wirelessfl.simulation.state import SimulationState

RESIDUALS = "error_feedback"
"""Name of the memory of what codecs have left over of uploads."""

EDGES = "edges"
"""Name of the memory of the models of edges."""


def keeping(state: SimulationState, memories: Mapping[str, Memory]) -> Callable[[], None]:
    """The function that sets back what clients and edges keep of uploads to what it is now.

    Of an upload that is lost a client keeps neither control variates nor the like, and all that was in it is still to
    be sent; no edge steps by it, and an averaging of that round waits for the next one. Clipping norms that follow
    the training are those of before it, as of clients whose upload an outage loses.
    """
    rows, clipping = deepcopy(state.client_rows), deepcopy(state.clipping)
    kept = {name: (memories[name], memories[name].state()) for name in (RESIDUALS, EDGES) if name in memories}

    def set_back() -> None:
        state.client_rows, state.clipping = rows, clipping
        for memory, before in kept.values():
            memory.restore(before)

    return set_back
