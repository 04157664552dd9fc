"""Small-scale fading of links over rounds and time, mean power 1: the protocol, blocks, and the direct ray."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.conformance import returned
from wirelessfl.errors import DataError
from wirelessfl.radio.fading import FadingModel, Rayleigh, Rician, SpecularFading
from wirelessfl.radio.propagation.doppler import Doppler
from wirelessfl.radio.propagation.placement import Draws, Moment

AT_START = np.zeros(1)
"""The beginning of a slot, as the only time in it."""


@runtime_checkable
class Fading(Protocol):
    """Small-scale gains of links over rounds and time, of mean power 1.

    One that remembers also has ``state()`` and ``restore(state)``. `wirelessfl.radio.conformance` checks one of
    your own.
    """

    @property
    def varies(self) -> bool:
        """Whether a link has other gains at other instants of the same round."""

    def gains(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) gains of mean power 1 at a moment; asked twice in a round, the same."""

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) gains at T times of a slot that begins at a moment, ``offsets`` (T,) or (n, T) seconds after it."""

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) the part of these gains that the receiver knows; 0 where their phase is uniform."""

    def shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n,) f_D, the largest Doppler shift with which gains change within a transmission."""

    def law_of(self, in_sight: bool) -> FadingModel:
        """The law of a gain at one instant, with or without line of sight."""


@dataclass(frozen=True)
class BlockFading:
    """A fresh draw for each link and round.

    Attributes:
        law: of a link.
        in_sight: law of a link with line of sight; None where that makes no difference.
        draws: streams of the links.
    """

    law: FadingModel
    in_sight: Rician | None
    draws: Draws
    varies: ClassVar[bool] = False

    def gains(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) independent gains.

        Raises:
            DataError: the law is a recording that does not hold them.
        """
        stream = self.draws.nodes("fading", moment.round_index, nodes)
        try:
            gains = self.law.draw(stream)
            returned("fading", self.law, "draw", gains, nodes.shape, kind=np.number, finite=True)
        except ValueError as error:
            raise DataError(f"channel.fading: {error}") from error
        return gains if self.in_sight is None else np.where(line_of_sight, self.in_sight.draw(stream), gains)

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) the gains of the round: a block of fading outlasts the slot by definition."""
        return np.repeat(self.gains(nodes, line_of_sight, moment)[:, None], offsets.shape[-1], axis=1)

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) the known parts of the gains."""
        stream = self.draws.nodes("fading", moment.round_index, nodes)
        known = np.zeros(len(nodes), dtype=np.complex128)
        if isinstance(self.law, SpecularFading):
            known = returned("fading", self.law, "specular", self.law.specular(stream), nodes.shape, kind=np.number)
        if self.in_sight is not None:
            known = np.where(line_of_sight, self.in_sight.specular(stream), known)
        return np.repeat(known[:, None], offsets.shape[-1], axis=1)

    def shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n,) zeros: within a round nothing changes."""
        return np.zeros(len(nodes))

    def drawn_from(self, draws: Draws) -> BlockFading:
        """The same fading with other streams."""
        return replace(self, draws=draws)

    def law_of(self, in_sight: bool) -> FadingModel:
        """One of the two laws."""
        return self.in_sight if in_sight and self.in_sight is not None else self.law


@dataclass(frozen=True)
class DirectRay:
    """The line of sight beside a scattered part that is correlated in time.

    Its phase is drawn once a link and turns with a Doppler shift of its own.

    Attributes:
        law: Rician factor of a link; 0 is Rayleigh.
        in_sight: that of a link with line of sight; None where that makes no difference.
        doppler: shifts of the links.
        draws: streams of the links.
    """

    law: Rician
    in_sight: Rician | None
    doppler: Doppler
    draws: Draws

    def beside(
        self,
        scatter: NDArray[np.complex128],
        nodes: NDArray[np.int64],
        line_of_sight: NDArray[np.bool_],
        moment: Moment,
        offsets: NDArray[np.float64],
    ) -> NDArray[np.complex128]:
        """(n, T) gains from the scattered parts (n, T), CN(0, 1), at times of a slot; from zeros, the rays alone."""
        if self.in_sight is None and self.law.rician_k == 0:
            return scatter
        start = self.draws.nodes("direct_ray", 0, nodes).uniform()[:, 0] + self.doppler.ray_cycles(nodes, moment)
        phase = 2 * np.pi * start[:, None]
        if offsets is not AT_START:
            phase = phase + 2 * np.pi * self.doppler.ray_shift_hz(nodes, moment)[:, None] * offsets
        gains = self.law.around(scatter, phase)
        if self.in_sight is None:
            return gains
        return np.where(line_of_sight[:, None], self.in_sight.around(scatter, phase), gains)

    def alone(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) the direct rays without what is scattered."""
        nothing = np.zeros((len(nodes), offsets.shape[-1]), dtype=np.complex128)
        return self.beside(nothing, nodes, line_of_sight, moment, offsets)

    def drawn_from(self, draws: Draws) -> DirectRay:
        """The same rays with other streams."""
        return replace(self, draws=draws, doppler=self.doppler.drawn_from(draws))

    def law_of(self, in_sight: bool) -> FadingModel:
        """The law of a gain at one instant."""
        law = self.in_sight if in_sight and self.in_sight is not None else self.law
        return Rayleigh() if law.rician_k == 0 else law
