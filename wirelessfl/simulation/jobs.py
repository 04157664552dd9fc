"""The jobs of clients at work across rounds."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import Link, Stretch
from wirelessfl.simulation.medium import END_EVENT, Report, seconds
from wirelessfl.trace import EventKind, Status


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
        link: of its upload.
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
    link: Link

    def shares(self, first: int, last: int) -> tuple[float, float]:
        """The parts of a stretch of time in its upload in which it sends it, and in which it sends pilots."""
        if self.link.is_even or (first == self.training_ends and last == self.ends):
            return self.link.on_air(self.bits), self.link.piloting(self.bits)
        before, until = (self._sent(seconds(instant - self.training_ends)) for instant in (first, last))
        part_s = seconds(last - first)
        return (until[0] - before[0]) / part_s, (until[1] - before[1]) / part_s

    def _sent(self, elapsed_s: float) -> tuple[float, float]:
        # Seconds of the upload and of pilots since the upload began
        if elapsed_s == 0:
            return 0.0, 0.0
        active, piloting = self.link.cut_off(self.bits, elapsed_s)
        return active * elapsed_s, piloting * elapsed_s

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
            "jobs": {str(client): _state_of(job) for client, job in self._by_client.items()},
            "models": {str(version): model for version, model in self.models.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Jobs as a state has them."""
        self.accounted_until = state["accounted_until"]
        self._by_client = {int(client): _job_of(job) for client, job in state["jobs"].items()}
        self.models = {int(version): model for version, model in state["models"].items()}


def _state_of(job: Job) -> dict[str, Any]:
    # The fields of a job and of its link; stretches by their place
    course = job.link.course
    stretches = None if course is None else {str(place): one._asdict() for place, one in enumerate(course)}
    return {**asdict(job), "link": {**asdict(replace(job.link, course=None)), "course": stretches}}


def _job_of(state: Mapping[str, Any]) -> Job:
    link = dict(state["link"])
    held = link.pop("course")
    course = None if held is None else tuple(Stretch(**held[str(place)]) for place in range(len(held)))
    return Job(**{**state, "link": Link(**link, course=course)})
