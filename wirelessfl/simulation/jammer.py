"""The cooperative jammer's process: it waits for the server's slot and jams in it."""

from collections.abc import Generator
from typing import Any

import simpy

from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.messages import SlotGrant
from wirelessfl.trace import EventKind


def jammer(medium: Medium, node: int, slot_opens: simpy.Event) -> Generator[simpy.Event, Any, None]:
    """One round of the jammer, a node of its own or a client whose turn it is.

    Args:
        medium: the air.
        node: the client's number, or ``JAMMER_NODE``.
        slot_opens: fires with the server's ``SlotGrant``, which carries the gain that was agreed.
    """
    grant: SlotGrant = yield slot_opens
    if grant.jammer_gain > 0:
        medium.note(EventKind.JAM, node)
