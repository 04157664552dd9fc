"""What a robust rule did with the updates of a round, in its records."""

import math

import numpy as np
from numpy.typing import NDArray

from wirelessfl.simulation.cell import Cell
from wirelessfl.simulation.records import Round
from wirelessfl.trace import SERVER_NODE, EventKind, Status


def note_kept(
    cell: Cell,
    this: Round,
    arrived: NDArray[np.int64],
    kept: NDArray[np.float64],
    finite: NDArray[np.bool_],
    combined: bool,
) -> NDArray[np.int64]:
    """Positions of those whose updates the rule was given; the round is given up where there is no aggregate.

    Updates that are not finite take part in nothing that follows from the aggregate, such as its weight in what an
    algorithm remembers.

    Args:
        cell: the cell.
        this: the round.
        arrived: (n,) positions of those whose updates arrived.
        kept: (n,) part of each that the rule kept.
        finite: (n,) which of them are finite.
        combined: whether there is an aggregate: enough of them arrived, and were finite.
    """
    this.kept = np.full(len(this.clients), math.nan)
    this.kept[arrived] = kept if combined else 0.0
    if combined:
        this.status[arrived[~finite]] = Status.ABORTED
        return arrived[finite]
    this.status[arrived] = Status.ABORTED
    cell.medium.note(EventKind.ABORT, SERVER_NODE)
    return arrived[:0]
