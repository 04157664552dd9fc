"""Path gain and line of sight of links, which stay until a node has moved on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import ModelWarning
from wirelessfl.radio import PathLossModel, decorrelated, line_of_sight, path_gain, shadowing_db, site_distances
from wirelessfl.simulation.propagation.draws import Draws, Moment
from wirelessfl.simulation.propagation.memory import NodeMemory
from wirelessfl.simulation.propagation.placement import Placement


@dataclass(frozen=True, eq=False)
class LargeScaleGains:
    """The large-scale side of n links.

    Attributes:
        path_gain: β (n,), linear.
        line_of_sight: (n,) whether the base station is in sight.
    """

    path_gain: NDArray[np.float64]
    line_of_sight: NDArray[np.bool_]


class LargeScale(Protocol):
    """Large-scale gains over time."""

    def gains(self, nodes: NDArray[np.int64], moment: Moment) -> LargeScaleGains:
        """The gains of the links of some nodes at a moment."""
        ...

    def last_distances(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) metres to the base station when last asked for; NaN where that was never, or nobody is anywhere."""
        ...


@dataclass(frozen=True)
class UnitGain:
    """No path loss: every link has gain 1, and nobody is anywhere."""

    def gains(self, nodes: NDArray[np.int64], moment: Moment) -> LargeScaleGains:
        """Ones."""
        return LargeScaleGains(np.ones(len(nodes)), np.zeros(len(nodes), dtype=np.bool_))

    def last_distances(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """NaN."""
        return np.full(len(nodes), np.nan)


def _no_surroundings() -> NodeMemory:
    return NodeMemory(anchor=np.full(2, np.nan), line_of_sight=False, shadowing=np.nan)


@dataclass
class DistanceGain:
    """Path loss by distance; line of sight and shadowing drawn once a link, and anew where its node has moved on.

    Attributes:
        placement: where the nodes are.
        model: the law.
        reference_gain: β at the reference distance, by which all gains are divided; 1 leaves them as they are.
        draws: streams of the links.
        site: (x, y) of the base station in metres.
        surroundings: what was drawn for each link that can move, and where.
    """

    placement: Placement
    model: PathLossModel
    reference_gain: float
    draws: Draws
    site: tuple[float, float] = (0.0, 0.0)
    surroundings: NodeMemory = field(default_factory=_no_surroundings)

    def gains(self, nodes: NDArray[np.int64], moment: Moment) -> LargeScaleGains:
        """Path gain with shadowing, and line of sight."""
        position = self.placement.positions(nodes, moment)
        distance = self._distance(position)
        self._warn_out_of_range(distance)
        if self.placement.moves:
            seen, shadowing = self._followed(nodes, position, distance, moment.round_index)
        else:
            seen, shadowing = self._drawn(nodes, distance, 0)
        loss = self.model.loss_db(distance, seen) + shadowing
        return LargeScaleGains(path_gain(loss) / self.reference_gain, seen)

    def last_distances(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) metres."""
        return self._distance(self.placement.last_positions(nodes))

    def _followed(
        self, nodes: NDArray[np.int64], position: NDArray[np.float64], distance: NDArray[np.float64], round_index: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Line of sight and shadowing in dB of moving nodes, (n,) each."""
        known, last = self.surroundings.recall(nodes)
        seen, shadowing, anchor = last["line_of_sight"], last["shadowing"], last["anchor"]
        moved_on = known & decorrelated(anchor, position, self.model.decorrelation_distance(seen))
        for which, drawn_in in ((~known, 0), (moved_on, round_index)):
            seen[which], shadowing[which] = self._drawn(nodes[which], distance[which], drawn_in)
            anchor[which] = position[which]
        self.surroundings.write(nodes, anchor=anchor, line_of_sight=seen, shadowing=shadowing)
        return seen, shadowing

    def _drawn(
        self, nodes: NDArray[np.int64], distance: NDArray[np.float64], round_index: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        probability = self.model.line_of_sight_probability(distance)
        seen = line_of_sight(probability, self.draws.nodes("line_of_sight", round_index, nodes))
        std = self.model.shadowing_std_db(seen)
        return seen, shadowing_db(std, self.draws.nodes("shadowing", round_index, nodes))

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

    def state(self) -> dict[str, Any]:
        """The surroundings; positions belong to the placement."""
        return self.surroundings.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.surroundings.restore(state)
