"""From a finished round to a record of the trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy import AirRelease
from wirelessfl.simulation.round import Round
from wirelessfl.trace import EventBatch, RoundRecord


def round_record(this: Round, events: EventBatch | None, weights: NDArray[np.float32] | None) -> RoundRecord:
    """The record of a round.

    Args:
        this: the round.
        events: what happened in it, or None when events are not kept.
        weights: (d,) the global model at its end, where it is to be kept.
    """
    privacy: dict[str, float] = {}
    privacy_slots: dict[str, NDArray[np.float64]] = {}
    for release in this.releases:
        if isinstance(release, AirRelease):
            privacy["published_noise_std"] = release.effective_noise_std
            privacy["accounted_noise_std"] = float(np.min(release.accounted_noise_std))
            bound = privacy_slots["received_bound"] = np.full(len(this.clients), np.nan)
            bound[np.searchsorted(this.clients, release.clients)] = release.received_bound
    return RoundRecord(
        round_index=this.index,
        values=this.values,
        slots={"client_id": this.clients, "status": this.status, **this.slots},
        privacy=privacy,
        privacy_slots=privacy_slots,
        events=events,
        weights=weights,
    )
