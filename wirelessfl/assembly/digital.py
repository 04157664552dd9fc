"""Digital links and uplinks of a scenario."""

import math
from typing import assert_never

import numpy as np

from wirelessfl.assembly.learning import build_algorithm
from wirelessfl.assembly.objects import make_object
from wirelessfl.assembly.path_loss import largest_doppler_hz
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.compression import Codec, RandomRounding
from wirelessfl.radio import AdaptiveRate, FixedRate, Ofdma, ShortPackets, StochasticQuantiser, Tdma
from wirelessfl.radio.digital_links import DigitalLinks
from wirelessfl.radio.network import Network
from wirelessfl.radio.rates import MessageDivision
from wirelessfl.radio.units import db_to_linear, dbm_to_watts, thermal_noise_density
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.uplink import AdaptiveRate as AdaptiveRateSection
from wirelessfl.scenario.uplink import Digital, DigitalLink, Rate
from wirelessfl.scenario.uplink import FixedRate as FixedRateSection
from wirelessfl.simulation.uplinks import DigitalUplink


def build_digital_uplink(scenario: Scenario, uplink: Digital, network: Network, dimension: int) -> DigitalUplink:
    """Uploads that arrive one by one.

    Raises:
        ScenarioError: a codec from outside says no whole number of bits.
    """
    codec: Codec = make_object("uplink.codec.name", uplink.codec)
    if uplink.bits is not None:
        codec = RandomRounding(StochasticQuantiser(uplink.bits))
    links = build_digital_links(scenario, uplink, network)
    access = Tdma() if uplink.access == "tdma" else Ofdma()
    uploads = DigitalUplink(links, dimension, access, codec, build_algorithm(scenario).facts().payload)
    bits = uploads.payload_bits
    if not isinstance(bits, int | np.integer) or bits < 1:
        raise ScenarioError(f"uplink.codec.name: bits of {type(codec).__name__} are {bits!r}; allowed: 1, 2, ...")
    return uploads


def build_digital_links(scenario: Scenario, uplink: DigitalLink, network: Network) -> DigitalLinks:
    """What the clients' channels carry."""
    watts, snr, channel = math.nan, 0.0, scenario.channel
    bandwidth = scenario.timing.bandwidth_hz
    if uplink.tx_power_dbm is None:
        assert uplink.snr_db is not None, "the scenario names exactly one of the two"
        snr = db_to_linear(uplink.snr_db)
    else:
        watts = dbm_to_watts(uplink.tx_power_dbm)
        snr = 2.0 * watts / (thermal_noise_density(channel.noise_figure_db) * bandwidth)
    return DigitalLinks(
        network=network,
        rate=build_rate(uplink.rate),
        bandwidth_hz=bandwidth,
        snr=snr,
        transmit_watts=watts,
        fade_threshold=scenario.faults.fade_threshold,
        packets=_packets(uplink.rate),
        division=MessageDivision(largest_doppler_hz(channel), channel.max_pieces, channel.csi.refresh),
    )


def _packets(rate: Rate) -> ShortPackets | None:
    if not isinstance(rate, AdaptiveRateSection) or rate.packets is None:
        return None
    return ShortPackets(rate.packets.blocklength, rate.packets.error_probability)


def build_rate(rate: Rate) -> AdaptiveRate | FixedRate:
    """At what rate clients send."""
    match rate:
        case AdaptiveRateSection():
            return AdaptiveRate(rate.min_rate_bps, rate.outage)
        case FixedRateSection():
            return FixedRate(rate.rate_bps)
        case _:
            assert_never(rate)
