"""Records of channels and transmissions of a round, as frozen values.

``positions`` are places among the n clients selected in the round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import JammerLink, SlotLinks


@dataclass(frozen=True, eq=False)
class LinkRecord:
    """Channels of k clients, and estimates of them.

    Attributes:
        positions: (k,) the clients.
        links: the channels.
        station: (k,) the base station that serves each; None with one.
        sinr: (k,) behind a combiner of several streams, NaN where a client is silent; None without one.
    """

    positions: NDArray[np.int64]
    links: SlotLinks
    station: NDArray[np.int64] | None = None
    sinr: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class TransmissionRecord:
    """Analogue transmissions of k clients in a slot.

    Attributes:
        positions: (k,) the clients.
        backoff: (k,) s_i.
        gain: (k,) largest |α_i| over the pieces.
        energy: (k,) ‖x_i‖², in units of N0/2.
        joules: (k,) the same; NaN where watts are unknown.
        truncated_share: (k,) part of the pieces in which each is silent.
    """

    positions: NDArray[np.int64]
    backoff: NDArray[np.float64]
    gain: NDArray[np.float64]
    energy: NDArray[np.float64]
    joules: NDArray[np.float64]
    truncated_share: NDArray[np.float64]

    def scaled(self, factor: float) -> TransmissionRecord:
        """The same with all gains multiplied by one factor."""
        square = factor**2
        return replace(self, gain=self.gain * factor, energy=self.energy * square, joules=self.joules * square)


@dataclass(frozen=True, eq=False)
class UploadRecord:
    """Digital uploads of k clients.

    Attributes:
        positions: (k,) the clients.
        airtime_s: (k,) seconds on the air, pilots included.
        energy: (k,) transmit energy in units of N0/2.
        joules: (k,) the same; NaN where watts are unknown.
        payload_bits: size of an upload, without what is sent again.
    """

    positions: NDArray[np.int64]
    airtime_s: NDArray[np.float64]
    energy: NDArray[np.float64]
    joules: NDArray[np.float64]
    payload_bits: int


@dataclass(frozen=True, eq=False)
class PilotRecord:
    """Pilots of k clients.

    Attributes:
        positions: (k,) who sent them, data or not.
        joules: (k,) of each.
    """

    positions: NDArray[np.int64]
    joules: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SlotRecord:
    """Gains and noise of a slot; NaN where something does not exist.

    Attributes:
        server_gain: α_u; of several cells the largest.
        channel_noise_std: σ_c.
        effective_noise_std: σ_m, before ``rescale``.
        aggregate_noise_std: noise per coordinate of the mean update, before the step of the server.
        interference_std: waveform of other cells' clients in the aggregate, per coordinate.
        jammer_gain: α_CJ.
        jammer_energy: in units of N0/2.
        jammer: the jammer's channel; None without one.
    """

    server_gain: float = math.nan
    channel_noise_std: float = math.nan
    effective_noise_std: float = math.nan
    aggregate_noise_std: float = math.nan
    interference_std: float = math.nan
    jammer_gain: float = math.nan
    jammer_energy: float = math.nan
    jammer: JammerLink | None = None
