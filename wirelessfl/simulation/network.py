"""The radio network as the simulation sees it: who is registered, and what nature deals them at a moment."""

from __future__ import annotations

import cmath
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import (
    LateArrival,
    Links,
    channel_given_estimate,
    estimate_channel,
    mean_estimate_power,
    phase_errors,
    timing_offsets,
)
from wirelessfl.radio.csi import Estimator
from wirelessfl.simulation.propagation import Draws, Fading, LargeScale, Memory, Moment, memories_among
from wirelessfl.streams import NodeStream, Streams

_JAMMER = np.zeros(1, dtype=np.int64)
"""The jammer has streams of its own, in which it is node 0: with or without it, clients see the same channels."""


@dataclass(frozen=True)
class Registry:
    """The registered clients: public constants fixed before the run.

    Attributes:
        samples: (K,) n_i.
        total_samples: |D| = Σ n_i.
        power_budget: P_i, the transmit energy allowed in a round, ‖x_i‖² ≤ P_i or, as the power control limits the
            average, its mean; the same for every client.
    """

    samples: NDArray[np.int64]
    total_samples: int
    power_budget: float

    @property
    def count(self) -> int:
        """K, the number of registered clients."""
        return len(self.samples)

    def weight(self, clients: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) p_i = n_i/|D|."""
        return self.samples[clients] / self.total_samples


@dataclass(frozen=True)
class JammerLink:
    """The jammer's channel in one round: h_CJ, the estimate by which it turns its phase, and the path gain β_CJ."""

    channel: complex
    estimate: complex
    path_gain: float

    @property
    def phase_error(self) -> float:
        """θ = ∠(h_CJ/ĥ_CJ) in radians."""
        return cmath.phase(self.channel / self.estimate)


@dataclass(frozen=True)
class Receiver:
    """What the receiver knows of its channels, and how well it is kept in step.

    Attributes:
        csi_error_std: standard deviation of the estimation error relative to √β.
        csi_estimator: "ls" or "mmse".
        phase_std: radians by which a channel has turned since its estimate, standard deviation.
        max_offset: largest late arrival, as a part of a symbol; with OFDM of one without its prefix.
        subcarriers: of an OFDM waveform; None for a single carrier.
    """

    csi_error_std: float = 0.0
    csi_estimator: Estimator = "ls"
    phase_std: float = 0.0
    max_offset: float = 0.0
    subcarriers: int | None = None


@dataclass(frozen=True, eq=False)
class Channels:
    """Channels of n nodes, all (n,).

    Attributes:
        channel: h.
        estimate: ĥ.
        path_gain: β.
        mean_estimate_power: E|ĥ|².
    """

    channel: NDArray[np.complex128]
    estimate: NDArray[np.complex128]
    path_gain: NDArray[np.float64]
    mean_estimate_power: NDArray[np.float64]


@dataclass(frozen=True)
class ChannelSource:
    """Channels of one kind of nodes to one base station.

    Attributes:
        large_scale: path gain and line of sight.
        fading: small-scale fading.
        receiver: estimation and synchronisation.
        draws: streams of these links.
    """

    large_scale: LargeScale
    fading: Fading
    receiver: Receiver
    draws: Draws

    @property
    def varies(self) -> bool:
        """Whether a link has other channels at other instants of the same round."""
        return self.fading.varies or self.large_scale.varies

    def _fresh(self, purpose: str, nodes: NDArray[np.int64], moment: Moment) -> NodeStream:
        """The draws of a purpose for one transmission: further ones of a round go on in the streams of the first."""
        stream = self.draws.nodes(purpose, moment.round_index, nodes)
        return stream.at_block(slice(None), np.full(len(nodes), moment.transmission)) if moment.transmission else stream

    def channels(self, nodes: NDArray[np.int64], moment: Moment) -> Channels:
        """The channels of some nodes at a moment."""
        receiver = self.receiver
        large = self.large_scale.gains(nodes, moment)
        channel = np.sqrt(large.path_gain) * self.fading.gains(nodes, large.line_of_sight, moment)
        draws = self._fresh("fading/csi_error", nodes, moment)
        error_std, estimator = receiver.csi_error_std, receiver.csi_estimator
        specular = np.zeros(len(nodes), dtype=np.complex128)
        if estimator == "mmse" and error_std > 0:
            specular = self.fading.specular(nodes, large.line_of_sight, moment)
        estimate = estimate_channel(channel, large.path_gain, error_std, estimator, draws, specular)
        power = mean_estimate_power(large.path_gain, error_std, estimator, np.abs(specular) ** 2)
        if receiver.phase_std > 0:
            channel = channel * phase_errors(receiver.phase_std, self._fresh("phase_error", nodes, moment))
        return Channels(channel, estimate, large.path_gain, power)

    def channel_given_estimate(
        self, nodes: NDArray[np.int64], moment: Moment, estimate: NDArray[np.complex128], path_gain: NDArray[np.float64]
    ) -> tuple[NDArray[np.complex128], NDArray[np.float64]]:
        """Mean and variance (n,) of h as who knows the estimate ĥ (n,), β (n,) and the law of fading sees it."""
        error_std, estimator = self.receiver.csi_error_std, self.receiver.csi_estimator
        if error_std == 0:
            return estimate, np.zeros(len(nodes))
        line_of_sight = self.large_scale.gains(nodes, moment).line_of_sight
        specular = self.fading.specular(nodes, line_of_sight, moment)
        return channel_given_estimate(estimate, path_gain, error_std, estimator, specular)

    def memories(self) -> dict[str, Memory]:
        """The parts that remember, by name."""
        placement = getattr(self.large_scale, "placement", None)
        parts = memories_among(placement=placement, large_scale=self.large_scale, fading=self.fading)
        return {f"{self.draws.kind}{name}": part for name, part in parts.items()}


@dataclass(frozen=True)
class Network:
    """Deals the links of a round; every draw comes from the named streams.

    Attributes:
        registry: the registered clients.
        clients: channels of the clients.
        jammer: channels of an external jammer.
        streams: randomness of the run.
    """

    registry: Registry
    clients: ChannelSource
    jammer: ChannelSource
    streams: Streams

    def links(self, clients: NDArray[np.int64], moment: Moment) -> Links:
        """The uplinks of ``clients``; moments of successive calls do not go back in time."""
        return self.as_links(clients, self.clients.channels(clients, moment))

    def channel_given_estimate(
        self, clients: NDArray[np.int64], moment: Moment, links: Links
    ) -> tuple[NDArray[np.complex128], NDArray[np.float64]]:
        """Mean and variance (n,) of the channels of ``clients`` given the estimates in their links."""
        return self.clients.channel_given_estimate(clients, moment, links.estimate, links.path_gain)

    def as_links(self, clients: NDArray[np.int64], found: Channels) -> Links:
        """Channels (n,) of ``clients`` together with what is known of the clients."""
        return Links(
            channel=found.channel,
            estimate=found.estimate,
            weight=self.registry.weight(clients),
            power_budget=np.full(len(clients), self.registry.power_budget),
            path_gain=found.path_gain,
            mean_estimate_power=found.mean_estimate_power,
        )

    def jammer_link(self, moment: Moment) -> JammerLink:
        """The link of an external jammer."""
        found = self.jammer.channels(_JAMMER, moment)
        return JammerLink(complex(found.channel[0]), complex(found.estimate[0]), float(found.path_gain[0]))

    def late_arrival(self, clients: NDArray[np.int64], round_index: int) -> LateArrival | None:
        """How late clients arrive; None where all keep time."""
        receiver = self.clients.receiver
        if receiver.max_offset == 0.0:
            return None
        stream = self.streams.nodes("timing_offset", round_index, clients)
        return LateArrival(timing_offsets(receiver.max_offset, stream), receiver.subcarriers)

    def last_distances(self, clients: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) metres to the base station when a client was last heard; NaN where there are no places."""
        return self.clients.large_scale.last_distances(clients)

    def memories(self) -> dict[str, Memory]:
        """The parts that remember, by name."""
        return {**self.clients.memories(), **self.jammer.memories()}
