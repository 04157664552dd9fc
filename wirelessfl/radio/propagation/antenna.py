"""Small-scale gains at one antenna over groups of subcarriers: flat, or by a tapped delay line."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.conformance import returned
from wirelessfl.radio.fading import FadingModel
from wirelessfl.radio.propagation.fading import AT_START, Fading
from wirelessfl.radio.propagation.placement import Moment


class AntennaGains(Protocol):
    """Gains of mean power 1 from nodes to one antenna, at times of a slot and in F groups of subcarriers."""

    @property
    def taps(self) -> tuple[Fading, ...]:
        """(L,) fading of the paths by delay."""

    @property
    def groups(self) -> int:
        """F."""

    def law_of(self, in_sight: bool) -> FadingModel:
        """The law of a gain at one instant and frequency, with or without line of sight."""

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, F) gains at T times of a slot; at `AT_START` those of the moment itself."""

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, F) the part of these gains that the receiver knows."""


@dataclass(frozen=True)
class FlatGains:
    """One group of subcarriers with one gain.

    Attributes:
        fading: of the links.
    """

    fading: Fading

    @property
    def taps(self) -> tuple[Fading, ...]:
        """The only one."""
        return (self.fading,)

    @property
    def groups(self) -> int:
        """1."""
        return 1

    def law_of(self, in_sight: bool) -> FadingModel:
        """That of the fading."""
        return self.fading.law_of(in_sight)

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, 1) gains."""
        return path_gains(self.fading, nodes, line_of_sight, moment, offsets)[:, :, None]

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, 1) known parts."""
        return self.fading.specular(nodes, line_of_sight, moment, offsets)[:, :, None]


@dataclass(frozen=True, eq=False)
class SelectiveGains:
    """The frequency response of a tapped delay line: h_f(t) = Σ_l √p_l g_l(t) e^{−j2πfτ_l}.

    Attributes:
        taps: (L,) fading g_l of the paths, of independent draws.
        response: √p_l e^{−j2πfτ_l} (L, F).
        law: of a gain at one frequency.
    """

    taps: tuple[Fading, ...]
    response: NDArray[np.complex128]
    law: FadingModel

    @property
    def groups(self) -> int:
        """F."""
        return int(self.response.shape[1])

    def law_of(self, in_sight: bool) -> FadingModel:
        """The same with and without line of sight: the profile says which of both it has."""
        return self.law

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, F) gains."""
        taps = [path_gains(tap, nodes, line_of_sight, moment, offsets) for tap in self.taps]
        return np.asarray(np.stack(taps, axis=2) @ self.response)

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T, F) known parts."""
        taps = [tap.specular(nodes, line_of_sight, moment, offsets) for tap in self.taps]
        return np.asarray(np.stack(taps, axis=2) @ self.response)


def path_gains(
    fading: Fading,
    nodes: NDArray[np.int64],
    line_of_sight: NDArray[np.bool_],
    moment: Moment,
    offsets: NDArray[np.float64],
) -> NDArray[np.complex128]:
    """(n, T) gains of one path at T times of a slot; at `AT_START` those of the moment itself."""
    if offsets is AT_START:
        found = fading.gains(nodes, line_of_sight, moment)
        return returned("correlation", fading, "gains", found, nodes.shape, kind=np.number, finite=True)[:, None]
    found, shape = fading.over(nodes, line_of_sight, moment, offsets), (len(nodes), offsets.shape[-1])
    return returned("correlation", fading, "over", found, shape, kind=np.number, finite=True)
