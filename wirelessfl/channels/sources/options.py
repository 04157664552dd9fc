"""What an import is told beside the file, and how arrays are read with it."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition

Side = Literal["tx", "rx"]


@dataclass(frozen=True)
class ImportOptions:
    """What the file itself does not say.

    Attributes:
        clients: numbers of the clients that are taken, in this order; None for all.
        clients_are: which end of the links the clients are; the other end is the receiver, by reciprocity.
        receiver: number of the receiver among several.
        antenna: number of the clients' antenna among several.
        bandwidth_hz: what evenly spaced subcarriers cover, where the file has no frequencies.
        interval_s: time between snapshots, where the file has no times.
        names: names of the file for arrays that are called otherwise here.
        ofdm_subcarriers: all those of an OFDM symbol, by the root of whose number DeepMIMO divides its gains.
    """

    clients: NDArray[np.int64] | None = None
    clients_are: Side | None = None
    receiver: int | None = None
    antenna: int | None = None
    bandwidth_hz: float | None = None
    interval_s: float | None = None
    names: dict[str, str] = field(default_factory=dict)
    ofdm_subcarriers: int | None = None

    def times(self, arrays: dict[str, Any], name: str, snapshots: int) -> NDArray[np.float64]:
        """(N,) times of the snapshots: those of the file, or even ones.

        Raises:
            DataError: neither is known, or both.
        """
        if name in arrays:
            precondition(self.interval_s is None, f"interval-s: found beside {name} of the file", DataError)
            return np.atleast_1d(numbers(arrays, name).squeeze())
        if snapshots == 1:
            return np.zeros(1)
        if self.interval_s is None:
            raise DataError(f"found {snapshots} snapshots without {name}; allowed: with --interval-s")
        return np.asarray(self.interval_s * np.arange(snapshots), dtype=np.float64)

    def frequencies(self, arrays: dict[str, Any], name: str, subcarriers: int) -> NDArray[np.float64] | None:
        """(S,) frequencies of the subcarriers: those of the file, or even ones; None where they are not known.

        Raises:
            DataError: there are both.
        """
        if name in arrays:
            precondition(self.bandwidth_hz is None, f"bandwidth-hz: found beside {name} of the file", DataError)
            return np.atleast_1d(numbers(arrays, name).squeeze())
        if self.bandwidth_hz is None:
            return None
        return np.asarray(self.bandwidth_hz / subcarriers * (np.arange(subcarriers) - (subcarriers - 1) / 2.0))

    def one_of(self, name: str, count: int, what: str) -> int:
        """The number that an option chooses among so many; 0 where there is one.

        Raises:
            DataError: there are several and none is chosen, or there is no such number, or none at all.
        """
        chosen = getattr(self, name)
        if count == 0:
            raise DataError(f"found no {what}; allowed: at least one")
        if chosen is None and count > 1:
            raise DataError(f"found {count} {what}; allowed: one of them, --{name} 0 to {count - 1}")
        if not 0 <= (chosen or 0) < count:
            raise DataError(f"{name}: found {chosen}; allowed: 0 to {count - 1}, the {what}")
        return chosen or 0


def needed(arrays: dict[str, Any], *names: str) -> Any:
    """The first array of these names.

    Raises:
        DataError: there is none.
    """
    for name in names:
        if name in arrays:
            return arrays[name]
    held = ", ".join(sorted(arrays)) or "nothing"
    raise DataError(f"found no {names[0]} (found: {held})")


def numbers(arrays: dict[str, Any], name: str) -> NDArray[np.float64]:
    """A real array.

    Raises:
        DataError: it is none.
    """
    found = np.asarray(arrays[name])
    if found.dtype.kind not in "iuf":
        raise DataError(f"{name}: found values of type {found.dtype}; allowed: real numbers")
    return found.astype(np.float64)


def one_number(arrays: dict[str, Any], name: str) -> float | None:
    """A number that stands alone; None where the file has none.

    Raises:
        DataError: it is no number, or there are several.
    """
    if name not in arrays:
        return None
    found = numbers(arrays, name)
    if found.size != 1:
        raise DataError(f"{name}: found {found.size} numbers; allowed: one")
    return float(found.ravel()[0])


def amplitudes(arrays: dict[str, Any], name: str, hint: str = "linear complex amplitudes") -> NDArray[Any]:
    """A complex array.

    Raises:
        DataError: it is none.
    """
    found = np.asarray(arrays[name])
    if found.dtype.kind != "c":
        raise DataError(f"{name}: found values of type {found.dtype}; allowed: {hint}")
    return found


def axes(name: str, found: NDArray[Any], *meanings: str) -> NDArray[Any]:
    """The array, whose axes have these meanings.

    Raises:
        DataError: it has another number of axes.
    """
    if found.ndim != len(meanings):
        raise DataError(f"{name}: found the shape {found.shape}; allowed: ({', '.join(meanings)})")
    return found


def places(arrays: dict[str, Any], name: str, count: int) -> NDArray[np.float64] | None:
    """(count, 3) metres; None where the file has none.

    Raises:
        DataError: it has others.
    """
    if name not in arrays:
        return None
    found = np.atleast_2d(numbers(arrays, name))
    if found.shape != (count, 3):
        raise DataError(f"{name}: found the shape {np.shape(arrays[name])}; allowed: ({count}, 3) in metres")
    return found
