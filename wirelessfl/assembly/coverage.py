"""Coverage of the lowest scheme: which clients are out of its reach where no fading helps or harms them."""

import math
import warnings

import numpy as np

from wirelessfl.errors import ModelWarning
from wirelessfl.memory import forgotten
from wirelessfl.radio import DigitalLinks, ModulationAndCoding, Moment, linear_to_db, snr_of_power
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.uplink import Digital

_START = Moment(1, 0.0)


def clients_below_floor(scenario: Scenario, links: DigitalLinks) -> int:
    """The number of clients whose SNR at their path gain is below that of the first scheme; 0 without schemes."""
    if not isinstance(links.coding, ModulationAndCoding):
        return 0
    with forgotten(links.network.memories()):
        everyone = np.arange(links.network.registry.count)
        path_gain = links.network.clients.large_scale.gains(everyone, _START).path_gain
    share, array_gain = band_of_a_client(scenario)
    snr = snr_of_power(links.snr, array_gain * path_gain, share)
    return int(np.count_nonzero(links.coding.throughput(1.0, snr) == 0))


def band_of_a_client(scenario: Scenario) -> tuple[float, float]:
    """The part B_i/B of the band in which a client sends where all do, and by how much an array raises its SNR.

    Behind zero forcing a stream among K has A − K + 1 of the degrees of freedom of A antennas.
    """
    uplink, clients = scenario.uplink, scenario.clients.most
    if not isinstance(uplink, Digital):
        return 1.0 / clients, 1.0
    streams = 1 if uplink.receiver is None else min(uplink.receiver.most_streams, clients)
    share = 1.0 if uplink.access == "tdma" else 1.0 / math.ceil(clients / streams)
    return share, 1.0 if uplink.receiver is None else max(1.0, uplink.receiver.antennas - streams + 1.0)


def warn_of_floor(scenario: Scenario, links: DigitalLinks) -> None:
    """Warning of clients below the floor."""
    count = clients_below_floor(scenario, links)
    if count:
        assert isinstance(links.coding, ModulationAndCoding), "there is a floor"
        clients = f"{count} of {links.network.registry.count} clients"
        floor_db = linear_to_db(links.coding.floor_snr)
        warnings.warn(
            f"uplink.rate: mcs: {clients} are below the floor: at their path gain, without fading, the SNR is below "
            f"{floor_db:.1f} dB, that of the lowest scheme; whoever is below it in a round stays silent (deep_fade)",
            ModelWarning,
            stacklevel=2,
        )


_LONG_S = 3600.0


def warn_of_duration(upload_s: float, scenario: Scenario) -> None:
    """Warning of uploads that no deadline waits for, or that take more than an hour.

    Args:
        upload_s: seconds of an upload at the median path gain, without fading.
        scenario: the scenario.
    """
    deadline_s = scenario.timing.deadline_s
    length = f"at the median path gain, without fading, an upload lasts {upload_s:.4g} s"
    shorter = "a larger timing.bandwidth_hz or transmit power, a codec or a smaller model shortens it"
    if deadline_s is not None and upload_s >= deadline_s:
        reason = f"timing.deadline_s: {length}, and the deadline is {deadline_s:.4g} s: most uploads are cut off (late)"
    elif upload_s > _LONG_S:
        reason = f"uplink: {length}, more than an hour"
    else:
        return
    warnings.warn(f"{reason}; {shorter}", ModelWarning, stacklevel=2)
