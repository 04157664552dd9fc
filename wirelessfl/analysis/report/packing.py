"""Columns of numbers in the page: quantised, compressed and written in base 64; the browser unpacks those it needs.

A column is written as planes of bytes, the lowest byte of all values first, each compressed by itself (raw deflate):
so the bytes that hardly change take no room. static/columns.js reads what is written here.
"""

import base64
import math
import zlib
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FINE, COARSE = 2e-4, 5e-3
"""Largest relative error of a positive number that is rounded: of few numbers, and of so many that size matters."""
_LARGEST_CODE = 65_535
# Codes of what is no number on the scale
_NAN, _INFINITE, _ZERO, _FIRST = 0, 1, 2, 3
_LEVEL = 6


@dataclass
class Blobs:
    """Packed bytes of a section of the page, each an element of its own.

    Attributes:
        prefix: of their ids.
        texts: base 64 by id.
    """

    prefix: str
    texts: dict[str, str] = field(default_factory=dict)

    def add(self, compressed: bytes) -> str:
        """Id of some compressed bytes, which are kept."""
        name = f"{self.prefix}-b{len(self.texts)}"
        self.texts[name] = base64.b64encode(compressed).decode("ascii")
        return name


class Planes:
    """A column that is written part by part, with so many bytes a value."""

    def __init__(self, width: int) -> None:
        """Empty column of ``width`` bytes a value."""
        self._planes = [zlib.compressobj(_LEVEL, wbits=-15) for _ in range(width)]
        self._written: list[list[bytes]] = [[] for _ in range(width)]

    def write(self, values: NDArray[Any]) -> None:
        """Further values, whole numbers from 0 that the width can hold."""
        wide = np.ascontiguousarray(values, dtype="<u8").view(np.uint8).reshape(-1, 8)
        for plane, (press, parts) in enumerate(zip(self._planes, self._written, strict=True)):
            parts.append(press.compress(np.ascontiguousarray(wide[:, plane]).tobytes()))

    def close(self, blobs: Blobs) -> list[str]:
        """Ids of the planes, the lowest byte first."""
        pairs = zip(self._planes, self._written, strict=True)
        return [blobs.add(b"".join([*parts, press.flush()])) for press, parts in pairs]


def pack_whole(values: NDArray[Any], blobs: Blobs) -> list[str]:
    """Ids of the planes of whole numbers from 0, as wide as the largest needs."""
    planes = Planes(whole_width(int(values.max(initial=0))))
    planes.write(values)
    return planes.close(blobs)


def whole_width(largest: int) -> int:
    """Bytes that whole numbers up to the largest need."""
    return max(1, -(-largest.bit_length() // 8))


def pack_doubles(values: NDArray[Any], blobs: Blobs) -> str:
    """Id of numbers as they are, in eight bytes each."""
    press = zlib.compressobj(_LEVEL, wbits=-15)
    return blobs.add(press.compress(np.ascontiguousarray(values, dtype="<f8").tobytes()) + press.flush())


@dataclass
class Extent:
    """What is known of the values of a column before it is written.

    Attributes:
        low: the least finite value; ∞ before the first.
        high: the largest finite value.
        least_positive: the least value above 0.
        whole: whether all finite values are whole numbers.
    """

    low: float = np.inf
    high: float = -np.inf
    least_positive: float = np.inf
    whole: bool = True

    def see(self, values: NDArray[np.float64]) -> None:
        """Further values of the column."""
        finite = values[np.isfinite(values)]
        if not len(finite):
            return
        positive = finite[finite > 0]
        self.low, self.high = min(self.low, float(finite.min())), max(self.high, float(finite.max()))
        self.least_positive = min(self.least_positive, float(positive.min(initial=np.inf)))
        self.whole = self.whole and bool(np.all(finite == np.rint(finite)))

    @property
    def known(self) -> bool:
        """Whether there is a finite value."""
        return self.low <= self.high


@dataclass(frozen=True)
class Scale:
    """Numbers as codes of two bytes: NaN, ∞ and 0 have codes of their own, the others are equal steps from a begin.

    Attributes:
        kind: ``linear``: begin + step · code; ``log``: the exponential of that.
        begin: of the first code.
        step: between neighbouring codes.
    """

    kind: Literal["linear", "log"]
    begin: float
    step: float

    @classmethod
    def of(cls, extent: Extent, precision: float = FINE) -> "Scale":
        """The scale of a column: whole numbers exact, positive ones to a precision, others in 65 532 steps."""
        codes = _LARGEST_CODE - _FIRST
        if extent.whole and extent.high - extent.low <= codes:
            return cls("linear", extent.low, 1.0)
        if extent.low < 0 or not np.isfinite(extent.least_positive):
            return cls("linear", extent.low, (extent.high - extent.low) / codes or 1.0)
        begin = float(np.log(extent.least_positive))
        return cls("log", begin, max(2.0 * math.log1p(precision), (float(np.log(extent.high)) - begin) / codes))

    def codes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Codes of values within the extent; −∞ is written as NaN."""
        finite = np.isfinite(values)
        if self.kind == "log":
            places = np.log(values, out=np.full(len(values), self.begin), where=finite & (values > 0))
        else:
            places = np.where(finite, values, self.begin)
        found = _FIRST + np.rint((places - self.begin) / self.step).astype(np.int64)
        if self.kind == "log":
            found = np.where(values == 0, _ZERO, found)
        return np.where(finite, found, np.where(values == np.inf, _INFINITE, _NAN))

    def as_json(self) -> dict[str, Any]:
        """What the browser needs to know of it."""
        return {"kind": self.kind, "begin": self.begin, "step": self.step, "first": _FIRST}
