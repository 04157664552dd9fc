"""Digital uplinks of a scenario: links, secure aggregation, and clients at their own pace."""

import math
from typing import TypeAlias, assert_never

import numpy as np

from wirelessfl.assembly.inputs import found
from wirelessfl.assembly.learning import build_algorithm, build_robust_rule
from wirelessfl.assembly.objects import RunFacts, make_object
from wirelessfl.assembly.slot import largest_doppler_hz
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.aggregation import Mixing, StalenessDiscount
from wirelessfl.learning.compression import Codec, ErrorFeedback, RandK, RandomRounding, SparseUploads
from wirelessfl.radio import (
    AdaptiveRate,
    DigitalLinks,
    FixedRate,
    Harq,
    MessageDivision,
    ModulationAndCoding,
    Network,
    Ofdma,
    RecordedLinks,
    ShortPackets,
    SpatialMultiplexing,
    Tdma,
    UploadLinks,
    db_to_linear,
    dbm_to_watts,
    thermal_noise_density,
)
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.codec import LossyCodec
from wirelessfl.scenario.reception import StreamReceiver
from wirelessfl.scenario.timing import Asynchronous as AsynchronousSection
from wirelessfl.scenario.uplink import AdaptiveRate as AdaptiveRateSection
from wirelessfl.scenario.uplink import Digital, DigitalLink, McsRate, RecordedRate, SecureAggregation
from wirelessfl.scenario.uplink import FixedRate as FixedRateSection
from wirelessfl.secagg import (
    FLOAT_ROOM,
    CompleteGraph,
    FixedPoint,
    HiddenWeights,
    PublicWeights,
    SparseGraph,
    SumEncoding,
)
from wirelessfl.simulation.jobs import JobsInFlight
from wirelessfl.simulation.uplinks import Asynchronous, DigitalUplink, IdealUplink, Uplink
from wirelessfl.simulation.uplinks.secure_aggregation import PairwisePrf, SecretSharing, SecureUplink

DrawnRate: TypeAlias = AdaptiveRateSection | FixedRateSection | McsRate

# Shares of a band that are computed in another order may be less by rounding
_ROUNDED = 1.0 - 1e-9


def build_digital_uplink(scenario: Scenario, uplink: Digital, network: Network, dimension: int) -> DigitalUplink:
    """Uploads that arrive one by one.

    Raises:
        ScenarioError: a codec from outside says no whole number of bits.
    """
    codec: Codec = make_object("uplink.codec.name", uplink.codec)
    if uplink.bits is not None:
        codec = RandomRounding(uplink.bits)
    links = build_digital_links(scenario, uplink, network)
    access = Tdma() if uplink.access == "tdma" else Ofdma(uplink.ofdma == "reallocate")
    facts = build_algorithm(scenario).facts()
    residuals = ErrorFeedback() if isinstance(uplink.codec, LossyCodec) and uplink.codec.error_feedback else None
    rule = build_robust_rule(scenario)
    sharing = None if uplink.receiver is None else build_sharing(uplink.receiver, links)
    uploads = DigitalUplink(links, dimension, access, codec, facts.payload, facts.numbers, residuals, rule, sharing)
    bits = uploads.payload_bits
    if not isinstance(bits, int | np.integer) or bits < 1:
        raise ScenarioError(f"uplink.codec.name: bits of {type(codec).__name__} are {bits!r}; allowed: 1, 2, ...")
    return uploads


def build_sharing(receiver: StreamReceiver, links: UploadLinks) -> SpatialMultiplexing:
    """Groups of clients that share a band."""
    assert isinstance(links, DigitalLinks), "the scenario was checked: a log knows no antennas"
    combiner = make_object("uplink.receiver.combiner", receiver)
    return SpatialMultiplexing(links, combiner, receiver.most_streams, receiver.group_wait_s)


def build_digital_links(scenario: Scenario, uplink: DigitalLink, network: Network) -> UploadLinks:
    """Digital links of the clients: rate, SNR, band and division of messages."""
    watts, pilot_watts, snr, channel = math.nan, math.nan, 0.0, scenario.channel
    bandwidth, harq = scenario.timing.bandwidth_hz, uplink.harq
    if uplink.tx_power_dbm is None:
        assert uplink.snr_db is not None, "the scenario names exactly one of the two"
        snr = db_to_linear(uplink.snr_db)
    else:
        watts = dbm_to_watts(uplink.tx_power_dbm)
        pilot_power = channel.csi.pilot_power_dbm
        pilot_watts = watts if pilot_power is None else dbm_to_watts(pilot_power)
        snr = 2.0 * watts / (thermal_noise_density(channel.noise_figure_db) * bandwidth)
    if isinstance(uplink.rate, RecordedRate):
        log = make_object(
            "uplink.rate.model", found(scenario, "uplink.rate", uplink.rate), context=RunFacts.of(scenario)
        )
        return RecordedLinks(log, watts, snr * bandwidth, uplink.grant_delay_s)
    return DigitalLinks(
        network=network,
        rate=build_rate(uplink.rate, bandwidth / scenario.clients.most),
        bandwidth_hz=bandwidth,
        snr=snr,
        transmit_watts=watts,
        fade_threshold=scenario.faults.fade_threshold,
        coding=build_coding(uplink.rate),
        harq=None if harq is None else Harq(harq.max, harq.feedback_s, harq.channel == "independent"),
        grant_s=uplink.grant_delay_s,
        fills=isinstance(uplink.rate, AdaptiveRateSection) and uplink.rate.power == "water_filling",
        division=MessageDivision(largest_doppler_hz(scenario), channel.max_pieces, channel.csi.refresh),
        pilot_watts=pilot_watts,
    )


def build_coding(rate: DrawnRate) -> ShortPackets | ModulationAndCoding | None:
    """What channels carry, where that is less than Shannon's rate."""
    match rate:
        case AdaptiveRateSection():
            packets = rate.packets
            return None if packets is None else ShortPackets(packets.blocklength, packets.error_probability)
        case McsRate():
            return ModulationAndCoding(db_to_linear(rate.gap_db))
        case FixedRateSection():
            return None
        case _:
            assert_never(rate)


def build_rate(rate: DrawnRate, narrowest_hz: float) -> AdaptiveRate | FixedRate:
    """At what rate clients send, the band of each of whom has at least a width."""
    match rate:
        case AdaptiveRateSection():
            return AdaptiveRate(rate.min_rate_bps, rate.outage)
        case FixedRateSection():
            return FixedRate(rate.rate_bps)
        case McsRate():  # who sends at all sends at the rate of a scheme
            return AdaptiveRate(ModulationAndCoding.least_bps(narrowest_hz) * _ROUNDED, rate.outage)
        case _:
            assert_never(rate)


def build_secure_uplink(
    scenario: Scenario, uplink: SecureAggregation, network: Network, dimension: int
) -> SecureUplink:
    """The uplink of one of the three protocols.

    Raises:
        ScenarioError: a sum could overflow.
    """
    links, timeout, dropout = build_digital_links(scenario, uplink, network), uplink.stage_timeout_s, uplink.dropout
    codec: Codec = make_object("uplink.codec.name", uplink.codec)
    vectors = build_algorithm(scenario).facts().payload
    sparse = SparseUploads(codec, dimension // vectors, vectors) if isinstance(codec, RandK) else None
    encoding = build_encoding(scenario, uplink, network, dimension if sparse is None else sparse.sent)
    match uplink.protocol:
        case "pairwise_prf":
            return PairwisePrf(
                links=links,
                encoding=encoding,
                sparse=sparse,
                stage_timeout_s=timeout,
                vanish_probability=(dropout.masked_input,) * (1 + uplink.retries),
                seed=scenario.seed,
                registered=network.registry.count,
            )
        case "secagg" | "secagg_plus":
            complete = uplink.protocol == "secagg"
            return SecretSharing(
                links=links,
                encoding=encoding,
                sparse=sparse,
                stage_timeout_s=timeout,
                vanish_probability=(dropout.advertise_keys, dropout.share_keys, dropout.masked_input, dropout.unmask),
                graph=CompleteGraph(uplink.threshold)
                if complete
                else SparseGraph(uplink.neighbours, uplink.threshold, uplink.max_colluding, uplink.max_dropouts),
            )
        case _:
            assert_never(uplink.protocol)


def build_encoding(scenario: Scenario, uplink: SecureAggregation, network: Network, dimension: int) -> SumEncoding:
    """The finest fixed-point encoding whose sum over the largest cohort cannot overflow.

    Hidden sample numbers are bounded by something that the server may know: the largest of them is not.

    Raises:
        ScenarioError: the sum of updates, or of the sample numbers, could overflow, or a client has too many samples.
    """
    clients, registry = scenario.clients.most, network.registry
    largest = int(registry.samples.max())
    if uplink.max_samples is not None and largest > uplink.max_samples:
        raise ScenarioError(
            f"uplink.max_samples: found {uplink.max_samples}, and a client with {largest} samples; "
            f"allowed: at least {largest}, or null"
        )
    try:
        fixed_point = FixedPoint.finest(uplink.clip * FLOAT_ROOM, uplink.bits, clients)
        if uplink.hide_weights:
            return HiddenWeights(fixed_point, dimension, uplink.max_samples or registry.total_samples)
        return PublicWeights(fixed_point, dimension, largest)
    except ValueError as error:
        raise ScenarioError(f"uplink.bits: {error}") from error


def build_asynchronous(aggregation: AsynchronousSection, uplink: Uplink, jobs: JobsInFlight) -> Asynchronous:
    """The uplink of clients at their own pace, over the uplink of each."""
    assert isinstance(uplink, DigitalUplink | IdealUplink), "the scenario was checked"
    staleness = aggregation.staleness
    discount: StalenessDiscount = make_object("aggregation.staleness.name", staleness)
    return Asynchronous(
        uploads=uplink,
        dimension=uplink.dimension,
        buffer=aggregation.buffer,
        mixing=Mixing(aggregation.mixing, discount),
        mixes=aggregation.mixes,
        jobs=jobs,
    )
