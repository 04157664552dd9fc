"""The downlink of a scenario: its channels, and the rate of the broadcast."""

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

import numpy as np

from wirelessfl.memory import forgotten
from wirelessfl.radio import (
    ChannelSource,
    LinkImpairments,
    Moment,
    Network,
    db_to_linear,
    dbm_to_watts,
    thermal_noise_density,
)
from wirelessfl.radio.downlink import BroadcastRate, FadingDownlink, FixedBroadcast, MulticastToWeakest, rate_of_outage
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.downlink import ErrorFreeDownlink, FadingLink, FixedDownlink, MulticastDownlink


def build_downlink(
    scenario: Scenario, network: Network, own_fading: Callable[[], ChannelSource]
) -> FadingDownlink | None:
    """The downlink; None where every broadcast reaches everybody.

    Args:
        scenario: the scenario.
        network: the uplinks.
        own_fading: channels of independent draws, for a downlink in a band of its own.
    """
    downlink = scenario.downlink
    if isinstance(downlink, ErrorFreeDownlink):
        return None
    up = network.clients
    fading = own_fading() if downlink.duplex == "fdd" else up
    # Large scale and places are those of the uplink; what is estimated for the uplink does not concern the downlink.
    source = replace(fading, large_scale=up.large_scale, impairments=LinkImpairments())
    bandwidth = downlink.bandwidth_hz or scenario.timing.bandwidth_hz
    snr = _snr(downlink, bandwidth)
    match downlink:
        case FixedDownlink():
            fixed = downlink.rate_bps or scenario.timing.downlink_bps
            if downlink.outage is not None:
                fixed = rate_of_outage(downlink.outage, bandwidth, _mean_snr(network, snr))
            rate: BroadcastRate = FixedBroadcast(fixed)
        case MulticastDownlink():
            rate = MulticastToWeakest(downlink.min_rate_bps)
        case _:
            assert_never(downlink)
    return FadingDownlink(source, rate, bandwidth, snr)


def _snr(downlink: FadingLink, bandwidth_hz: float) -> float:
    # 2p/(N0 B) at a path gain of 1
    if downlink.tx_power_dbm is None:
        assert downlink.snr_db is not None, "the scenario names exactly one of the two"
        return db_to_linear(downlink.snr_db)
    watts = dbm_to_watts(downlink.tx_power_dbm)
    return 2.0 * watts / (thermal_noise_density(downlink.noise_figure_db) * bandwidth_hz)


def _mean_snr(network: Network, snr: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    # (K,) γ̄ of all registered clients at the beginning of the run
    with forgotten(network.memories()):
        everyone = np.arange(network.registry.count)
        gains = network.clients.large_scale.gains(everyone, Moment(1, 0.0))
    return np.asarray(snr * gains.path_gain / 2.0)
