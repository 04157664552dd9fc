"""Channels in memory, as a file holds them, and what is refused of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition

MOST_GAINS = 2 * 10**8
"""Gains of one file: 1.6 GB in single precision."""
_MOST_DB = 300.0
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class ChannelRecord:
    """Gains of K clients to a receiver of A antennas on S subcarriers, in N snapshots.

    Attributes:
        gains: (N, K, A, S) complex amplitudes: the received over the transmitted one, path loss included.
        time_s: (N,) ascending, in seconds.
        frequency_hz: (S,) ascending, of the subcarriers from the middle of the band; None where not known.
        position_m: (N, K, 3) of the clients in metres; None where not known.
        receiver_m: (3,) of the receiver.
        carrier_hz: frequency of the carrier.
        jammer: (N, A, S) gains of an external jammer; None without one.
        source: where they come from, in words.

    Raises:
        DataError: shapes that do not fit, numbers that are not finite, or times that do not ascend.
    """

    gains: NDArray[np.complexfloating]
    time_s: NDArray[np.float64]
    frequency_hz: NDArray[np.float64] | None = None
    position_m: NDArray[np.float64] | None = None
    receiver_m: NDArray[np.float64] | None = None
    carrier_hz: float | None = None
    jammer: NDArray[np.complexfloating] | None = None
    source: str = ""

    def __post_init__(self) -> None:
        gains = _array("gains", self.gains, "c", "complex amplitudes: linear, and neither decibels nor powers")
        shape = gains.shape
        _shape("gains", gains, len(shape) == 4 and min(shape) > 0, "(snapshot, client, antenna, subcarrier)")
        allowed = f"at most {MOST_GAINS:,} gains"
        precondition(gains.size <= MOST_GAINS, f"gains: found {gains.size:,}; allowed: {allowed}", DataError)
        for name, numbers, wanted, unit in self._further():
            found = _array(name, numbers, "c" if name == "jammer" else "iuf", unit)
            _shape(name, found, found.shape == wanted, str(wanted))
        for name, amplitudes in (("gains", gains), ("jammer", self.jammer)):
            if amplitudes is not None:
                _in_range(name, np.asarray(amplitudes))
        for name, numbers in (("time_s", self.time_s), ("frequency_hz", self.frequency_hz)):
            if numbers is not None:
                _ascending(name, np.asarray(numbers))
        carrier = self.carrier_hz
        if carrier is not None and not 0 < carrier < np.inf:
            raise DataError(f"carrier_hz: found {carrier:g}; allowed: above 0")

    def _further(self) -> Iterator[tuple[str, object, tuple[int, ...], str]]:
        snapshots, clients, antennas, subcarriers = np.shape(self.gains)
        yield "time_s", self.time_s, (snapshots,), "seconds"
        for name, numbers, wanted, unit in (
            ("frequency_hz", self.frequency_hz, (subcarriers,), "hertz from the middle of the band"),
            ("position_m", self.position_m, (snapshots, clients, 3), "metres"),
            ("receiver_m", self.receiver_m, (3,), "metres"),
            ("jammer", self.jammer, (snapshots, antennas, subcarriers), "complex amplitudes"),
        ):
            if numbers is not None:
                yield name, numbers, wanted, unit

    @property
    def bandwidth_hz(self) -> float | None:
        """What the subcarriers cover, that of the outermost included; None where it is not known."""
        if self.frequency_hz is None or len(self.frequency_hz) == 1:
            return None
        spacing = float(self.frequency_hz[-1] - self.frequency_hz[0]) / (len(self.frequency_hz) - 1)
        return spacing * len(self.frequency_hz)

    @property
    def mean_gain_db(self) -> float:
        """10 log₁₀ of the mean of |h|² over all gains; −∞ where all are 0."""
        with np.errstate(divide="ignore"):
            return float(10.0 * np.log10(np.mean(np.abs(self.gains.astype(np.complex128)) ** 2)))

    @property
    def distance_m(self) -> NDArray[np.float64] | None:
        """(N, K) from the clients to the receiver; None where places are not known."""
        if self.position_m is None or self.receiver_m is None:
            return None
        return np.asarray(np.linalg.norm(np.asarray(self.position_m) - np.asarray(self.receiver_m), axis=2))

    @property
    def doubt(self) -> str | None:
        """What about the gains is hard to believe, in words."""
        found = self.mean_gain_db
        if found > 0:
            return (
                f"gains: found a mean gain of {found:.1f} dB, above 0 dB: more would be received than is sent. Gains "
                "are linear amplitudes, path loss included, and neither decibels nor normalised"
            )
        return f"gains: found a mean gain of {found:.4g} dB" if found < -_MOST_DB else None

    def chosen(self, clients: NDArray[np.int64]) -> "ChannelRecord":
        """The same of some clients, in this order.

        Raises:
            DataError: there is no such client.
        """
        count = self.gains.shape[1]
        wrong = clients[(clients < 0) | (clients >= count)]
        if len(wrong):
            raise DataError(f"clients: found {int(wrong[0])}; allowed: 0 to {count - 1}")
        places = None if self.position_m is None else self.position_m[:, clients]
        return ChannelRecord(**{**vars(self), "gains": self.gains[:, clients], "position_m": places})


def _array(name: str, numbers: object, kinds: str, unit: str) -> NDArray[np.generic]:
    found = np.asarray(numbers)
    if found.dtype.kind not in kinds:
        kind = "real numbers" if found.dtype.kind in "iufb" else f"values of type {found.dtype}"
        raise DataError(f"{name}: found {kind}; allowed: {unit}")
    if not np.all(np.isfinite(found)):
        place = tuple(int(axis[0]) for axis in np.nonzero(~np.isfinite(found)))
        raise DataError(f"{name}: found {found[place]} at {list(place)}; allowed: finite numbers ({unit})")
    return found


def _in_range(name: str, gains: NDArray[np.generic]) -> None:
    if gains.dtype == np.complex64:  # no number of it lies beyond, and a file may have 200 million
        return
    beyond = np.maximum(np.abs(gains.real), np.abs(gains.imag)) > _LARGEST
    if beyond.any():
        place = tuple(int(axis[0]) for axis in np.nonzero(beyond))
        most = f"at most {_LARGEST:.2g} in either part, as single precision has it"
        raise DataError(f"{name}: found {gains[place]:.6g} at {list(place)}; allowed: {most}")


def _shape(name: str, found: NDArray[np.generic], holds: bool, wanted: str) -> None:
    precondition(holds, f"{name}: found the shape {found.shape}; allowed: {wanted}", DataError)


def _ascending(name: str, numbers: NDArray[np.generic]) -> None:
    steps = np.flatnonzero(~(np.diff(numbers.astype(np.float64)) > 0))
    if len(steps):
        at = int(steps[0])
        raise DataError(
            f"{name}: found {numbers[at + 1]:g} at {at + 1} after {numbers[at]:g}; allowed: ascending numbers"
        )
