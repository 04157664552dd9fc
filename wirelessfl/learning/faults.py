"""Faults: availability, crashes, batteries, and restarts of the server."""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wirelessfl.conformance import returned
from wirelessfl.memory import NodeMemory, RemembersNodes
from wirelessfl.streams import Streams


@runtime_checkable
class AvailabilityModel(Protocol):
    """Extension point: which of the selected clients can be reached in a round.

    A model takes its randomness from the streams alone, so that a client's presence does not depend on who else is
    selected, and must not look at private data. One that remembers also has ``state()`` and ``restore(state)``.
    """

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        """(n,) True where the client can be reached."""


@dataclass(frozen=True)
class BernoulliAvailability:
    """Each client is available with probability ``p``, independently of rounds and of the others."""

    p: float

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        """(n,) True with probability p."""
        if self.p == 1.0:
            return np.ones(len(clients), dtype=np.bool_)
        return streams.nodes("availability", round_index, clients).uniform()[:, 0] < self.p


@dataclass
class GilbertElliott(RemembersNodes):
    """A chain of two states for each client, available or absent, with some persistence (Gilbert 1960, Elliott 1963).

    A client that was not selected for k rounds is carried over them in one step: its distance from the stationary
    probability shrinks by (1 − p_leave − p_return)^k.

    Attributes:
        p_leave: probability to be gone in the next round, of a client that is there.
        p_return: probability to be there in the next round, of a client that is gone.
        nodes: state of each client in the round it was last selected in.
    """

    p_leave: float
    p_return: float
    nodes: NodeMemory = field(default_factory=lambda: NodeMemory(there=False, round=0))

    @property
    def stationary(self) -> float:
        """Share of the time that a client is available; 1 if no client leaves or returns."""
        moves = self.p_leave + self.p_return
        return self.p_return / moves if moves > 0 else 1.0

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        """(n,) the clients' states, at first drawn from the stationary law."""
        known, last = self.nodes.recall(clients)
        memory = np.where(known, (1.0 - self.p_leave - self.p_return) ** (round_index - last["round"]), 0.0)
        probability = self.stationary + memory * (last["there"] - self.stationary)
        there = streams.nodes("availability", round_index, clients).uniform()[:, 0] < probability
        self.nodes.write(clients, there=there, round=np.full(len(clients), round_index))
        return there


@dataclass(frozen=True, eq=False)
class RecordedAvailability:
    """Recorded availability.

    Attributes:
        presence: (M + 1, K); row m is round m.
    """

    presence: NDArray[np.bool_]

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        """(n,) as recorded."""
        return np.asarray(self.presence[round_index, clients])


_ONE = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class Faults:
    """The faults of a scenario.

    Attributes:
        availability: who can be reached.
        crash_rate_per_s: hazard rate of a crash while training.
        battery_j: joules of a full battery, or None for mains power.
        restart_probability: how often in a round the server goes down with what it has just received.
        downtime_s: seconds until it is back.
    """

    availability: AvailabilityModel
    crash_rate_per_s: float
    battery_j: float | None
    restart_probability: float = 0.0
    downtime_s: float = 0.0

    def reachable(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        """(n,) True where a client can be reached.

        Raises:
            ScenarioError: a model from outside gives something else.
        """
        found = self.availability.available(clients, round_index, streams)
        return returned("availability", self.availability, "available", found, clients.shape, kind=np.bool_)

    def crash_after(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.float64]:
        """(n,) seconds of training after which a client crashes; infinite without a hazard."""
        if self.crash_rate_per_s == 0.0:
            return np.full(len(clients), np.inf)
        return streams.nodes("crash", round_index, clients).exponential()[:, 0] / self.crash_rate_per_s

    def server_restarts(self, round_index: int, streams: Streams) -> bool:
        """Whether the server goes down in a round."""
        chance = self.restart_probability
        return chance > 0 and bool(streams.nodes("server_restart", round_index, _ONE).uniform()[0, 0] < chance)
