"""Small-scale fading of links over rounds and time, mean power 1."""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.errors import DataError
from wirelessfl.memory import NodeMemory, RemembersNodes
from wirelessfl.radio.correlation import clarke_gains, gauss_markov, jakes_correlation
from wirelessfl.radio.fading import FadingModel, Rayleigh, Rician, SpecularFading
from wirelessfl.radio.propagation.doppler import Doppler
from wirelessfl.radio.propagation.draws import Draws, Moment

AT_START = np.zeros(1)
"""The beginning of a slot, as the only time in it."""


def _is_start(offsets: NDArray[np.float64]) -> bool:
    # Whether a slot is looked at once, at its beginning
    return offsets.shape == (1,) and offsets[0] == 0.0


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
            known = self.law.specular(stream)
        if self.in_sight is not None:
            known = np.where(line_of_sight, self.in_sight.specular(stream), known)
        return np.repeat(known[:, None], offsets.shape[-1], axis=1)

    def shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n,) zeros: within a round nothing changes."""
        return np.zeros(len(nodes))

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
        if not _is_start(offsets):
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

    def law_of(self, in_sight: bool) -> FadingModel:
        """The law of a gain at one instant."""
        law = self.in_sight if in_sight and self.in_sight is not None else self.law
        return Rayleigh() if law.rician_k == 0 else law


class ScatteredFading:
    """Scattering beside a direct ray: what is the same however the scattered part goes on in time.

    Attributes:
        ray: the direct part of the links.
        doppler: shifts of the links.
    """

    ray: DirectRay
    doppler: Doppler

    def specular(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) the direct rays."""
        return self.ray.alone(nodes, line_of_sight, moment, offsets)

    def shift_hz(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.float64]:
        """(n,) f_D of the scattered part."""
        return self.doppler.shift_hz(nodes, moment)

    def law_of(self, in_sight: bool) -> FadingModel:
        """The law of a gain at one instant."""
        return self.ray.law_of(in_sight)


@dataclass
class GaussMarkovFading(ScatteredFading, RemembersNodes):
    """First-order recursion from one use of a link to its next, with the correlation J0(2π f_D Δt) of that time.

    Within a slot the scattered part is Gaussian with Clarke's correlation J0(2π f_D t) at any lag, given its value at
    the slot's beginning.

    Attributes:
        ray: the direct part of the links.
        interval_s: T, where rounds count as that far apart whatever the clock says: one gain a round, J0(2π f_D T)^k
            after k rounds. None goes by simulated time.
        doppler: shifts of the links; f_D is the mean one since a link was last used.
        draws: streams of the links.
        nodes: scattered part of each link in the round it was last used in.
    """

    ray: DirectRay
    interval_s: float | None
    doppler: Doppler
    draws: Draws
    nodes: NodeMemory = field(
        default_factory=lambda: NodeMemory(scatter=0j, round=0, cycles=np.nan, time=np.nan, drawn=0)
    )

    @property
    def varies(self) -> bool:
        """Whether gains go by simulated time."""
        return self.interval_s is None

    def gains(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment
    ) -> NDArray[np.complex128]:
        """(n,) gains, carried over the time or the rounds in which a link was not used."""
        return self.over(nodes, line_of_sight, moment, AT_START)[:, 0]

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) gains, with h(t) = J0 h(0) + g(t) − J0 g(0) for the scattered part, g Clarke's fading."""
        scatter = self._scatter(nodes, moment)[:, None]
        if not _is_start(offsets):
            times = np.pad(np.atleast_2d(offsets), ((0, 0), (1, 0)))
            cycles = self.doppler.shift_hz(nodes, moment)[:, None] * times
            purpose = f"fading_in_slot/{moment.transmission}" if moment.transmission else "fading_in_slot"
            other = clarke_gains(cycles, self.draws.nodes(purpose, moment.round_index, nodes))
            memory = special.j0(2.0 * np.pi * cycles[:, 1:])
            scatter = memory * scatter + (other[:, 1:] - memory * other[:, :1])
        return self.ray.beside(scatter, nodes, line_of_sight, moment, offsets)

    def _scatter(self, nodes: NDArray[np.int64], moment: Moment) -> NDArray[np.complex128]:
        # (n,) scattered parts at the beginning of the slot
        known, before = self.nodes.recall(nodes)
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
        self.nodes.write(
            nodes,
            scatter=scatter,
            round=np.full(len(nodes), moment.round_index),
            cycles=cycles,
            time=time,
            drawn=drawn + (moved | ~known),
        )
        return scatter


@dataclass(frozen=True)
class ClarkeFading(ScatteredFading):
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
        return self.over(nodes, line_of_sight, moment, AT_START)[:, 0]

    def over(
        self, nodes: NDArray[np.int64], line_of_sight: NDArray[np.bool_], moment: Moment, offsets: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """(n, T) gains at the times themselves; whoever moves keeps his speed within the slot."""
        cycles = self.doppler.cycles(nodes, moment)[:, None]
        if not _is_start(offsets):
            cycles = cycles + self.doppler.shift_hz(nodes, moment)[:, None] * offsets
        scatter = clarke_gains(cycles, self.draws.nodes("fading", 0, nodes))
        return self.ray.beside(scatter, nodes, line_of_sight, moment, offsets)
