"""Channels of one kind of nodes to one receiver: large scale, small scale, estimates and impairments."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wirelessfl.conformance import returned
from wirelessfl.memory import Memory, memories_among
from wirelessfl.radio.csi import (
    channel_given_estimate,
    estimate_channel,
)
from wirelessfl.radio.impairments import (
    LinkImpairments,
    carrier_offsets,
    phase_errors,
)
from wirelessfl.radio.propagation import (
    AntennaArray,
    AntennaGains,
    DistanceGain,
    Draws,
    Fading,
    JointGains,
    JointImportedGains,
    LargeScale,
    Moment,
    joint_gains,
)
from wirelessfl.radio.propagation.fading import AT_START
from wirelessfl.radio.slot_schedule import AT_ONCE, Instants
from wirelessfl.streams import NodeStream

# Numbers that one transmission may draw of a stream, at least `channel.max_pieces`
_MOST_ESTIMATES = 1 << 20


@dataclass(frozen=True, eq=False)
class Channels:
    """Channels of n nodes at R times at which they are estimated and T times at which they are used.

    Attributes:
        channel: h (n, T, F, A), F groups of subcarriers and A antennas.
        estimate: ĥ (n, R, F, A).
        path_gain: β (n,).
        mean_estimate_power: E|ĥ|² (n,).
        specular_power: |μ|² (n,), the part of h/√β that the estimator knows.
    """

    channel: NDArray[np.complex128]
    estimate: NDArray[np.complex128]
    path_gain: NDArray[np.float64]
    mean_estimate_power: NDArray[np.float64]
    specular_power: NDArray[np.float64]

    @property
    def narrowband(self) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """H (n, T) and ĥ (n, R) of links with one group of subcarriers and one antenna.

        Raises:
            ValueError: if there are several.
        """
        return self.channel.squeeze(axis=(2, 3)), self.estimate.squeeze(axis=(2, 3))


@dataclass(frozen=True)
class ChannelSource:
    """Channels of one kind of nodes to one base station.

    Attributes:
        large_scale: path gain and line of sight.
        antennas: (A,) small-scale gains at each antenna of the base station, of independent draws.
        impairments: estimation errors and synchronisation.
        draws: streams of these links.
        array: where the antennas are, and how their links are correlated; None for a single one.
    """

    large_scale: LargeScale
    antennas: tuple[AntennaGains, ...]
    impairments: LinkImpairments
    draws: Draws
    array: AntennaArray | None = None

    @property
    def fading(self) -> Fading:
        """That of the first path to the first antenna: how fast gains change is the same for all."""
        return self.antennas[0].taps[0]

    @cached_property
    def _joint(self) -> JointGains | JointImportedGains | None:
        return joint_gains(self.antennas)

    @property
    def groups(self) -> int:
        """F."""
        return self.antennas[0].groups

    @property
    def varies(self) -> bool:
        """Whether a link has other channels at other instants of the same round."""
        return self.fading.varies or self.large_scale.varies

    @property
    def remembers(self) -> bool:
        """Whether a channel follows from earlier draws of its own."""
        paths = (tap for antenna in self.antennas for tap in antenna.taps)
        return self.large_scale.varies or any(isinstance(path, Memory) for path in paths)

    def _fresh(self, purpose: str, nodes: NDArray[np.int64], moment: Moment) -> NodeStream:
        # The draws of a purpose for one transmission: further ones of a round go on in the streams of the first
        stream, begun = self.draws.nodes(purpose, moment.round_index, nodes), moment.transmission
        return stream.at_block(slice(None), np.full(len(nodes), begun * _MOST_ESTIMATES)) if begun else stream

    def channels(
        self, nodes: NDArray[np.int64], moment: Moment, instants: Instants = AT_ONCE, share: float = 1.0
    ) -> Channels:
        """Channels of some nodes at the instants of a slot from a moment on, with pilots in a part of the band."""
        impairments = self.impairments
        large = self.large_scale.gains(nodes, moment)
        error_std, estimator = impairments.error_std(large.path_gain, share), impairments.csi_estimator
        at_estimates, during = self._gains(nodes, large.line_of_sight, moment, instants)
        amplitude = np.sqrt(large.path_gain)[:, None, None, None]
        specular = np.zeros(at_estimates.shape, dtype=np.complex128)
        if estimator == "mmse" and np.any(error_std > 0):
            specular = self._specular(nodes, large.line_of_sight, moment, instants.estimates)
        draws = self._fresh("fading/csi_error", nodes, moment)
        estimate = estimate_channel(amplitude * at_estimates, large.path_gain, error_std, estimator, draws, specular)
        known_power = np.abs(specular[:, 0, 0, 0]) ** 2
        power = impairments.mean_estimate_power(large.path_gain, known_power, share)
        channel = amplitude * during
        if impairments.phase_std > 0:
            turned = phase_errors(impairments.phase_std, self._fresh("phase_error", nodes, moment))
            channel = channel * turned[:, None, None, None]
        return Channels(channel, estimate, large.path_gain, power, known_power)

    def channel_given_estimate(
        self,
        nodes: NDArray[np.int64],
        moment: Moment,
        found: Channels,
        instants: Instants = AT_ONCE,
        share: float = 1.0,
    ) -> tuple[NDArray[np.complex128], NDArray[np.float64]]:
        """Mean and variance (n, R) of h given the estimates, β and the law of fading."""
        error_std = self.impairments.error_std(found.path_gain, share)[:, None]
        estimator = self.impairments.csi_estimator
        if not error_std.any():
            return found.narrowband[1], np.zeros(found.estimate.shape[:2])
        line_of_sight = self.large_scale.gains(nodes, moment).line_of_sight
        known = self.fading.specular(nodes, line_of_sight, moment, instants.estimates)
        shape = (len(nodes), instants.estimates.shape[-1])
        specular = returned("correlation", self.fading, "specular", known, shape, kind=np.number)
        return channel_given_estimate(found.narrowband[1], found.path_gain[:, None], error_std, estimator, specular)

    def channels_given_estimates(
        self, nodes: NDArray[np.int64], moment: Moment, found: Channels, share: float
    ) -> tuple[NDArray[np.complex128], NDArray[np.float64]]:
        """Means (n, R, F, A) of h and variances (n,) of each antenna given estimates of a slot of one piece.

        For antennas whose scattered parts are independent: then no estimate says anything of another antenna.
        """
        impairments, estimate = self.impairments, found.estimate
        error_std = impairments.error_std(found.path_gain, share)
        line_of_sight = self.large_scale.gains(nodes, moment).line_of_sight
        specular = self._specular(nodes, line_of_sight, moment, AT_ONCE.estimates)
        each = (len(nodes), 1, 1, 1)
        given = (found.path_gain.reshape(each), error_std.reshape(each), impairments.csi_estimator, specular)
        mean, variance = channel_given_estimate(estimate, *given)
        return mean, np.asarray(variance[:, 0, 0, 0])

    def _gains(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, instants: Instants
    ) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        # Small-scale gains at the times of estimates (n, R, F, A) and of the pieces (n, T, F, A)
        at_once, estimates = instants is AT_ONCE, instants.estimates.shape[-1]
        times = AT_START if at_once else np.concatenate([instants.estimates, instants.pieces], axis=-1)
        link = nodes, line_of_sight, moment, times
        if self._joint is not None:
            gains = self._joint.over(*link)
        else:
            gains = np.stack([each.over(*link) for each in self.antennas], axis=3)
        if self.array is not None:
            if self._joint is not None:
                rays = self._joint.specular(*link)
            else:
                rays = np.stack([each.specular(*link) for each in self.antennas], axis=3)
            gains = self.array.received(gains - rays, np.ascontiguousarray(rays[..., 0]), nodes, moment)
        if at_once:
            return gains, gains
        gains = gains * self._rotation(nodes, times)
        return gains[:, :estimates], gains[:, estimates:]

    def _specular(
        self,
        nodes: NDArray[np.int64],
        line_of_sight: NDArray[np.bool_],
        moment: Moment,
        times: NDArray[np.float64],
    ) -> NDArray[np.complex128]:
        # (n, T, F, A) the part of the small-scale gains that the receiver knows
        ray = self.antennas[0].specular(nodes, line_of_sight, moment, times)
        known = ray[:, :, :, None] * self._rotation(nodes, times)
        if self.array is None:
            return np.asarray(known)
        nothing = np.zeros((*ray.shape, len(self.antennas)), dtype=np.complex128)
        return self.array.received(nothing, known[:, :, :, 0], nodes, moment)

    def _rotation(self, nodes: NDArray[np.int64], times: NDArray[np.float64]) -> NDArray[np.complex128] | float:
        # (n, T, 1, 1) what carrier frequency offsets do to gains; 1 where there are none
        if self.impairments.cfo_hz == 0.0:
            return 1.0
        offsets_hz = carrier_offsets(self.impairments.cfo_hz, self.draws.of_nodes("cfo", nodes))
        return np.asarray(np.exp(2j * np.pi * offsets_hz[:, None] * times))[:, :, None, None]

    def memories(self) -> dict[str, Memory]:
        """The parts that remember, by name."""
        placement = self.large_scale.placement if isinstance(self.large_scale, DistanceGain) else None
        paths = [tap for antenna in self.antennas for tap in antenna.taps]
        fading = {f"fading{number or ''}": path for number, path in enumerate(paths)}
        parts = memories_among(placement=placement, large_scale=self.large_scale, **fading)
        return {f"{self.draws.kind}{self.draws.site}{name}": part for name, part in parts.items()}
