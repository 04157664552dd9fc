"""Imported channels: absolute gains of links at given times, from ray tracing or measurement.

Between two snapshots the earlier one holds. The last one holds as long as the one before it did, and a single one
holds for ever.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.memory import NodeMemory, RemembersNodes
from wirelessfl.radio.fading import FadingModel, Recorded
from wirelessfl.radio.propagation.large_scale import LargeScaleGains
from wirelessfl.radio.propagation.placement import Moment
from wirelessfl.radio.slot_schedule import longest_piece

# Times of the simulation are whole picoseconds; less than one does not keep a snapshot from holding
_ROUNDING_S = 5e-13


@dataclass(frozen=True, eq=False)
class ImportedChannels:
    """Gains of K nodes to A antennas in F groups of subcarriers, in N snapshots.

    Attributes:
        gains: (N, K, A, F) complex amplitudes, path loss included.
        time_s: (N,) ascending.
        start: number of the snapshot at the beginning of the simulation.
        loop: whether the first snapshot follows the last one.
        name: of the file, for messages.
        distance_m: (N, K) to the receiver; None where the file has no positions.
    """

    gains: NDArray[np.complexfloating]
    time_s: NDArray[np.float64]
    start: int
    loop: bool
    name: str
    distance_m: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        count = len(self.time_s)
        precondition(self.gains.ndim == 4 and len(self.gains) == count, "gains are (N, K, A, F), one for each time")
        precondition(bool(np.all(np.diff(self.time_s) > 0)), "times ascend")
        precondition(0 <= self.start < count, f"start is one of the snapshots 0 to {count - 1}, not {self.start}")

    @cached_property
    def path_gain(self) -> NDArray[np.float64]:
        """β (K,): the mean of |h|² over all snapshots, antennas and groups of subcarriers."""
        power = self.gains.real.astype(np.float64) ** 2 + self.gains.imag.astype(np.float64) ** 2
        return np.asarray(power.mean(axis=(0, 2, 3)))

    @property
    def interval_s(self) -> float:
        """The least time between snapshots; infinite for a single one."""
        return float(np.diff(self.time_s).min()) if len(self.time_s) > 1 else np.inf

    @property
    def duration_s(self) -> float:
        """Seconds from the first snapshot to the end of the last one."""
        if len(self.time_s) == 1:
            return np.inf
        return float(self.time_s[-1] - self.time_s[0] + (self.time_s[-1] - self.time_s[-2]))

    @property
    def left_s(self) -> float:
        """Seconds of the simulation for which there are snapshots; infinite where they are gone through again."""
        return np.inf if self.loop else self.duration_s - float(self.time_s[self.start] - self.time_s[0])

    def spacing_s(self, count: int) -> float:
        """Seconds between so many even instants from the beginning of the simulation; 0 for one snapshot."""
        whole = self.duration_s if self.loop else self.left_s
        return 0.0 if np.isinf(whole) else whole / count

    @property
    def doppler_hz(self) -> float:
        """The largest Doppler shift whose changes snapshots so close resolve, to −25 dB; 0 for a single one.

        A slot or message is divided as with such a shift: no piece then lasts longer than the least interval.
        """
        if len(self.time_s) == 1:
            return 0.0
        return float(longest_piece(np.ones(1))[0]) / self.interval_s

    def snapshots(self, time_s: NDArray[np.float64], round_index: int) -> NDArray[np.int64]:
        """Numbers of the snapshots that hold at times of the simulation, in the shape of these.

        Raises:
            DataError: there is none any more.
        """
        if len(self.time_s) == 1:
            return np.zeros(time_s.shape, dtype=np.int64)
        since = self.time_s - self.time_s[0]
        at = time_s + since[self.start] + _ROUNDING_S
        if self.loop:
            at = at % self.duration_s
        latest = float(at.max(initial=0.0))
        if latest >= self.duration_s + _ROUNDING_S:
            last = since[-1] - since[-2]
            needed = len(self.time_s) - 1 + int((latest - since[-1]) / last)
            raise DataError(
                f"channel.fading.file: {self.name} ends {self.left_s:.6g} s after the simulation begins; found round "
                f"{round_index}, which needs a channel at {float(np.max(time_s)):.6g} s, snapshot {needed}, and "
                f"snapshots 0 to {len(self.time_s) - 1}; allowed: {needed + 1 - len(self.time_s)} more snapshots, "
                "fewer rounds, or channel.fading.loop: true"
            )
        found = np.searchsorted(since, at, side="right") - 1
        return np.asarray(found, dtype=np.int64)

    def at(
        self, nodes: NDArray[np.int64], moment: Moment, offsets: NDArray[np.float64], antenna: int
    ) -> NDArray[np.complex128]:
        """(n, T, F) gains over √β at T times of a slot."""
        return self.at_antennas(nodes, moment, offsets, slice(antenna, antenna + 1))[:, :, :, 0]

    def at_antennas(
        self, nodes: NDArray[np.int64], moment: Moment, offsets: NDArray[np.float64], antennas: slice
    ) -> NDArray[np.complex128]:
        """(n, T, F, A) gains over √β at T times of a slot, at some of the antennas."""
        begin = np.broadcast_to(np.asarray(moment.time_s, dtype=np.float64), (len(nodes),))
        times = begin[:, None] + np.broadcast_to(offsets, (len(nodes), offsets.shape[-1]))
        found = self.gains[:, :, antennas][self.snapshots(times, moment.round_index), nodes[:, None]]
        by_antenna = found.transpose(0, 1, 3, 2) / np.sqrt(self.path_gain[nodes])[:, None, None, None]
        return np.ascontiguousarray(by_antenna, dtype=np.complex128)


@dataclass(frozen=True, eq=False)
class ImportedFading:
    """Gains at the first antenna and in the first group of subcarriers, over time.

    Attributes:
        channels: of the file.
    """

    channels: ImportedChannels

    @property
    def varies(self) -> bool:
        """Whether there are several snapshots."""
        return len(self.channels.time_s) > 1

    def gains(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) gains at a moment."""
        return self.over(nodes, line_of_sight, moment, np.zeros(1))[:, 0]

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) gains of the snapshots that hold at these times."""
        return self.channels.at(nodes, moment, offsets, 0)[:, :, 0]

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) zeros: the receiver knows no part of the gains beforehand."""
        return np.zeros((len(nodes), offsets.shape[-1]), dtype=np.complex128)

    def shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n,) the shift that the snapshots resolve."""
        return np.full(len(nodes), self.channels.doppler_hz)

    def law_of(self, in_sight: bool) -> FadingModel:
        """All gains of the file, over √β."""
        channels = self.channels
        return Recorded((channels.gains / np.sqrt(channels.path_gain)[:, None, None]).reshape(len(channels.gains), -1))


@dataclass(frozen=True, eq=False)
class ImportedGains:
    """Gains at one antenna.

    Attributes:
        fading: of the file.
        antenna: its number there.
    """

    fading: ImportedFading
    antenna: int

    @property
    def taps(self) -> tuple[ImportedFading, ...]:
        """What the file says, as one path."""
        return (self.fading,)

    @property
    def groups(self) -> int:
        """F."""
        return int(self.fading.channels.gains.shape[3])

    def law_of(self, in_sight: bool) -> FadingModel:
        """All gains of the file, over √β."""
        return self.fading.law_of(in_sight)

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, F) gains of the snapshots that hold at these times."""
        return self.fading.channels.at(nodes, moment, offsets, self.antenna)

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, F) zeros."""
        return np.zeros((len(nodes), offsets.shape[-1], self.groups), dtype=np.complex128)

    def least_powers(self) -> NDArray[np.float64]:
        """(N·K,) the least |h|²/β over the antenna's groups of subcarriers, of all snapshots and nodes."""
        channels = self.fading.channels
        power = np.abs(channels.gains[:, :, self.antenna]).min(axis=2) ** 2 / channels.path_gain
        return np.asarray(power, dtype=np.float64).ravel()


@dataclass(frozen=True, eq=False)
class JointImportedGains:
    """Gains at the first A antennas, read in one call.

    Attributes:
        channels: of the file.
        antennas: A.
    """

    channels: ImportedChannels
    antennas: int

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, F, A) gains of the snapshots that hold at these times."""
        return self.channels.at_antennas(nodes, moment, offsets, slice(self.antennas))

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, F, A) zeros: the receiver knows no part of the gains beforehand."""
        shape = (len(nodes), offsets.shape[-1], self.channels.gains.shape[3], self.antennas)
        return np.zeros(shape, dtype=np.complex128)


@dataclass
class ImportedGain(RemembersNodes):
    """The mean power of each link over the file, as its path gain.

    Attributes:
        channels: of the file.
        nodes: the snapshot in which each node was last heard.
    """

    channels: ImportedChannels
    nodes: NodeMemory = field(default_factory=lambda: NodeMemory(snapshot=-1))
    varies: ClassVar[bool] = False

    def gains(self, nodes: NDArray[np.int64], moment: Moment) -> LargeScaleGains:
        """β; whether a line of sight is among the paths is not known."""
        begin = np.broadcast_to(np.asarray(moment.time_s, dtype=np.float64), (len(nodes),))
        self.nodes.write(nodes, snapshot=self.channels.snapshots(begin, moment.round_index))
        return LargeScaleGains(self.channels.path_gain[nodes], np.zeros(len(nodes), dtype=np.bool_))

    def last_distances(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) metres; NaN where the file has no positions, or a node was never asked for."""
        known, last = self.nodes.recall(nodes)
        if self.channels.distance_m is None:
            return np.full(len(nodes), np.nan)
        return np.where(known, self.channels.distance_m[last["snapshot"], nodes], np.nan)
