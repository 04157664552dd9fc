"""A client of the digital uplink: local training, then one upload."""

import math
from collections.abc import Generator
from typing import Any

import simpy

from wirelessfl.simulation.air_time import AirTime
from wirelessfl.simulation.client import ClientTraining, train
from wirelessfl.simulation.clock import ticks
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.messages import END_EVENT, Report
from wirelessfl.simulation.uplinks.digital.round_links import RoundLinks, outcome_of
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
    outcome = outcome_of(link)
    medium.note(END_EVENT[outcome], training.node, bits if link.delivers else math.nan)
    medium.send(Report(training.position, outcome))
