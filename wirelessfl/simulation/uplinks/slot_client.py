"""Clients that share one slot: one process for the training of all, one for their transmission."""

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.simulation.client import TrainingTimes
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.messages import Reports, SlotGrant
from wirelessfl.trace import EventKind


def slot_training(
    medium: Medium, times: TrainingTimes, enough: int, model_arrives: simpy.Event
) -> Generator[simpy.Event, Any, NDArray[np.int64]]:
    """Reception of the model, training, and a report.

    One process plays all clients of a slot, as nothing passes between them. It sleeps until enough have come to the
    end, which nobody asks before, and then logs what each has done at the time at which it did it.

    Args:
        medium: carries what the clients say.
        times: durations of the clients' training.
        enough: ticks for which they train; who takes longer is late.
        model_arrives: fires when the broadcast is over.

    Returns:
        Which of the n clients are ready, in the order in which they became so.
    """
    yield model_arrives
    begin = medium.now
    yield medium.env.timeout(enough)
    over = times.over(enough)
    crashes, ends = times.crashes[over], times.ends[over].tolist()
    kinds = np.where(crashes, EventKind.CRASH, EventKind.COMPUTE_END).astype(np.uint8)
    medium.note_past([begin + end for end in ends], kinds, times.nodes[over])
    medium.note(EventKind.LATE, times.nodes[times.ends > enough])
    times.worked[times.positions] = np.minimum(times.ends, enough)
    ready = over[~crashes]
    medium.send(Reports(ready=times.positions[ready], crashed=times.positions[over[crashes]]))
    return ready


def slot_transmission(
    medium: Medium, times: TrainingTimes, training: simpy.Process, slot_opens: simpy.Event
) -> Generator[simpy.Event, Any, None]:
    """Transmission of the clients that are ready, in the slot that the server opens for all.

    Args:
        medium: carries what the clients say.
        times: durations of the clients' training.
        training: ends with who is ready.
        slot_opens: fires with the server's ``SlotGrant``.
    """
    ready: NDArray[np.int64] = yield training
    grant: SlotGrant = yield slot_opens
    silent = grant.silent[times.positions[ready]]
    medium.note_each(np.where(silent, EventKind.DEEP_FADE, EventKind.TRANSMIT).astype(np.uint8), times.nodes[ready])
