"""Contradictions of medium access: retransmissions and grants of digital uplinks."""

from wirelessfl.scenario.base import Rule
from wirelessfl.scenario.channel import (
    ImportedFading,
    IndependentFading,
    NakagamiFading,
    RayleighFading,
    RecordedFading,
    RicianFading,
    StaticFading,
)
from wirelessfl.scenario.sections import Sections
from wirelessfl.scenario.timing import Asynchronous
from wirelessfl.scenario.uplink import AdaptiveRate, Digital, DigitalLink, RecordedRate


def mac_rules(scenario: Sections) -> list[Rule]:
    """Rules of retransmissions and grants."""
    uplink, channel = scenario.uplink, scenario.channel
    if not isinstance(uplink, DigitalLink):
        return []
    asynchronous = isinstance(scenario.aggregation, Asynchronous)
    rules: list[Rule] = [
        (
            uplink.grant_delay_s > 0 and asynchronous,
            "uplink.grant_delay_s",
            f"{uplink.grant_delay_s:g} with aggregation.mode: asynchronous, whose uploads begin when training ends",
            "0, or synchronous",
        )
    ]
    if isinstance(uplink, Digital) and uplink.ofdma == "reallocate":
        rules += _reallocation(scenario, uplink)
    if isinstance(uplink.rate, RecordedRate):
        return [*rules, *_recorded(scenario, uplink, uplink.rate)]
    harq, fading, key = uplink.harq, channel.fading, "uplink.harq"
    if harq is None:
        return rules
    drawn = RayleighFading | RicianFading | NakagamiFading
    laws = "rayleigh | rician | nakagami"
    return [
        *rules,
        (
            isinstance(uplink.rate, AdaptiveRate) and uplink.rate.packets is not None,
            key,
            "retransmissions with uplink.rate.packets, which are repeated until they arrive",
            "null, or uplink.rate.packets: null",
        ),
        (
            not isinstance(channel.correlation, IndependentFading),
            key,
            f"retransmissions with channel.correlation.model: {channel.correlation.model}, which changes in time",
            "null, or channel.correlation.model: independent",
        ),
        (
            not isinstance(fading, drawn | StaticFading | RecordedFading),
            key,
            f"retransmissions with {fading.model} fading",
            f"null, or {laws} | static | recorded",
        ),
        (
            harq.channel == "independent" and not isinstance(fading, drawn),
            "uplink.harq.channel",
            f"independent with {fading.model} fading, which has one gain for each client and round",
            f"same, or {laws}",
        ),
    ]


def _reallocation(scenario: Sections, uplink: Digital) -> list[Rule]:
    # The share of an upload changes while it is sent: its rate has to follow, and its channel to stay
    key, rate, channel = "uplink.ofdma", uplink.rate, scenario.channel
    packets = isinstance(rate, AdaptiveRate) and rate.packets is not None
    still = isinstance(channel.correlation, IndependentFading) and not isinstance(channel.fading, ImportedFading)
    return [
        (uplink.access == "tdma", key, "reallocate with access: tdma, where one client has the whole band", "fixed"),
        (
            not isinstance(rate, AdaptiveRate) or packets,
            key,
            f"reallocate with {'uplink.rate.packets' if packets else f'uplink.rate.model: {rate.model}'}",
            "fixed, or uplink.rate.model: adaptive without packets, whose rate follows the share of the band",
        ),
        (uplink.harq is not None, key, "reallocate with uplink.harq", "fixed, or uplink.harq: null"),
        (
            channel.csi.pilot_symbols is not None,
            key,
            f"reallocate with channel.csi.pilot_symbols: {channel.csi.pilot_symbols}, which are sent in a band of "
            "their own width",
            "fixed, or channel.csi.pilot_symbols: null",
        ),
        (
            isinstance(scenario.aggregation, Asynchronous),
            key,
            "reallocate with aggregation.mode: asynchronous, where it is not known who will begin",
            "fixed, or synchronous",
        ),
        (
            not still,
            key,
            f"reallocate with channels that change in time ({channel.fading.model}, {channel.correlation.model})",
            "fixed, or fading that is constant in a round",
        ),
    ]


def _recorded(scenario: Sections, uplink: DigitalLink, rate: RecordedRate) -> list[Rule]:
    # A log takes the place of the channel, so that nothing may be asked of that.
    channel, log = scenario.channel, "uplink.rate.model: recorded, which knows no channel"
    return [
        (rate.file is None, "uplink.rate.file", "null with uplink.rate.model: recorded", "the log's CSV file"),
        (uplink.harq is not None, "uplink.harq", f"retransmissions with {log}", "null: they are in the log's rates"),
        (
            scenario.faults.fade_threshold > 0,
            "faults.fade_threshold",
            f"{scenario.faults.fade_threshold:g} with {log}",
            "0, and the rate 0 in the log where a link is down",
        ),
        (channel.csi.error_std > 0, "channel.csi.error_std", f"{channel.csi.error_std:g} with {log}", "0"),
        (
            channel.csi.pilot_symbols is not None,
            "channel.csi.pilot_symbols",
            f"{channel.csi.pilot_symbols} with {log}",
            "null",
        ),
        (
            not isinstance(channel.correlation, IndependentFading),
            "channel.correlation.model",
            f"{channel.correlation.model} with {log}",
            "independent",
        ),
        (
            isinstance(channel.fading, ImportedFading),
            "channel.fading.model",
            f"{channel.fading.model} with {log}",
            "a log or imported channels",
        ),
    ]
