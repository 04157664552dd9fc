"""Small-scale fading of links over rounds and time, mean power 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError
from wirelessfl.radio import (
    FadingModel,
    Rayleigh,
    Rician,
    SpecularFading,
    clarke_gains,
    gauss_markov,
    jakes_correlation,
)
from wirelessfl.simulation.propagation.doppler import Doppler
from wirelessfl.simulation.propagation.draws import Draws, Moment
from wirelessfl.simulation.propagation.memory import NodeMemory


class Fading(Protocol):
    """Gains over time."""

    @property
    def varies(self) -> bool:
        """Whether a link has other gains at other instants of the same round."""
        ...

    def gains(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) gains of mean power 1 at a moment; asked twice in a round, the same."""
        ...

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) the part of these gains that the receiver knows; 0 where their phase is uniform."""
        ...

    def law_of(self, in_sight: bool) -> FadingModel:
        """The law of a gain at one instant, with or without line of sight."""
        ...


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

    @property
    def varies(self) -> bool:
        """No: one gain for a link and round."""
        return False

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
        except ValueError as error:
            raise DataError(f"channel.fading: {error}") from error
        return gains if self.in_sight is None else np.where(line_of_sight, self.in_sight.draw(stream), gains)

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) the known parts of the gains."""
        stream = self.draws.nodes("fading", moment.round_index, nodes)
        known = np.zeros(len(nodes), dtype=np.complex128)
        if isinstance(self.law, SpecularFading):
            known = self.law.specular(stream)
        return known if self.in_sight is None else np.where(line_of_sight, self.in_sight.specular(stream), known)

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
    ) -> NDArray[np.complex128]:
        """(n,) gains from the scattered parts, CN(0, 1); without scattering, the direct rays alone."""
        if self.in_sight is None and self.law.rician_k == 0:
            return scatter
        start = self.draws.nodes("direct_ray", 0, nodes).uniform()[:, 0]
        phase = 2 * np.pi * (start + self.doppler.ray_cycles(nodes, moment))
        gains = self.law.around(scatter, phase)
        if self.in_sight is None:
            return gains
        return np.where(line_of_sight, self.in_sight.around(scatter, phase), gains)

    def law_of(self, in_sight: bool) -> FadingModel:
        """The law of a gain at one instant."""
        law = self.in_sight if in_sight and self.in_sight is not None else self.law
        return Rayleigh() if law.rician_k == 0 else law


def _no_gains() -> NodeMemory:
    return NodeMemory(scatter=0j, round=0, cycles=np.nan, time=np.nan, drawn=0)


@dataclass
class GaussMarkovFading:
    """First-order recursion from one use of a link to its next, with the correlation J0(2π f_D Δt) of that time.

    Attributes:
        ray: the direct part of the links.
        interval_s: T, where rounds count as that far apart whatever the clock says: one gain a round, J0(2π f_D T)^k
            after k rounds. None goes by simulated time.
        doppler: shifts of the links; f_D is the mean one since a link was last used.
        draws: streams of the links.
        last: scattered part of each link in the round it was last used in.
    """

    ray: DirectRay
    interval_s: float | None
    doppler: Doppler
    draws: Draws
    last: NodeMemory = field(default_factory=_no_gains)

    @property
    def varies(self) -> bool:
        """Whether gains go by simulated time."""
        return self.interval_s is None

    def gains(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) gains, carried over the time or the rounds in which a link was not used."""
        known, before = self.last.recall(nodes)
        time = np.broadcast_to(np.asarray(moment.time_s, dtype=np.float64), (len(nodes),))
        cycles = self.doppler.cycles(nodes, moment)
        elapsed = np.where(known, time - before["time"], 0.0)
        rounds = moment.round_index - before["round"]
        if self.interval_s is None:
            steps, moved = np.ones(len(nodes)), elapsed > 0
            # J0 of the cycles themselves, those of f_D Δt where f_D is given.
            correlation = jakes_correlation(np.where(moved, cycles - before["cycles"], 0.0), 1.0)
        else:
            steps, moved = np.maximum(rounds, 1.0), rounds > 0
            shift = self.doppler.mean_shift_hz(cycles, elapsed, before["cycles"])
            correlation = jakes_correlation(shift, self.interval_s)
        drawn = np.where(known & (rounds == 0), before["drawn"], 0)
        innovation = self.draws.nodes("fading", moment.round_index, nodes).at_block(slice(None), drawn)
        steps = np.where(known, steps, np.inf)
        stepped = gauss_markov(before["scatter"], steps, correlation, innovation.complex_normal()[:, 0])
        scatter = np.where(moved | ~known, stepped, before["scatter"])
        self.last.write(
            nodes,
            scatter=scatter,
            round=np.full(len(nodes), moment.round_index),
            cycles=cycles,
            time=time,
            drawn=drawn + (moved | ~known),
        )
        return self.ray.beside(scatter, nodes, line_of_sight, moment)

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) the direct rays."""
        return self.ray.beside(np.zeros(len(nodes), dtype=np.complex128), nodes, line_of_sight, moment)

    def law_of(self, in_sight: bool) -> FadingModel:
        """The law of a gain at one instant."""
        return self.ray.law_of(in_sight)

    def state(self) -> dict[str, Any]:
        """The last gains."""
        return self.last.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.last.restore(state)


@dataclass(frozen=True)
class ClarkeFading:
    """Isotropic scattering at simulated time, in closed form: nothing has to be remembered.

    Attributes:
        ray: the direct part of the links.
        doppler: shifts of the links.
        draws: streams of the links.
    """

    ray: DirectRay
    doppler: Doppler
    draws: Draws

    @property
    def varies(self) -> bool:
        """Yes: gains are those of simulated time."""
        return True

    def gains(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) gains at the moment's time."""
        scatter = clarke_gains(self.doppler.cycles(nodes, moment), self.draws.nodes("fading", 0, nodes))
        return self.ray.beside(scatter, nodes, line_of_sight, moment)

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) the direct rays."""
        return self.ray.beside(np.zeros(len(nodes), dtype=np.complex128), nodes, line_of_sight, moment)

    def law_of(self, in_sight: bool) -> FadingModel:
        """The law of a gain at one instant."""
        return self.ray.law_of(in_sight)
