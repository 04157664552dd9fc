"""The clients of each round: a rule, what is remembered for it, and the jobs of clients at work across rounds."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.conformance import method_at
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.selection import (
    Chosen,
    Known,
    LearningSelection,
    RoundFeedback,
    ScoredSelection,
    SelectAll,
    Selection,
    SelectionContext,
)
from wirelessfl.memory import Memory, RegisteredMemory, memories_among
from wirelessfl.radio.network import Network
from wirelessfl.radio.propagation import Moment
from wirelessfl.radio.slot_schedule import PilotCharge
from wirelessfl.simulation.medium import END_EVENT, Report
from wirelessfl.simulation.records import Round
from wirelessfl.streams import Streams
from wirelessfl.trace import EventKind, Status

# Slots of a round that are made before the first; more come as they are needed
_MOST_EXPECTED = 1024


@dataclass(frozen=True)
class Job:
    """Training and upload of one client, from the broadcast of the model on; all known when it starts.

    Times are in ticks.

    Attributes:
        client: the client's number.
        round_index: the round in which it started.
        version: the global model that it trains, in steps since the beginning.
        model_arrives: when it has the model.
        training_ends: when training ends, by itself or by a crash.
        ends: when its upload has arrived, or it shows that there will be none.
        compute_s: seconds that the whole training takes.
        bits: size of its upload.
        sends: whether it sends anything.
        outcome: what becomes of it.
        active: the part of its upload in which it sends; it pauses in the rest.
    """

    client: int
    round_index: int
    version: int
    model_arrives: int
    training_ends: int
    ends: int
    compute_s: float
    bits: int
    sends: bool
    outcome: int
    active: float = 1.0

    def events(self) -> list[tuple[int, EventKind, float]]:
        """The client's events: ticks, kind and bits of a message."""
        silence = float("nan")
        crashed = self.outcome == Status.CRASHED
        steps = [(self.model_arrives, EventKind.COMPUTE_START, silence)]
        steps.append((self.training_ends, EventKind.CRASH if crashed else EventKind.COMPUTE_END, silence))
        if self.sends:
            steps.append((self.training_ends, EventKind.TRANSMIT, self.bits))
        if not crashed:
            arrives = self.outcome == Status.PARTICIPATED
            steps.append((self.ends, END_EVENT[Status(self.outcome)], self.bits if arrives else silence))
        return steps

    @property
    def report(self) -> Report:
        """The message that tells the server of its end."""
        return Report(self.client, Status(self.outcome))


class JobsInFlight:
    """All jobs in flight, and the models that they started from; serialised in the checkpoint.

    Attributes:
        accounted_until: ticks up to which time on the air, training and energy are accounted for.
        models: (d,) the global model after so many steps, for as long as somebody trains it.
    """

    def __init__(self) -> None:
        self.accounted_until = 0
        self._by_client: dict[int, Job] = {}
        self.models: dict[int, NDArray[np.float32]] = {}

    def __len__(self) -> int:
        return len(self._by_client)

    @property
    def clients(self) -> NDArray[np.int64]:
        """(n,) the clients at work, ascending."""
        return np.array(sorted(self._by_client), dtype=np.int64)

    def in_order(self) -> list[Job]:
        """All jobs in the order in which they started, of one round by the numbers of their clients.

        What happens at one instant happens in this order, also in a run that was resumed.
        """
        return sorted(self._by_client.values(), key=lambda job: (job.round_index, job.client))

    def of(self, clients: NDArray[np.int64]) -> list[Job]:
        """The jobs of some clients at work, in their order."""
        return [self._by_client[client] for client in clients.tolist()]

    def start(self, job: Job, model: NDArray[np.float32]) -> None:
        """Addition of a job that starts from a model (d,)."""
        self._by_client[job.client] = job
        self.models[job.version] = model

    def finish(self, clients: NDArray[np.int64]) -> None:
        """Removal of the jobs of some clients, and of models that no job trains any more."""
        for client in clients.tolist():
            del self._by_client[client]
        used = {job.version for job in self._by_client.values()}
        self.models = {version: model for version, model in self.models.items() if version in used}

    def state(self) -> dict[str, Any]:
        """All of it, as arrays, numbers and mappings."""
        return {
            "accounted_until": self.accounted_until,
            "jobs": {str(client): asdict(job) for client, job in self._by_client.items()},
            "models": {str(version): model for version, model in self.models.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Jobs as a state has them."""
        self.accounted_until = state["accounted_until"]
        self._by_client = {int(client): Job(**job) for client, job in state["jobs"].items()}
        self.models = {int(version): model for version, model in state["models"].items()}


@dataclass(frozen=True)
class ClientSelection:
    """The clients of each round.

    Attributes:
        rule: selects them.
        count: how many, at most.
        network: channels of the clients by the laws of the scenario, for rules that read fresh gains.
        pilots: what the pilots of all registered clients take for these; None where they cost nothing.
        heard: of those who took part the round of it, their channel and their loss; written where the rule reads it.
    """

    rule: Selection
    count: int
    network: Network
    pilots: PilotCharge | None = None
    heard: RegisteredMemory = field(
        default_factory=partial(RegisteredMemory, heard_in=np.nan, gains=np.nan, relative_gains=np.nan, losses=np.nan)
    )

    @property
    def expected(self) -> int:
        """Clients to expect in a round; there may be more where their number is random."""
        scored = isinstance(self.rule, ScoredSelection)
        return min(self.count, _MOST_EXPECTED) if scored else len(self.select(Moment(1, 0.0)))

    def select(self, moment: Moment, streams: Streams | None = None) -> NDArray[np.int64]:
        """Ascending numbers of the clients selected in the round that begins at a moment."""
        return self.choose(moment, streams).clients

    def choose(self, moment: Moment, streams: Streams | None = None) -> Chosen:
        """The clients selected in the round that begins at a moment, with their scores.

        Args:
            moment: the beginning of the round.
            streams: randomness of the rule; None for that of the run.

        Raises:
            ScenarioError: a rule from outside gives something else.
        """
        rule, registered = self.rule, self.network.registry.count
        context = self._context(moment, streams or self.network.streams)
        if isinstance(rule, ScoredSelection):
            return rule.choose(context, self.count)
        clients = rule.select(context, self.count)
        fits = isinstance(clients, np.ndarray) and clients.dtype == np.int64 and clients.ndim == 1
        if not fits or len(clients) > self.count or np.any(np.diff(clients, prepend=-1, append=registered) < 1):
            raise ScenarioError(
                f"clients.selection.scheme: {type(rule).__name__} selected {clients}; allowed: at most "
                f"{self.count} ascending int64 numbers from 0 to {registered - 1}; `check_selection` tests it"
                f"{method_at(rule, 'select')}"
            )
        return Chosen(clients)

    def _context(self, moment: Moment, streams: Streams) -> SelectionContext:
        registry = self.network.registry

        def known(column: str) -> NDArray[np.float64]:
            return self.heard.columns(registry.count)[column]

        def fresh(relative: bool) -> NDArray[np.float64]:
            gain, mean = self.network.pilot_gains(moment)
            return gain / mean if relative else gain

        sources: dict[Known, Callable[[], NDArray[np.float64]]] = {
            "samples": lambda: registry.samples.astype(np.float64),
            "gains": lambda: known("gains"),
            "relative_gains": lambda: known("relative_gains"),
            "fresh_gains": lambda: fresh(relative=False),
            "fresh_relative_gains": lambda: fresh(relative=True),
            "losses": lambda: known("losses"),
            "age": lambda: moment.round_index - known("heard_in"),
        }
        reads = self.rule.facts().reads
        granted = {name: read for name, read in sources.items() if name in reads}
        return SelectionContext(registry.count, moment.round_index, streams, granted)

    def note(self, this: Round, heard: NDArray[np.int64]) -> None:
        """Entry of a finished round, in which the clients at the positions ``heard`` were heard."""
        if not self.rule.facts().reads - {"samples"}:
            return
        registered, unknown = self.network.registry.count, np.full(len(this.clients), np.nan)
        gains, relative = unknown.copy(), unknown.copy()
        for record in this.links:
            power = (np.abs(record.links.estimate) ** 2).mean(axis=(1, 2, 3))
            gains[record.positions] = power
            relative[record.positions] = power / record.links.mean_estimate_power
        estimated = np.flatnonzero(np.isfinite(gains))
        self.heard.write(
            registered,
            this.clients[estimated],
            gains=gains[estimated],
            relative_gains=relative[estimated],
        )
        clients, losses = this.clients[heard], this.train_loss(heard)
        self.heard.write(registered, clients, heard_in=np.full(len(heard), float(this.index)), losses=losses)
        if isinstance(self.rule, LearningSelection):
            duration = this.compute_time + this.time_on_air
            self.rule.learn(RoundFeedback(registered, this.index, clients, gains[heard], losses, duration[heard]))

    def memories(self) -> dict[str, Memory]:
        """What it remembers of clients, where its rule reads anything of them."""
        own = {"selection": self.heard} if self.rule.facts().reads else {}
        return {**own, **memories_among(selection_rule=self.rule)}


@dataclass(frozen=True, kw_only=True)
class KeepAtWork(ClientSelection):
    """As many clients as a rule selects: those with a job in flight, and new ones in place of the others.

    Attributes:
        jobs: who is at work.
    """

    jobs: JobsInFlight

    @override
    def choose(self, moment: Moment, streams: Streams | None = None) -> Chosen:
        """The clients at work, and new ones drawn uniformly from the others."""
        at_work = self.jobs.clients
        if isinstance(self.rule, SelectAll) or not len(at_work):
            return super().choose(moment, streams)
        generator = (streams or self.network.streams).generator("selection", moment.round_index)
        # So many in random order hold, after those at work have been left out, at least as many as are missing.
        drawn = generator.choice(self.network.registry.count, size=self.count, replace=False)
        new = drawn[~np.isin(drawn, at_work)][: self.count - len(at_work)]
        clients = np.sort(np.concatenate([at_work, new])).astype(np.int64)
        return Chosen(clients)
