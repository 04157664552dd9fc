"""Signals on the air: clipping in the transmitter, and the received sum, formed block by block.

A block of k updates (k, d) is read once and never copied; memory beyond it is one vector (two with I/Q packing).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl import short_sums
from wirelessfl.errors import precondition
from wirelessfl.radio.impairments import LateArrival
from wirelessfl.radio.slot_schedule import alike_ranges, coordinate_ranges
from wirelessfl.radio.units import num_symbols
from wirelessfl.radio.weighted_sums import add_weighted

Array = Any
"""A NumPy array or a torch tensor; both know ``@``, slices and in-place addition."""

SumParts = tuple[tuple[NDArray[Any] | None, ...], ...]
"""Sums of prompt and of late signals, those of ranges of one length together (n, 1|2, length); None of nobody."""


def limit_amplitude(updates: Array, amplitude: NDArray[np.float64], iq_packing: bool = False) -> Array:
    """The updates whose symbols exceed no amplitude: each complex symbol is shortened, its phase kept.

    This is the projection on a product of balls, one for each symbol: it never grows an update and never moves two
    updates apart (it is non-expansive), so that no sensitivity grows. It is not linear, and the server cannot undo it.

    Args:
        updates: Δ (k, d), real; NumPy or torch.
        amplitude: (k,) the largest |symbol| over |α_i|, in units of the updates.
        iq_packing: whether coordinates 2m and 2m+1 are the two parts of symbol m (the last of an odd d stands alone).

    Returns:
        (k, d) of the same kind and dtype, in memory of its own.
    """
    limit = _like(updates, amplitude[:, None])
    if not iq_packing:
        return updates.clip(-limit, limit)
    pairs = updates.shape[1] // 2 * 2
    energy = updates[:, 0:pairs:2] ** 2 + updates[:, 1:pairs:2] ** 2
    excess = (energy / limit**2).clip(1.0, None) ** 0.5
    limited = updates.clip(-limit, limit)
    limited[:, 0:pairs:2] = updates[:, 0:pairs:2] / excess
    limited[:, 1:pairs:2] = updates[:, 1:pairs:2] / excess
    return limited


def row_norms(updates: Array) -> NDArray[np.float64]:
    """‖Δ_i‖ (k,) of a block (k, d), in the memory of the host."""
    squared = (updates**2).sum(1)
    return np.sqrt(np.asarray(squared.cpu() if hasattr(squared, "cpu") else squared, dtype=np.float64))


# Coordinates of a range from which on a matrix product for each range is the fastest
_WIDE = 32

# Numbers that are weighed coordinate by coordinate at once, which bounds the memory
_BLOCK = 1 << 20

# Clients of a block up to which MKL adds their products in their order too, so that updates of torch give the same bits
# (those of NumPy go by a library of its own and differ by rounding), and coordinates from which on the way to memory
# takes the time
_FEW, _LONG = 7, 1 << 16


class Superposition:
    """The noise-free received signal of one slot, summed over blocks of clients.

    Without I/Q packing each coordinate is one real symbol, and the server keeps the real part of Σ c_i Δ_i with
    c_i = h_i α_i. With packing coordinates 2k and 2k+1 are the real and imaginary part of symbol k (an odd d is padded
    with a zero), so a coefficient that is not real mixes the two: cross-talk under imperfect CSI.

    In each of T blocks and F groups of subcarriers a client has a coefficient of its own; the coordinates of block t
    and group f are range t·F + f. On a CPU the energies of the updates in each range are found in the same pass over
    single-precision updates, and long ones of few clients are added in one pass; elsewhere the sum is a matrix product
    for each range, ranges of one length together.

    Args:
        dimension: d, coordinates of an update.
        iq_packing: whether two coordinates share a symbol.
        pieces: T·F ranges of coordinates.
    """

    def __init__(self, dimension: int, iq_packing: bool = False, pieces: int = 1) -> None:
        self._dimension = dimension
        self._iq_packing = iq_packing
        self._ranges = coordinate_ranges(dimension, pieces, iq_packing)
        self._alike = alike_ranges(self._ranges)
        # By ranges of one length (n, 1|2, length)
        self._prompt: list[Array] = [None] * len(self._alike)
        self._late: list[Array] = [None] * len(self._alike)

    def add(
        self,
        updates: Array,
        coefficients: NDArray[np.complex128],
        late: LateArrival | None = None,
    ) -> NDArray[np.float64] | None:
        """Addition of a block of signals.

        Args:
            updates: Δ (k, d), real; NumPy or torch, the same kind and dtype in all blocks of a slot.
            coefficients: c_i = h_i α_i (k, T, F), or (k,) where T = F = 1; complex NumPy array.
            late: how late the k clients arrive; None where all keep time. On a single carrier that share of a signal
                falls into the next symbol, with OFDM each subcarrier is turned. It never adds energy.

        Returns:
            (k, T·F) Σ Δ² of each client in each range, where the sum came with it; else None.

        Raises:
            ValueError: if the shapes do not fit.
        """
        expected = (len(coefficients), self._dimension)
        precondition(
            tuple(updates.shape) == expected and coefficients.size == len(coefficients) * len(self._ranges),
            f"updates have shape {tuple(updates.shape)}, expected {expected}; coefficients {coefficients.shape}, "
            f"expected {(len(coefficients), len(self._ranges))}",
        )
        by_range = coefficients.reshape(len(coefficients), len(self._ranges))
        if late is not None and late.subcarriers is not None:
            grouped = coefficients.ndim == 3 and coefficients.shape[2] > 1
            precondition(not grouped, "late arrival with OFDM turns all subcarriers of a block: F must be 1")
            self._add_turned(updates, by_range, late)
            return None
        if late is None:
            return self._add(self._prompt, updates, by_range)
        self._add(self._late, updates, by_range * late.offset[:, None])
        return self._add(self._prompt, updates, by_range * (1.0 - late.offset)[:, None])

    def _add(
        self, totals: list[Array], updates: Array, coefficients: NDArray[np.complex128]
    ) -> NDArray[np.float64] | None:
        # Addition of all coordinates, those of each piece with its column of the coefficients (k, T)
        several, few = len(self._ranges) > 1, len(updates) <= _FEW and self._dimension >= _LONG
        rows = _floats_of_host(updates) if several or few else None
        if rows is not None and several:
            return self._add_in_one_pass(totals, rows, coefficients)
        if rows is not None and (library := short_sums.kernel()) is not None:
            weights, first = self._weights(rows, coefficients), totals[0] is None
            totals[0] = _empty_sum(updates, weights.shape[1]) if first else totals[0]
            short_sums.add_sums(library, np.asarray(totals[0]), weights, rows[None], 0.0 if first else 1.0)
            return None
        weights, done = self._weights(updates, coefficients), 0
        for at, (start, count, length) in enumerate(self._alike):
            parts = updates[:, start : start + count * length].reshape(updates.shape[0], count, length)
            totals[at] = _accumulate(totals[at], weights[done : done + count] @ parts.swapaxes(0, 1))
            done += count
        return None

    def _add_in_one_pass(
        self, totals: list[Array], rows: NDArray[np.float32], coefficients: NDArray[np.complex128]
    ) -> NDArray[np.float64]:
        # As `_add`, with the energies
        weights, done, energies = self._weights(rows, coefficients), 0, []
        for at, (first, count, length) in enumerate(self._alike):
            if totals[at] is None:
                totals[at] = np.zeros((count, weights.shape[1], length), dtype=np.float32)
            own = weights[done : done + count]
            energies.append(add_weighted(totals[at], rows[:, first : first + count * length], own))
            done += count
        return np.concatenate(energies, axis=1)

    def _add_turned(self, updates: Array, coefficients: NDArray[np.complex128], late: LateArrival) -> None:
        # As `_add`, each subcarrier turned by how late its client is
        rows, done = [], 0
        for piece, (first, end) in enumerate(self._ranges):
            turned = coefficients[:, piece, None] * late.rotations(num_symbols(end - first, self._iq_packing))
            rows.append(self._weigh_subcarriers(updates[:, first:end], turned))
        for at, (_, count, length) in enumerate(self._alike):
            whole = _side_by_side(rows[done : done + count])
            by_range = whole.reshape(len(whole), count, length).swapaxes(0, 1)
            self._prompt[at] = _accumulate(self._prompt[at], by_range)
            done += count

    def parts(self) -> SumParts:
        """The sums so far in the memory of the host, for ``merge``."""
        return tuple(tuple(_on_host(total) for total in totals) for totals in (self._prompt, self._late))

    def merge(self, parts: SumParts) -> None:
        """Addition of another sum over other clients of the slot, as that of a block: with the same bits where T·F = 1.

        Args:
            parts: From ``parts`` of a superposition with the same arguments.
        """
        for totals, others in zip((self._prompt, self._late), parts, strict=True):
            for at, other in enumerate(others):
                if other is not None:
                    totals[at] = _accumulate(totals[at], other)

    def received(self) -> Array:
        """The received signal (d,) in the kind and dtype of the updates, in the memory of the host.

        Updates on a GPU leave it as this one vector. Where nobody transmitted, it is NumPy zeros.
        """
        if self._prompt[0] is None:
            return np.zeros(self._dimension)
        received = self._demodulate(_side_by_side([_in_a_row(total) for total in self._prompt]))
        if self._late[0] is not None:
            coordinates = 2 if self._iq_packing else 1
            late = self._demodulate(_side_by_side([_in_a_row(total) for total in self._late]))
            received[coordinates:] += late[: max(self._dimension - coordinates, 0)]
        return received.cpu() if hasattr(received, "cpu") else received

    def _weights(self, updates: Array, coefficients: NDArray[np.complex128]) -> Array:
        """Of each column of the coefficients (k, n) the real parts and, with packing, the imaginary ones: (n, 1|2, k).

        Times the updates they are Σ Re(c_i) Δ_i and Σ Im(c_i) Δ_i as rows. They reach a GPU in one copy.
        """
        parts = [coefficients.real, coefficients.imag] if self._iq_packing else [coefficients.real]
        return _like(updates, np.ascontiguousarray(np.stack(parts).transpose(2, 0, 1)))

    def _weigh_subcarriers(self, updates: Array, coefficients: NDArray[np.complex128]) -> Array:
        # The sum as rows, with coefficients (k, F) of subcarriers, each of which carries a range of coordinates
        count = coefficients.shape[1]
        ranges = coordinate_ranges(updates.shape[1], count, self._iq_packing)
        if updates.shape[1] >= _WIDE * count:
            weights = self._weights(updates, coefficients)
            rows = [weights[f] @ updates[:, lo:hi] for f, (lo, hi) in enumerate(ranges)]
            return _side_by_side(rows)
        return self._weigh_coordinates(updates, coefficients, ranges)

    def _weigh_coordinates(
        self, updates: Array, coefficients: NDArray[np.complex128], ranges: tuple[tuple[int, int], ...]
    ) -> Array:
        # As `_weigh_subcarriers`, for ranges too short for a matrix product each
        rows, at_once = [], max(1, _BLOCK // (_WIDE * max(1, len(updates))))
        for first in range(0, len(ranges), at_once):
            some = ranges[first : first + at_once]
            own = np.repeat(coefficients[:, first : first + at_once], [hi - lo for lo, hi in some], axis=1)
            part = updates[:, some[0][0] : some[-1][1]]
            parts = [own.real, own.imag] if self._iq_packing else [own.real]
            rows.append((_like(updates, np.stack(parts)) * part).sum(1))
        return _side_by_side(rows)

    def _demodulate(self, weighed: Array) -> Array:
        received = weighed[0] + 0
        if self._iq_packing:
            pairs = self._dimension // 2 * 2
            received[0:pairs:2] -= weighed[1][1:pairs:2]
            received[1:pairs:2] += weighed[1][0:pairs:2]
        return received


def _floats_of_host(updates: Array) -> NDArray[np.float32] | None:
    # The updates of single precision in the memory of the host, copied only where a client's do not lie side by side,
    # or clients lie apart by no whole number of floats, as in a structured array
    if hasattr(updates, "new_tensor") and updates.device.type != "cpu":
        return None
    rows = np.asarray(updates)
    if rows.dtype != np.float32:
        return None
    apart, beside = rows.strides
    return rows if beside == rows.itemsize and apart % rows.itemsize == 0 else np.ascontiguousarray(rows)


def _empty_sum(block: Array, rows: int) -> Array:
    # (1, rows, d) memory of the kind and dtype of ``block`` (k, d)
    shape = (1, rows, block.shape[1])
    return block.new_empty(shape) if hasattr(block, "new_empty") else np.empty(shape, block.dtype)


def _like(block: Array, values: NDArray[np.float64]) -> Array:
    # ``values`` in the kind, dtype and device of ``block``; nobody waits for their copy to a GPU
    if not hasattr(block, "new_tensor"):
        return values.astype(block.dtype)
    here = block.new_tensor(values, device="cpu")
    return (here.pin_memory() if block.is_cuda else here).to(block.device, non_blocking=True)


def _in_a_row(total: Array) -> Array:
    # (1|2, n · length) of the ranges (n, 1|2, length) of one length
    return total.swapaxes(0, 1).reshape(total.shape[1], -1)


def _side_by_side(rows: list[Array]) -> Array:
    # Arrays (r, ...) of one kind joined along the last axis
    whole = rows[0]
    if len(rows) == 1:
        return whole
    if not hasattr(whole, "new_empty"):
        return np.concatenate(rows, axis=1)
    edges = np.cumsum([0, *(row.shape[1] for row in rows)]).tolist()
    whole = whole.new_empty((whole.shape[0], edges[-1]))
    for row, lo, hi in zip(rows, edges[:-1], edges[1:], strict=True):
        whole[:, lo:hi] = row
    return whole


def _on_host(total: Array) -> NDArray[Any] | None:
    return None if total is None else np.asarray(total.cpu() if hasattr(total, "cpu") else total)


def _accumulate(total: Array, block: Array) -> Array:
    if total is None:
        return block
    total += block
    return total
