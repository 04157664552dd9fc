"""Path gain and line of sight of links, which change along the way of a node that moves.

Shadowing and line of sight are Gaussian fields along the way with exponential autocorrelation: Gudmundson (1991)
measured e^{−Δd/d_cor} for shadowing; TR 38.901 states d_cor for every large-scale parameter (Table 7.5-6) and for the
state of the line of sight (Table 7.6.3.1-2).
"""

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.conformance import returned
from wirelessfl.errors import ModelWarning
from wirelessfl.memory import NodeMemory, RemembersNodes
from wirelessfl.radio.placement import site_distances
from wirelessfl.radio.propagation.path_loss import PathLossModel, path_gain
from wirelessfl.radio.propagation.placement import Draws, Moment, Motion, Placement


def ornstein_uhlenbeck(
    previous: NDArray[np.float64], way: NDArray[np.float64], decorrelation: float, innovation: NDArray[np.float64]
) -> NDArray[np.float64]:
    """A standard normal field (n,) further along the way: r g + √(1 − r²) z with r = e^{−way/d_cor}.

    Exact at every lag for steps of any lengths: the field is Markov along the way.

    Args:
        previous: (n,) the field at the last point.
        way: (n,) metres along the way since then, at least 0; 0 keeps the field as it is.
        decorrelation: d_cor in metres, positive.
        innovation: (n,) independent standard normal numbers.
    """
    kept = np.exp(-way / decorrelation)
    return np.asarray(kept * previous + np.sqrt(-np.expm1(-2.0 * way / decorrelation)) * innovation)


class PairedFields:
    """Two standard normal fields of different decorrelation distances that one white noise drives.

    Each has autocorrelation e^{−Δd/d_cor} with its own d_cor. Their correlation at one point is
    2 √(d₁ d₂)/(d₁ + d₂), so that a link that changes from one to the other keeps most of what shadows it; the standard
    states the two distances and nothing of the change.

    Args:
        decorrelation: (2,) d_cor in metres, positive.
    """

    def __init__(self, decorrelation: NDArray[np.float64]) -> None:
        self._rate = 1.0 / np.asarray(decorrelation, dtype=np.float64)
        first, second = self._rate.tolist()
        self._cross = 2.0 * np.sqrt(first * second) / (first + second)

    def start(self, normals: NDArray[np.float64]) -> NDArray[np.float64]:
        """The fields (n, 2) of the stationary law from standard normal numbers (n, 2); the first field is the first."""
        second = self._cross * normals[:, 0] + np.sqrt(1.0 - self._cross**2) * normals[:, 1]
        return np.stack([normals[:, 0], second], axis=1)

    def advance(
        self, previous: NDArray[np.float64], way: NDArray[np.float64], normals: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The fields (n, 2) after a way (n,) in metres from those before it, with fresh standard normals (n, 2)."""
        lost = -np.expm1(-2.0 * way[:, None] * self._rate)
        deviation = np.sqrt(lost)
        both_lost = -np.expm1(-way * self._rate.sum())
        shared = np.divide(self._cross * both_lost, deviation[:, 0], out=np.zeros_like(way), where=way > 0)
        own = np.sqrt(np.maximum(lost[:, 1] - shared**2, 0.0))
        innovation = np.stack([deviation[:, 0] * normals[:, 0], shared * normals[:, 0] + own * normals[:, 1]], axis=1)
        return np.asarray(np.exp(-way[:, None] * self._rate) * previous + innovation)


@dataclass(frozen=True, eq=False)
class LargeScaleGains:
    """Large-scale gains of n links.

    Attributes:
        path_gain: β (n,), linear.
        line_of_sight: (n,) whether the base station is in sight.
    """

    path_gain: NDArray[np.float64]
    line_of_sight: NDArray[np.bool_]


class LargeScale(Protocol):
    """Large-scale gains over time."""

    @property
    def varies(self) -> bool:
        """Whether a link has other gains at other instants of the same round."""

    def gains(self, nodes: NDArray[np.int64], moment: Moment) -> LargeScaleGains:
        """The gains of the links of some nodes at a moment."""

    def last_distances(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) metres to the base station when last asked for; NaN where that was never, or nobody is anywhere."""


@dataclass(frozen=True)
class UnitGain:
    """No path loss: every link has gain 1, and nodes have no places."""

    varies: ClassVar[bool] = False

    def gains(self, nodes: NDArray[np.int64], moment: Moment) -> LargeScaleGains:
        """Ones."""
        return LargeScaleGains(np.ones(len(nodes)), np.zeros(len(nodes), dtype=np.bool_))

    def last_distances(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """NaN."""
        return np.full(len(nodes), np.nan)


# With and without line of sight
_STATES = np.array([True, False])

# A step takes three normal numbers of a link's stream, out of two complex ones
_BLOCKS_OF_A_STEP = 2


@dataclass
class DistanceGain(RemembersNodes):
    """Path loss by distance; line of sight and shadowing drawn once a link, and carried on along the way of its node.

    Where nodes move, each link has Gaussian fields along its node's way: g, by which it is in sight while Φ(g) is below
    the probability at its distance, and, independent of it, the shadowing with and without line of sight. At any
    distance the probability is then that of the model, however the way led there.

    Attributes:
        placement: where the nodes are.
        model: the law.
        reference_gain: β at the reference distance, by which all gains are divided; 1 leaves them as they are.
        draws: streams of the links.
        site: (x, y) of the base station in metres.
        nodes: the fields of each link whose node can move, and how far it had travelled.
    """

    placement: Placement
    model: PathLossModel
    reference_gain: float
    draws: Draws
    site: tuple[float, float] = (0.0, 0.0)
    nodes: NodeMemory = field(
        default_factory=lambda: NodeMemory(sight=np.nan, shadowing=np.full(2, np.nan), travelled=np.nan, steps=0)
    )

    @property
    def varies(self) -> bool:
        """Whether the nodes move."""
        return self.placement.moves

    def gains(self, nodes: NDArray[np.int64], moment: Moment) -> LargeScaleGains:
        """Path gain with shadowing, and line of sight."""
        motion = self.placement.motion(nodes, moment)
        distance = self._distance(motion.position)
        self._warn_out_of_range(distance)
        chance, shadowing = self._followed(nodes, motion) if self.placement.moves else self._drawn(nodes)
        seen: NDArray[np.bool_] = chance < self._asked("line_of_sight_probability", distance, least=0.0, most=1.0)
        std = self._asked("shadowing_std_db", seen, least=0.0)
        loss = self._asked("loss_db", distance, seen) + std * np.where(seen, shadowing[:, 0], shadowing[:, -1])
        return LargeScaleGains(path_gain(loss) / self.reference_gain, seen)

    def last_distances(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) metres."""
        return self._distance(self.placement.last_positions(nodes))

    def _asked(self, method: str, *arguments: NDArray[Any], **limits: Any) -> NDArray[np.float64]:
        # (n,) what the model says of the links, or of the states of the line of sight
        values = getattr(self.model, method)(*arguments)
        found: NDArray[np.float64] = returned("path_loss", self.model, method, values, arguments[0].shape, **limits)
        return found

    def _followed(self, nodes: NDArray[np.int64], motion: Motion) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # Uniform numbers (n,) that decide on the line of sight of moving nodes, and shadowing (n, 2) of std 1
        fields = PairedFields(self._asked("decorrelation_distance", _STATES))
        known, last = self.nodes.recall(nodes)
        way = np.where(known, motion.travelled - last["travelled"], 0.0)
        stream = self.draws.nodes("surroundings", 0, nodes)
        normals = stream.at_block(slice(None), _BLOCKS_OF_A_STEP * last["steps"]).normal(3)
        sight = ornstein_uhlenbeck(last["sight"], way, self.model.sight_decorrelation, normals[:, 0])
        shadowing = fields.advance(last["shadowing"], way, normals[:, 1:])
        if not known.all():
            uniform = self.draws.nodes("line_of_sight", 0, nodes).uniform()[:, 0]
            drawn = self.draws.nodes("shadowing", 0, nodes).normal(2)
            sight = np.where(known, sight, special.ndtri(uniform))
            shadowing = np.where(known[:, None], shadowing, fields.start(drawn))
        steps = last["steps"] + (way > 0)
        self.nodes.write(nodes, sight=sight, shadowing=shadowing, travelled=motion.travelled, steps=steps)
        return special.ndtr(sight), shadowing

    def _drawn(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # The same of nodes at rest, (n,) and (n, 1)
        chance = self.draws.nodes("line_of_sight", 0, nodes).uniform()[:, 0]
        return chance, self.draws.nodes("shadowing", 0, nodes).normal()

    def _distance(self, position: NDArray[np.float64]) -> NDArray[np.float64]:
        return site_distances(position, np.array([self.site]))[:, 0]

    def _warn_out_of_range(self, distance: NDArray[np.float64]) -> None:
        if not np.all(self.model.in_range(distance)):
            warnings.warn(
                "channel.pathloss: some links are shorter or longer than the range in which the model is valid "
                "(see the reference); their path loss is an extrapolation",
                ModelWarning,
                stacklevel=2,
            )
