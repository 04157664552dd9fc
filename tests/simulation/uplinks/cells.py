"""Cells with given compute times and links, so that every instant of a round is known beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tests.simulation.scenarios import PLAN
from wirelessfl.assembly import build_simulation
from wirelessfl.learning import CohortBlock
from wirelessfl.learning.cohort import ExecutionPlan
from wirelessfl.learning.drift import ClientDrift
from wirelessfl.learning.timing import Timing
from wirelessfl.privacy import Release
from wirelessfl.privacy.releases import SecureSum
from wirelessfl.radio.digital_links import DigitalLinks, Link
from wirelessfl.radio.propagation import Moment
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound, Simulation
from wirelessfl.simulation.assessment import Assessment
from wirelessfl.simulation.state import SimulationState
from wirelessfl.simulation.uplinks import Asynchronous, OverTheAir
from wirelessfl.simulation.uplinks.secure_aggregation import SecureUplink
from wirelessfl.streams import Streams
from wirelessfl.trace import EventBatch, EventKind


@dataclass(frozen=True)
class GivenTiming(Timing):
    """Every client's compute time as given, the same in all rounds."""

    seconds: tuple[float, ...] = ()

    def compute_time(
        self, processed: NDArray[np.int64], clients: NDArray[np.int64], round_index: int, streams: Streams
    ) -> NDArray[np.float64]:
        return np.array(self.seconds)[clients]


@dataclass(frozen=True)
class GivenLinks(DigitalLinks):
    """Every client's link as given, the same in all rounds."""

    given: tuple[Link, ...] = ()

    def draw(
        self, clients: NDArray[np.int64], moment: Moment, share: float, bits: float | None = None, message: int = 0
    ) -> tuple[list[Link], None]:
        return [self.given[client] for client in clients.tolist()], None


@dataclass
class Recorder:
    """Stands in for the learner: an update of its own for every client, and a record of what was asked of it."""

    dimension: int
    plan: ExecutionPlan = field(default_factory=ExecutionPlan)
    unvouched: str | None = None
    measures_drift: bool = False
    sums_blocks: bool = False
    trained: list[tuple[int, list[int]]] = field(default_factory=list)
    charged: list[tuple[int, list[int], SecureSum | None]] = field(default_factory=list)
    received: list[tuple[int, NDArray[np.float64]]] = field(default_factory=list)

    @property
    def broadcast_dimension(self) -> int:
        return self.dimension

    def calibrate(self, state: SimulationState, round_index: int) -> None:
        """Nothing is clipped."""

    def samples_processed(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        return samples

    def train(
        self,
        start: NDArray[np.float32],
        state: SimulationState,
        clients: NDArray[np.int64],
        round_index: int,
        steps: NDArray[np.int64] | None = None,
        drift: ClientDrift | None = None,
    ) -> Iterator[CohortBlock]:
        self.trained.append((round_index, clients.tolist()))
        for first in range(0, len(clients), 2):
            chosen = np.arange(first, min(first + 2, len(clients)))
            updates = np.stack([self.update_of(client) for client in clients[chosen].tolist()])
            nothing = np.full(len(chosen), math.nan)
            yield CohortBlock(chosen, torch.from_numpy(updates), nothing, nothing, nothing)

    def releases(
        self,
        round_index: int,
        clients: NDArray[np.int64],
        secure_sum: SecureSum | None,
        steps: NDArray[np.int64] | None = None,
    ) -> tuple[Release, ...]:
        self.charged.append((round_index, clients.tolist(), secure_sum))
        return ()

    def update(
        self,
        state: SimulationState,
        aggregate: NDArray[np.float64],
        round_index: int,
        arrived: NDArray[np.int64],
        weights: NDArray[np.float64],
        steps: NDArray[np.int64] | None = None,
        unheard: NDArray[np.bool_] | None = None,
        hidden_share: float | None = None,
    ) -> None:
        self.received.append((round_index, aggregate))
        state.parameters = (state.parameters + aggregate).astype(np.float32)

    def evaluate(self, parameters: NDArray[np.float32], round_index: int, *, last: bool) -> Assessment:
        return Assessment()

    def update_of(self, client: int) -> NDArray[np.float32]:
        """(d,) of norm below 1, another one for each client."""
        return (np.random.default_rng(client).uniform(-1, 1, self.dimension) / math.sqrt(self.dimension)).astype("f4")


@dataclass
class Play:
    """What happened: the simulation, its rounds and events, and the stand-in for the learner."""

    simulation: Simulation
    learner: Recorder
    rounds: list[FinishedRound]
    events: list[EventBatch]

    @property
    def samples(self) -> NDArray[np.int64]:
        """N_i of all clients."""
        return self.simulation.deployment.network.registry.samples

    def times(self, kind: EventKind, round_number: int = 1) -> list[tuple[float, int]]:
        """When, and at which node, something happened."""
        batch = self.events[round_number - 1]
        chosen = np.asarray(batch.kind) == int(kind)
        return list(zip(np.asarray(batch.time)[chosen].tolist(), np.asarray(batch.node)[chosen].tolist(), strict=True))


def play(
    scenario: Scenario,
    compute: Sequence[float] | None = None,
    links: Sequence[Link] | None = None,
    dimension: int = 10,
    state: SimulationState | None = None,
) -> Play:
    """Run a scenario with given compute times and links and without training; the downlink takes no time."""
    simulation = build_simulation(scenario, PLAN, state)
    parts, learner = simulation.deployment, Recorder(dimension)
    stand_in: Any = learner
    uplink: Any = parts.uplink
    if isinstance(uplink, Asynchronous):
        uploads: Any = uplink.uploads
        if links is not None:
            uploads = replace(uploads, links=_given(uploads.links, links))
        uplink = replace(uplink, uploads=replace(uploads, dimension=dimension))
    elif links is not None:
        uplink = replace(uplink, links=_given(uplink.links, links))
    if isinstance(uplink, SecureUplink):
        encoding: Any = uplink.encoding
        uplink = replace(uplink, encoding=replace(encoding, dimension=dimension))
    elif isinstance(uplink, OverTheAir):
        uplink = replace(uplink, air=replace(uplink.air, dimension=dimension))
    else:
        uplink = replace(uplink, dimension=dimension)
    timing: Timing = parts.timing
    if compute is not None:
        timing = GivenTiming(timing.bandwidth_hz, 1e30, 0.0, timing.cpu_hz, 0.0, seconds=tuple(compute))
    simulation.deployment = replace(parts, uplink=uplink, learner=stand_in, timing=timing)
    if state is None:
        simulation.state.parameters = np.zeros(dimension, dtype=np.float32)
    result = Play(simulation, learner, [], [])

    def keep(this: FinishedRound, batch: EventBatch) -> None:
        result.rounds.append(this)
        result.events.append(batch)

    simulation.run(keep)
    return result


def _given(links: DigitalLinks, given: Sequence[Link]) -> GivenLinks:
    """Given links with the power and the band of others."""
    values = {item.name: getattr(links, item.name) for item in fields(links)}
    return GivenLinks(**values, given=tuple(given))
