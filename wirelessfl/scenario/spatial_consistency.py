"""Contradictions of digital uploads that share a band: what an array of antennas does not go together with."""

from wirelessfl.scenario.array_consistency import ring_memory
from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.channel import Csi, IndependentFading
from wirelessfl.scenario.reception import LinearMmseCombiner, NoCorrelation, StreamReceiver
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.timing import Asynchronous
from wirelessfl.scenario.uplink import (
    AdaptiveRate,
    Digital,
    DigitalLink,
    McsRate,
    Rate,
    RecordedRate,
    SecureAggregation,
)

LEAST_OUTAGE = 1e-4
"""Of a margin behind an array, which takes more draws than its inverse."""


def spatial_rules(scenario: Sections) -> list[Rule]:
    """Rules of an array behind digital uplinks."""
    uplink = scenario.uplink
    if not isinstance(uplink, DigitalLink) or uplink.receiver is None:
        return []
    receiver, clients = uplink.receiver, scenario.clients.most
    secure: Rule = (
        isinstance(uplink, SecureAggregation),
        "uplink.receiver",
        f"{receiver.combiner} with uplink.kind: secure_aggregation, whose messages differ in length and instant from "
        "client to client, so that no group shares a band from beginning to end",
        "null, or uplink.kind: digital",
    )
    rules = [secure, *ring_memory(receiver, min(receiver.most_streams, clients))]
    return [*rules, *_uploads(scenario, uplink, receiver)] if isinstance(uplink, Digital) else rules


def _uploads(scenario: Sections, uplink: Digital, receiver: StreamReceiver) -> list[Rule]:
    channel, beside = scenario.channel, "with uplink.receiver"
    return [
        (
            uplink.harq is not None,
            "uplink.harq",
            f"retransmissions {beside}: they would change the interference of the others of a group",
            "null, or uplink.receiver: null",
        ),
        (
            isinstance(scenario.aggregation, Asynchronous),
            "uplink.receiver",
            f"{receiver.combiner} with aggregation.mode: asynchronous, whose uploads begin when training ends",
            "null, or synchronous",
        ),
        (
            not isinstance(channel.correlation, IndependentFading),
            "channel.correlation.model",
            f"{channel.correlation.model} {beside}, whose combiner is that of the beginning of a group",
            "independent, or uplink.receiver: null",
        ),
        (
            uplink.ofdma == "reallocate",
            "uplink.ofdma",
            f"reallocate {beside}, whose groups keep their part of the band",
            "fixed, or uplink.receiver: null",
        ),
        (
            channel.csi.refresh == "piece",
            "channel.csi.refresh",
            f"piece {beside}, whose combiner is that of the beginning of a group",
            "slot",
        ),
        *_rates(uplink.rate, channel.csi, receiver, beside),
    ]


def _rates(rate: Rate, csi: Csi, receiver: StreamReceiver, beside: str) -> list[Rule]:
    fills = isinstance(rate, AdaptiveRate) and rate.power == "water_filling"
    outage = rate.outage if isinstance(rate, AdaptiveRate | McsRate) else None
    margin = outage is not None and csi.is_imperfect
    imperfect = f"error_std: {csi.error_std:g}" if csi.pilot_symbols is None else f"pilot_symbols: {csi.pilot_symbols}"
    return [
        (
            isinstance(rate, RecordedRate),
            "uplink.rate.model",
            f"recorded {beside}: a log knows no channels to an array",
            "adaptive | fixed | mcs, or uplink.receiver: null",
        ),
        (
            margin and not isinstance(receiver.correlation, NoCorrelation),
            "uplink.rate.outage",
            f"{outage} with correlated antennas and channel.csi.{imperfect}: what estimates say "
            "of correlated channels is not known",
            "null: the estimates are taken as exact; or uplink.receiver.correlation.model: none",
        ),
        (
            margin and (outage or 0.0) < LEAST_OUTAGE,
            "uplink.rate.outage",
            f"{outage} {beside} and channel.csi.{imperfect}, where a margin is drawn",
            f"at least {LEAST_OUTAGE:g}, or null",
        ),
        (
            fills and isinstance(receiver, LinearMmseCombiner),
            "uplink.rate.power",
            "water_filling with combiner: mmse, behind which a client's power disturbs the others",
            "equal, or combiner: zf",
        ),
    ]
