"""Uplinks: the ways in which updates reach the server, one folder or file each."""

from wirelessfl.simulation.slot_plan import SlotPlan
from wirelessfl.simulation.uplinks.air.uplink import OverTheAir
from wirelessfl.simulation.uplinks.asynchronous.uplink import Asynchronous
from wirelessfl.simulation.uplinks.audit_view import (
    AuditView,
    ChannelNoise,
    NoNoise,
    NotAuditable,
    Reading,
    ServerNoise,
)
from wirelessfl.simulation.uplinks.base import Collected, Uplink
from wirelessfl.simulation.uplinks.digital.uplink import DigitalUplink
from wirelessfl.simulation.uplinks.ideal import IdealUplink
from wirelessfl.simulation.uplinks.slot import Reception, SlotUplink
from wirelessfl.simulation.uplinks.trusted import TrustedServer

__all__ = [
    "Asynchronous",
    "AuditView",
    "ChannelNoise",
    "Collected",
    "DigitalUplink",
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
