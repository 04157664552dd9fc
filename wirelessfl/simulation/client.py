"""A client's part in one round. The process exists only while the client takes part."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.messages import Crashed, Ready, SlotGrant
from wirelessfl.trace import EventKind


def client(
    medium: Medium,
    position: int,
    node: int,
    compute_ticks: int,
    crash_ticks: int | None,
    model_arrives: simpy.Event,
    slot_opens: simpy.Event,
) -> Generator[simpy.Event, Any, None]:
    """Wait for the model, train, report, transmit.

    Training takes simulated time only: its numbers are computed with those of the whole cohort once the slot
    shows who is really heard. The server interrupts clients that are still at work when it closes the window.

    Args:
        medium: carries what the client says.
        position: place among the clients selected in this round.
        node: the client's number.
        compute_ticks: how long local training takes.
        crash_ticks: when training crashes, counted from its start, or None.
        model_arrives: fires when the broadcast is over.
        slot_opens: fires with the server's ``SlotGrant``.
    """
    yield model_arrives
    try:
        if crash_ticks is not None:
            yield medium.env.timeout(crash_ticks)
            medium.note(EventKind.CRASH, node)
            medium.send(Crashed(position))
            return
        yield medium.env.timeout(compute_ticks)
    except simpy.Interrupt:
        medium.note(EventKind.LATE, node)
        return
    medium.note(EventKind.COMPUTE_END, node)
    medium.send(Ready(position))
    grant: SlotGrant = yield slot_opens
    medium.note(EventKind.DEEP_FADE if grant.silent[position] else EventKind.TRANSMIT, node)
