"""Uplinks: the ways in which updates reach the server, one folder or file each."""

from wirelessfl.radio.slot_schedule import SlotPlan
from wirelessfl.simulation.uplinks.air.groups import GroupedOverTheAir
from wirelessfl.simulation.uplinks.air.uplink import OverTheAir
from wirelessfl.simulation.uplinks.asynchronous import Asynchronous
from wirelessfl.simulation.uplinks.base import (
    AuditView,
    ChannelNoise,
    Collected,
    NoNoise,
    NotAuditable,
    Reading,
    ServerNoise,
    Uplink,
)
from wirelessfl.simulation.uplinks.capacity import CapacityUplink
from wirelessfl.simulation.uplinks.digital.uplink import DigitalUplink
from wirelessfl.simulation.uplinks.exact import IdealUplink, TrustedServer
from wirelessfl.simulation.uplinks.slot import Reception, SlotUplink

__all__ = [
    "Asynchronous",
    "AuditView",
    "CapacityUplink",
    "ChannelNoise",
    "Collected",
    "DigitalUplink",
    "GroupedOverTheAir",
    "IdealUplink",
    "NoNoise",
    "NotAuditable",
    "OverTheAir",
    "Reading",
    "Reception",
    "ServerNoise",
    "SlotPlan",
    "SlotUplink",
    "TrustedServer",
    "Uplink",
]
