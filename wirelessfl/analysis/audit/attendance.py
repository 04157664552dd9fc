"""Which of the clients that it selects a trusted server hears, drawn anew in every trial of a game."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import InfeasibleError
from wirelessfl.learning.faults import BernoulliAvailability
from wirelessfl.simulation.clock import all_ticks
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.server import Deployment
from wirelessfl.streams import Streams


@dataclass(frozen=True)
class Attendance:
    """Clients that can be reached, do not crash, and are in time for deadline and quorum.

    How fast clients are is public (PRIVACY.md), and comes from the scenario's own streams.

    Attributes:
        parts: the simulation as it was built.
        processed: (K,) samples that each client passes through its model in a round.

    Raises:
        InfeasibleError: who is there depends on earlier rounds, which the game cannot draw anew.
    """

    parts: Deployment
    processed: NDArray[np.int64]

    def __post_init__(self) -> None:
        availability, faults = self.parts.faults.availability, self.parts.faults
        if not isinstance(availability, BernoulliAvailability):
            raise InfeasibleError(
                "this scenario cannot be audited: clients are selected in secret, and who can be reached "
                f"({type(availability).__name__}) may depend on earlier rounds; model: bernoulli can be played"
            )
        if faults.battery_j is not None:
            raise InfeasibleError(
                "this scenario cannot be audited: clients are selected in secret, and who has an empty battery depends "
                "on earlier rounds; faults.battery_j: null can be played"
            )

    @classmethod
    def of(cls, parts: Deployment, learner: Learner) -> "Attendance":
        """Attendance of a scenario."""
        return cls(parts, learner.samples_processed(learner.population.sizes))

    def heard(self, clients: NDArray[np.int64], round_index: int, secret: Streams) -> NDArray[np.int64]:
        """Ascending positions, among the ``clients`` (n,) selected in a round, of those who are heard.

        Args:
            clients: ascending numbers of the clients.
            round_index: the round, from 1.
            secret: streams of who can be reached, and who crashes.
        """
        faults, wait_for = self.parts.faults, self.parts.wait_for
        there = faults.availability.available(clients, round_index, secret)
        public = self.parts.network.streams
        seconds = self.parts.timing.compute_time(self.processed[clients], clients, round_index, public)
        stays = there & (faults.crash_after(clients, round_index, secret) >= seconds)
        ready = all_ticks(seconds)
        closes = wait_for.closes_after()
        if closes is not None:
            stays &= ready <= closes
        needed = wait_for.needed(len(clients))
        if np.count_nonzero(stays) > needed:  # those who are ready at one instant are all in time
            stays &= ready <= np.partition(ready[stays], needed - 1)[needed - 1]
        return np.flatnonzero(stays)
