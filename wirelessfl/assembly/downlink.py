"""The downlink of a scenario: its channels, and the rate of the broadcast."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import ModelWarning
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
from wirelessfl.radio.rates import shannon_rate
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.downlink import ErrorFreeDownlink, FadingLink, FixedDownlink, MulticastDownlink

_MOST_ASKED = 10_000
"""Clients whose path gains tell for a whole population whether most of them miss the broadcast."""


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
    rate: BroadcastRate
    match downlink:
        case FixedDownlink(outage=None):
            key = "timing.downlink_bps" if downlink.rate_bps is None else "downlink.rate_bps"
            least_bps = downlink.rate_bps or scenario.timing.downlink_bps
            _warn_of_misses(key, least_bps, bandwidth, _mean_snr(network, snr, _MOST_ASKED))
            rate = FixedBroadcast(least_bps)
        case FixedDownlink():
            assert downlink.outage is not None, "the case above"
            mean_snr = _mean_snr(network, snr, network.registry.count)
            rate = FixedBroadcast(rate_of_outage(downlink.outage, bandwidth, mean_snr))
        case MulticastDownlink():
            mean_snr = _mean_snr(network, snr, _MOST_ASKED)
            _warn_of_misses("downlink.min_rate_bps", downlink.min_rate_bps, bandwidth, mean_snr)
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


def _mean_snr(network: Network, snr: float, most: int) -> NDArray[np.float64]:
    # (n,) γ̄ of registered clients at the beginning of the run, the first `most` of them
    with forgotten(network.memories()):
        asked = np.arange(min(network.registry.count, most))
        gains = network.clients.large_scale.gains(asked, Moment(1, 0.0))
    return np.asarray(snr * gains.path_gain / 2.0)


def _warn_of_misses(key: str, rate_bps: float, bandwidth_hz: float, mean_snr: NDArray[np.float64]) -> None:
    carried = shannon_rate(bandwidth_hz, mean_snr)
    missed = int(np.count_nonzero(carried < rate_bps))
    if 2 * missed > len(carried):
        warnings.warn(
            f"{key}: at their path gain, without fading, {missed} of {len(carried)} clients cannot receive "
            f"{rate_bps:.4g} bit/s (half of them carry {np.median(carried):.4g} or less): most miss the broadcast and "
            "skip the round (no_model); a lower rate, more bandwidth or power, or downlink.outage reaches them",
            ModelWarning,
            stacklevel=2,
        )
