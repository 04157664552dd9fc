"""Small-scale gains at all antennas of a receiver, the paths of one law drawn in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.propagation.antenna import AntennaGains, FlatGains, SelectiveGains, path_gains
from wirelessfl.radio.propagation.fading import Fading
from wirelessfl.radio.propagation.imported import ImportedGains, JointImportedGains
from wirelessfl.radio.propagation.placement import Draws, Moment
from wirelessfl.streams import NodeStream

# Links drawn at once, which bounds the memory: Clarke's fading takes 65 numbers of each
_MOST_LINKS = 1 << 14

Ask = Callable[[Fading, NDArray[np.int64], NDArray[np.bool_], Moment, NDArray[np.float64]], NDArray[np.complex128]]
"""What is asked of the fading of some links: (n, T) numbers."""


@dataclass(frozen=True)
class JointDraws(Draws):
    """The streams of P paths as one, for n nodes of the first path, then n of the second, and so on.

    Attributes:
        paths: (P,) streams of each.
    """

    paths: tuple[Draws, ...] = ()

    @cached_property
    def _prefixes(self) -> tuple[str, ...]:
        return tuple(f"{path.kind}{path.site}" for path in self.paths)

    def nodes(self, purpose: str, round_index: int, nodes: NDArray[np.int64]) -> NodeStream:
        """The streams of a purpose in a round, the numbers of each path alone."""
        return self.streams.each(self._prefixes, purpose, round_index, nodes)


@runtime_checkable
class RowFading(Fading, Protocol):
    """Fading without memory, whose gains follow row by row from its streams."""

    @property
    def draws(self) -> Draws:
        """Streams of the links."""

    def drawn_from(self, draws: Draws) -> Self:
        """The same fading with other streams."""


@dataclass(frozen=True, eq=False)
class JointGains:
    """Gains at A antennas over L paths each; bit for bit the numbers of every path alone.

    Attributes:
        antennas: A.
        fading: of all paths of one law, antenna by antenna.
        counts: how many paths of each of these laws an antenna has, together L.
        response: √p_l e^{−j2πfτ_l} (L, F) of a delay line; None of a flat channel, where L = 1.
    """

    antennas: int
    fading: tuple[Fading, ...]
    counts: tuple[int, ...]
    response: NDArray[np.complex128] | None

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, F, A) gains at T times of a slot; at `AT_START` those of the moment itself."""
        return self._asked(path_gains, nodes, line_of_sight, moment, offsets)

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, F, A) the part of these gains that the receiver knows."""
        return self._asked(_specular, nodes, line_of_sight, moment, offsets)

    def _asked(
        self,
        ask: Ask,
        nodes: NDArray[np.int64],
        line_of_sight: NDArray[np.bool_],
        moment: Moment,
        offsets: NDArray[np.float64],
    ) -> NDArray[np.complex128]:
        at_once = max(1, _MOST_LINKS // (self.antennas * max(self.counts)))
        found = []
        for first in range(0, max(1, len(nodes)), at_once):
            some = slice(first, first + at_once)
            taps = [
                self._of_law(ask, fading, count, nodes[some], line_of_sight[some], *_rows(some, moment, offsets))
                for fading, count in zip(self.fading, self.counts, strict=True)
            ]
            found.append(self._received(taps[0] if len(taps) == 1 else np.concatenate(taps, axis=1)))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _of_law(
        self,
        ask: Ask,
        fading: Fading,
        count: int,
        nodes: NDArray[np.int64],
        line_of_sight: NDArray[np.bool_],
        moment: Moment,
        offsets: NDArray[np.float64],
    ) -> NDArray[np.complex128]:
        # (A, l, n, T) numbers of l paths of one law
        paths = self.antennas * count
        begin = moment if np.ndim(moment.time_s) == 0 else replace(moment, time_s=np.tile(moment.time_s, paths))
        times = offsets if offsets.ndim == 1 else np.tile(offsets, (paths, 1))
        found = ask(fading, np.tile(nodes, paths), np.tile(line_of_sight, paths), begin, times)
        return found.reshape(self.antennas, count, len(nodes), -1 if len(nodes) else offsets.shape[-1])

    def _received(self, taps: NDArray[np.complex128]) -> NDArray[np.complex128]:
        # (n, T, F, A) from those of the paths (A, L, n, T)
        if self.response is None:
            return np.ascontiguousarray(taps.transpose(2, 3, 1, 0))
        by_antenna = np.ascontiguousarray(taps.transpose(0, 2, 3, 1)) @ self.response
        return np.ascontiguousarray(by_antenna.transpose(1, 2, 3, 0))


def joint_gains(antennas: Sequence[AntennaGains]) -> JointGains | JointImportedGains | None:
    """The gains at all antennas together; None where there is one path alone, or fading that remembers.

    Args:
        antennas: (A,) of one law, and of independent draws; or the first A of a file.
    """
    first = antennas[0]
    if isinstance(first, ImportedGains):
        in_a_row = all(
            isinstance(each, ImportedGains) and (each.fading, each.antenna) == (first.fading, place)
            for place, each in enumerate(antennas)
        )
        return JointImportedGains(first.fading.channels, len(antennas)) if in_a_row else None
    if len(antennas) == len(first.taps) == 1 or not isinstance(first, FlatGains | SelectiveGains):
        return None
    places, paths = list[list[int]](), list[RowFading]()
    for place, tap in enumerate(first.taps):
        if not isinstance(tap, RowFading) or not all(_alike(tap, each.taps[place]) for each in antennas):
            return None
        if paths and _alike(paths[-1], tap):
            places[-1].append(place)
        else:
            places, paths = [*places, [place]], [*paths, tap]
    fading = tuple(_together(path, antennas, some) for path, some in zip(paths, places, strict=True))
    response = first.response if isinstance(first, SelectiveGains) else None
    return JointGains(len(antennas), fading, tuple(map(len, places)), response)


def _alike(first: RowFading, second: Fading) -> bool:
    # Whether two paths differ in their streams alone
    return isinstance(second, RowFading) and second.drawn_from(first.draws) == first


def _together(path: RowFading, antennas: Sequence[AntennaGains], places: list[int]) -> Fading:
    # The fading of such paths at all antennas, antenna by antenna
    taps = [antenna.taps[place] for antenna in antennas for place in places]
    draws = tuple(tap.draws for tap in taps if isinstance(tap, RowFading))
    return path.drawn_from(JointDraws(path.draws.streams, paths=draws))


def _rows(some: slice, moment: Moment, offsets: NDArray[np.float64]) -> tuple[Moment, NDArray[np.float64]]:
    # The moment and the times of some of the nodes
    begin = moment if np.ndim(moment.time_s) == 0 else replace(moment, time_s=np.asarray(moment.time_s)[some])
    return begin, offsets if offsets.ndim == 1 else offsets[some]


def _specular(
    fading: Fading,
    nodes: NDArray[np.int64],
    line_of_sight: NDArray[np.bool_],
    moment: Moment,
    offsets: NDArray[np.float64],
) -> NDArray[np.complex128]:
    return fading.specular(nodes, line_of_sight, moment, offsets)
