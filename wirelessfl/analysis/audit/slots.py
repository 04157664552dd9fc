"""Slots of a game: receptions known from the rehearsal, or drawn anew in every trial where the senders are secret."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import InfeasibleError, precondition
from wirelessfl.learning.faults import BernoulliAvailability
from wirelessfl.radio.propagation import Moment
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.medium import all_ticks
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.run import Deployment
from wirelessfl.simulation.uplinks import ServerNoise, SlotPlan
from wirelessfl.streams import Streams
from wirelessfl.trace import Role


class Slot(NamedTuple):
    """One reception: the round, the plan of the slot, and the canary's client among its senders; None if it is not."""

    this: Round
    plan: SlotPlan
    position: int | None

    @classmethod
    def of(cls, this: Round, plan: SlotPlan, client: int) -> "Slot":
        """Slot of the sum that a client is in, with its position among the senders."""
        for own in plan.superpositions:
            place = np.flatnonzero(this.clients[own.senders] == client)
            if len(place):
                return cls(this, own, int(place[0]))
        return cls(this, plan, None)


@dataclass(frozen=True)
class KnownSlots:
    """Slots as the rehearsal of the scenario planned them, one a round; the adversary knows who is in them."""

    slots: dict[int, Slot]

    @property
    def rounds(self) -> list[int]:
        """Rounds in which the canary's client may be heard."""
        return list(self.slots)

    def with_canary(self, round_index: int) -> Slot:
        """Slot of the round in which it is."""
        return self.slots[round_index]

    def drawn(self, round_index: int, streams: Streams) -> Slot:
        """Slot of a trial."""
        return self.slots[round_index]

    def attended(self, round_index: int, streams: Streams) -> list[Slot]:
        """Slots of a round that different clients attend, as far as there may be any."""
        return [self.slots[round_index]]

    def is_released(self, slot: Slot, absent: bool) -> bool:
        """Whether a slot has a release, with the canary's client ``absent`` or not."""
        return True


@dataclass(frozen=True)
class SecretSlots:
    """Slots whose senders are drawn anew in every trial, for an adversary who does not see them.

    How fast clients are is public (PRIVACY.md), and comes from the scenario's own streams.

    Attributes:
        server: the trusted server that plans slots, and whether it releases a round in which nobody is heard.
        parts: the simulation as it was built.
        learner: the local training, as it was built.
        client: whose upload is the canary.
        rounds: all rounds of the run.

    Raises:
        InfeasibleError: who is there depends on earlier rounds, which the game cannot draw anew.
    """

    server: ServerNoise
    parts: Deployment
    learner: Learner
    client: int
    rounds: list[int]

    def __post_init__(self) -> None:
        faults, who = self.parts.faults, "this scenario cannot be audited: clients are selected in secret, and who"
        reached = type(faults.availability).__name__
        precondition(
            isinstance(faults.availability, BernoulliAvailability),
            f"{who} can be reached ({reached}) may depend on earlier rounds; allowed: model: bernoulli",
            InfeasibleError,
        )
        precondition(
            faults.battery_j is None,
            f"{who} has an empty battery depends on earlier rounds; allowed: faults.battery_j: null",
            InfeasibleError,
        )

    def with_canary(self, round_index: int) -> Slot:
        """Slots with all clients selected and heard."""
        everybody = np.arange(len(self.learner.population.sizes), dtype=np.int64)
        return self._slot(round_index, everybody, everybody)

    def drawn(self, round_index: int, streams: Streams) -> Slot:
        """Clients that the server selects and receives."""
        clients = self.parts.selection.select(Moment(round_index, 0.0), streams)
        return self._slot(round_index, clients, self.heard(clients, round_index, streams))

    def attended(self, round_index: int, streams: Streams) -> list[Slot]:
        """Slots with all clients, with those that the server receives and, if such a round has a release, with none."""
        nobody, heard = np.zeros(0, dtype=np.int64), self.drawn(round_index, streams)
        empty = [self._slot(round_index, nobody, nobody)] if self.server.always else []
        return [self.with_canary(round_index), *([heard] if len(heard.plan.senders) else []), *empty]

    def is_released(self, slot: Slot, absent: bool) -> bool:
        """Whether a round without the canary alone is released too."""
        return self.server.always or len(slot.plan.senders) > (absent and slot.position is not None)

    def heard(self, clients: NDArray[np.int64], round_index: int, secret: Streams) -> NDArray[np.int64]:
        """Positions, ascending, of the selected clients who can be reached, do not crash, and meet deadline and quorum.

        Args:
            clients: (n,) ascending numbers of the clients selected in the round.
            round_index: the round, from 1.
            secret: streams of who can be reached, and who crashes.
        """
        faults, wait_for = self.parts.faults, self.parts.wait_for
        there, roles = faults.reachable(clients, round_index, secret), self.parts.roles
        processed = self.learner.samples_processed(self.learner.population.sizes[clients])
        seconds = self.parts.timing.compute_time(processed, clients, round_index, self.parts.network.streams)
        if roles is not None:
            there &= ~roles.have(clients, Role.SILENT)
            seconds = np.where(roles.have(clients, Role.FREE_RIDER), 0.0, seconds)
        stays = there & (faults.crash_after(clients, round_index, secret) >= seconds)
        ready, closes = all_ticks(seconds), wait_for.closes_after()
        if closes is not None:
            stays &= ready <= closes
        needed = wait_for.needed(len(clients))
        if np.count_nonzero(stays) > needed:  # those who are ready at one instant are all in time
            stays &= ready <= np.partition(ready[stays], needed - 1)[needed - 1]
        return np.flatnonzero(stays)

    def _slot(self, round_index: int, clients: NDArray[np.int64], heard: NDArray[np.int64]) -> Slot:
        this = Round(round_index, clients)
        return Slot.of(this, self.server.plan(this, heard), self.client)


Slots: TypeAlias = KnownSlots | SecretSlots
"""Slots of a run."""
