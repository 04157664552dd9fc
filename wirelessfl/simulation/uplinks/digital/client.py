"""A client of the digital uplink: local training, then one upload."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.client import ClientTraining, train
from wirelessfl.simulation.clock import ticks
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.messages import Faded, Outage, Ready
from wirelessfl.simulation.uplinks.digital.round_links import RoundLinks
from wirelessfl.trace import EventKind


def digital_client(
    medium: Medium, training: ClientTraining, links: RoundLinks, bits: int, air_time: AirTime, channel: simpy.Resource
) -> Generator[simpy.Event, Any, None]:
    """Train, and upload as soon as the channel is free.

    Args:
        medium: carries what the client says.
        training: the client's round.
        links: what the clients' channels carry.
        bits: size of the upload.
        air_time: notes when the client sent.
        channel: free for as many clients as may send at the same time, taken in the order in which they are ready.
    """
    try:
        if not (yield from train(medium, training)):
            return
        link = links.foreseen(training.position)
        if link is None or link.sends:
            with channel.request() as turn:
                yield turn
                link = links.at(training.position, medium.now)
                if link.sends:
                    medium.note(EventKind.TRANSMIT, training.node, bits)
                    yield from air_time.send(medium, training.position, ticks(link.duration(bits)), active=link.active)
    except simpy.Interrupt:
        medium.note(EventKind.LATE, training.node)
        return
    if link.delivers:
        medium.note(EventKind.ARRIVE, training.node, bits)
        medium.send(Ready(training.position))
    elif link.sends:
        medium.note(EventKind.OUTAGE, training.node)
        medium.send(Outage(training.position))
    else:
        medium.note(EventKind.DEEP_FADE, training.node)
        medium.send(Faded(training.position))
