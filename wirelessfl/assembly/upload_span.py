"""How long a scenario's digital messages last, beside the time in which a channel stays as it is."""

import math
import warnings
from dataclasses import dataclass

import numpy as np

from wirelessfl.errors import ModelWarning, ScenarioError
from wirelessfl.memory import forgotten
from wirelessfl.radio import FixedRate, coherence_time, pieces_needed
from wirelessfl.radio.propagation import Moment
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.uplink import Digital
from wirelessfl.simulation.uplinks import Asynchronous, DigitalUplink, Uplink
from wirelessfl.simulation.uplinks.secure_aggregation import SecureUplink


@dataclass(frozen=True)
class UploadSpan:
    """The length of an update's message on a link of median path gain that does not fade.

    Attributes:
        seconds: at the rate of that link; NaN without digital links.
        pieces: in which the fastest channel counts as constant.
        coherence_times: 0.423/f_D each.
    """

    seconds: float = math.nan
    pieces: int = 1
    coherence_times: float = 0.0


def upload_span(scenario: Scenario, uplink: Uplink) -> UploadSpan:
    """How long a message lasts."""
    uploads = uplink.uploads if isinstance(uplink, Asynchronous) else uplink
    if not isinstance(uploads, DigitalUplink | SecureUplink):
        return UploadSpan()
    links = uploads.links
    with forgotten(links.network.memories()):
        everyone = np.arange(links.network.registry.count)
        path_gain = links.network.clients.large_scale.gains(everyone, Moment(1, 0.0)).path_gain
    tdma = isinstance(scenario.uplink, Digital) and scenario.uplink.access == "tdma"
    seconds = uploads.payload_bits / links.mean_rate(
        float(np.median(path_gain)), 1.0 if tdma else 1.0 / scenario.clients.most
    )
    doppler_hz = links.division.doppler_hz
    return UploadSpan(seconds, pieces_needed(seconds, doppler_hz), seconds / coherence_time(doppler_hz))


def check_uploads(scenario: Scenario, uplink: Uplink) -> None:
    """Refusal of messages of a known length in too many pieces, and warning of those that outlast a channel's estimate.

    Raises:
        ScenarioError: at a fixed rate every message would be given up.
    """
    if not isinstance(uplink, DigitalUplink | SecureUplink) or not uplink.links.ages:
        return
    span, division, doppler_hz = upload_span(scenario, uplink), uplink.links.division, uplink.links.division.doppler_hz
    length = (
        f"a message of {uplink.payload_bits:,} bits lasts {span.seconds:.3g} s, {span.coherence_times:.3g} coherence "
        f"times of {coherence_time(doppler_hz):.3g} s, in {span.pieces} pieces (Doppler shift up to "
        f"{doppler_hz:.3g} Hz)"
    )
    if isinstance(uplink.links.rate, FixedRate) and span.pieces > division.max_pieces:
        raise ScenarioError(
            f"channel.max_pieces: found {division.max_pieces}, but {length}; allowed are as many. A larger "
            "uplink.rate.rate_bps shortens it"
        )
    if span.pieces > division.max_pieces:
        advice = f"what is not through after channel.max_pieces: {division.max_pieces} is given up"
    elif span.pieces > 1 and division.refresh == "slot" and not isinstance(uplink.links.rate, FixedRate):
        advice = (
            "its rate follows the channel of its beginning, and most are lost; channel.csi.refresh: piece follows it"
        )
    else:
        return
    warnings.warn(f"at the median path gain {length}; {advice}", ModelWarning, stacklevel=2)
