"""What clients keep where a server loses the uploads of a round: the same as before the round."""

from collections.abc import Callable, Mapping
from copy import deepcopy

from wirelessfl.memory import Memory
from wirelessfl.simulation.state import SimulationState

RESIDUALS = "error_feedback"
"""Name of the memory of what codecs have left over of uploads."""


def keeping(state: SimulationState, memories: Mapping[str, Memory]) -> Callable[[], None]:
    """The function that sets back what clients keep of their uploads to what it is now.

    Of an upload that is lost a client keeps neither control variates nor the like, and all that was in it is still to
    be sent.
    """
    rows, residuals = deepcopy(state.client_rows), memories.get(RESIDUALS)
    left_over = {} if residuals is None else residuals.state()

    def set_back() -> None:
        state.client_rows = rows
        if residuals is not None:
            residuals.restore(left_over)

    return set_back
