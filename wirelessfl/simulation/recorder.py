"""From a finished round to a record of the trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wirelessfl.simulation.round import Round
from wirelessfl.trace import EventBatch, RoundRecord


def round_record(this: Round, events: EventBatch | None, weights: NDArray[np.float32] | None) -> RoundRecord:
    """The record of a round.

    Args:
        this: the round.
        events: what happened in it, or None when events are not kept.
        weights: (d,) the global model at its end, where it is to be kept.
    """
    slots: dict[str, NDArray[np.generic]] = {"client_id": this.clients, "status": this.status, **this.slots}
    privacy: dict[str, float] = {}
    privacy_slots: dict[str, NDArray[np.float64]] = {}
    if this.release is not None:
        privacy = this.release.round_values()
        for name, column in this.release.client_values().items():
            privacy_slots[name] = np.full(len(this.clients), np.nan)
            privacy_slots[name][np.searchsorted(this.clients, this.release.clients)] = column
    return RoundRecord(
        round_index=this.index,
        values=this.values,
        slots=slots,
        privacy=privacy,
        privacy_slots=privacy_slots,
        events=events,
        weights=weights,
    )
