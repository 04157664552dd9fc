"""Path gain and line of sight of links, which change along the way of a node that moves."""

import warnings
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.errors import ModelWarning
from wirelessfl.memory import NodeMemory, RemembersNodes
from wirelessfl.radio.geometry import site_distances
from wirelessfl.radio.pathloss import line_of_sight, path_gain, shadowing_db
from wirelessfl.radio.propagation.draws import Draws, Moment
from wirelessfl.radio.propagation.path_loss import PathLossModel
from wirelessfl.radio.propagation.placement import Motion, Placement
from wirelessfl.radio.spatial import PairedFields, ornstein_uhlenbeck


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

    @property
    def varies(self) -> bool:
        """No."""
        return False

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
        seen, shadowing = (
            self._followed(nodes, motion, distance) if self.placement.moves else self._drawn(nodes, distance)
        )
        loss = self.model.loss_db(distance, seen) + shadowing
        return LargeScaleGains(path_gain(loss) / self.reference_gain, seen)

    def last_distances(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) metres."""
        return self._distance(self.placement.last_positions(nodes))

    def _followed(
        self, nodes: NDArray[np.int64], motion: Motion, distance: NDArray[np.float64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        # Line of sight and shadowing in dB of moving nodes, (n,) each
        fields = PairedFields(self.model.decorrelation_distance(_STATES))
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
        seen = special.ndtr(sight) < self.model.line_of_sight_probability(distance)
        std = self.model.shadowing_std_db(seen)
        return seen, std * np.where(seen, shadowing[:, 0], shadowing[:, 1])

    def _drawn(
        self, nodes: NDArray[np.int64], distance: NDArray[np.float64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        # Line of sight and shadowing in dB of nodes at rest, (n,) each
        probability = self.model.line_of_sight_probability(distance)
        seen = line_of_sight(probability, self.draws.nodes("line_of_sight", 0, nodes))
        std = self.model.shadowing_std_db(seen)
        return seen, shadowing_db(std, self.draws.nodes("shadowing", 0, nodes))

    def _distance(self, position: NDArray[np.float64]) -> NDArray[np.float64]:
        return site_distances(position, np.array([self.site]))[:, 0]

    def _warn_out_of_range(self, distance: NDArray[np.float64]) -> None:
        outside = distance[~self.model.in_range(distance)]
        if len(outside):
            warnings.warn(
                "channel.pathloss: some links are of a length for which the model was not made "
                "(validity ranges are in the reference); their path loss is an extrapolation",
                ModelWarning,
                stacklevel=2,
            )
