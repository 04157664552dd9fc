"""Training of blocks in a worker: data and model are built once from the scenario, a round's model comes once.

Of the randomness of a run nothing travels: it is a function of the seed, the round and the client.
"""

import pickle
import secrets
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl import plugins
from wirelessfl.assembly.data import build_population, on_device
from wirelessfl.assembly.inputs import fingerprints
from wirelessfl.assembly.learning import build_model
from wirelessfl.errors import DataError, InfeasibleError, ScenarioError, precondition
from wirelessfl.inputs import Places
from wirelessfl.learning import CohortBlock, ExecutionPlan, FlatModel, Population
from wirelessfl.learning.algorithms.base import LocalObjective
from wirelessfl.learning.cohort import BlockSum, Cohort, CohortPart, SummedBlock
from wirelessfl.learning.cohort.execution import keep_freed_memory
from wirelessfl.learning.cohort.stacked import compile_program
from wirelessfl.learning.layout import image_format
from wirelessfl.plugins import RunCode, tops_of
from wirelessfl.plugins.blame import remember
from wirelessfl.plugins.places import found_later
from wirelessfl.scenario import Scenario, dump_scenario, parse_scenario
from wirelessfl.scenario.scenario import outside_code, outside_sources
from wirelessfl.streams import Streams
from wirelessfl.transfers import aligned, upload
from wirelessfl.version import package_version

_PROCESS = secrets.token_hex(8)
_MOST_RUNS = 2  # whose data a worker keeps


@dataclass(frozen=True)
class RunOnWorkers:
    """A run as its workers have to know it, in plain values.

    Attributes:
        token: A name of its own.
        scenario: The resolved scenario as YAML.
        plugin_folders: Folders of modules that the scenario names.
        data_folders: Folders in which the files are looked up that the scenario names.
        sources: Digests of the code from outside that the scenario calls.
        data: Fingerprints of the data, by key path.
        versions: Of this package and of torch.
        process: The process that began it.
    """

    token: str
    scenario: str
    plugin_folders: tuple[str, ...]
    data_folders: tuple[str, ...]
    sources: Mapping[str, str]
    data: Mapping[str, str]
    versions: str
    process: str

    @classmethod
    def of(cls, scenario: Scenario, population: Population) -> "RunOnWorkers":
        """The run of a scenario with its data as they are here."""
        return cls(
            token=secrets.token_hex(8),
            scenario=dump_scenario(scenario),
            plugin_folders=tuple(map(str, plugins.folders())) if outside_code(scenario) else (),
            data_folders=tuple(map(str, scenario.places.folders())) if scenario.named_files() else (),
            sources=_digests(scenario),
            data=fingerprints(scenario, population),
            versions=_versions(),
            process=_PROCESS,
        )


@dataclass(frozen=True)
class RoundOnWorkers:
    """What all blocks of a round share.

    Attributes:
        run: Of which it is a round.
        start: (d,) the global model.
        shared: Local training, round, plan, transform and sum, pickled: a worker first has to find code from outside.
    """

    run: RunOnWorkers
    start: NDArray[Any]
    shared: bytes

    @classmethod
    def of(cls, run: RunOnWorkers, cohort: Cohort, total: BlockSum | None = None) -> "RoundOnWorkers":
        """The round of a cohort, and the sum whose parts come back in place of updates.

        Raises:
            ScenarioError: An object of the user's own in a sum cannot be pickled.
        """
        try:
            summed = pickle.dumps(total)
        except Exception as error:
            raise ScenarioError(
                f"uplink: how clients send cannot be told to workers ({type(error).__name__}: {error}); allowed: a "
                "power control that can be pickled, or a run without --workers and --scheduler"
            ) from error
        shared = pickle.dumps((cohort.training, cohort.round_index, cohort.plan, cohort.transform, summed))
        return cls(run, cohort.start.cpu().numpy().copy(), shared)


@dataclass(frozen=True)
class TrainedBlock:
    """A `CohortBlock` of k clients in arrays, which travel without a copy.

    Attributes:
        updates: (k, d).
        transform_state: Rows (k, ...) of the transform's state.
        others: ``norm_raw``, ``norm`` and ``train_loss`` (k,), and ``statistics`` by name.
    """

    updates: NDArray[Any]
    transform_state: Mapping[str, NDArray[Any]]
    others: Mapping[str, Any]

    @classmethod
    def of(cls, block: CohortBlock, lasting: Collection[str]) -> "TrainedBlock":
        """A block as it travels, with the rows of the transform's state that last."""
        names = ("norm_raw", "norm", "train_loss", "statistics")
        state = {name: block.transform_state[name].cpu().numpy() for name in lasting}
        return cls(block.updates.cpu().numpy(), state, {name: getattr(block, name) for name in names})

    def block(self, positions: NDArray[np.int64], device: torch.device) -> CohortBlock:
        """The block of the clients at ``positions`` (k,), with its updates on a device."""
        updates = upload([_own(self.updates)], device)[0]
        state = {name: torch.from_numpy(_own(rows)) for name, rows in self.transform_state.items()}
        return CohortBlock(positions, updates, transform_state=state, **self.others)


def _own(rows: NDArray[Any]) -> NDArray[Any]:
    # Rows that may be changed in place
    return rows if rows.flags.writeable else rows.copy()


def prepare(this: RoundOnWorkers, part: None) -> None:
    """Model and data of the run in a worker, before the first round.

    Raises:
        InfeasibleError: the worker has other versions.
        ScenarioError: it has another text of the user's own code.
        DataError: it has other data, or none.
    """
    _place(this.run)


def train_part(this: RoundOnWorkers, part: CohortPart) -> TrainedBlock:
    """The finished training of some clients, in a worker; raises what `prepare` does."""
    place = _place(this.run)
    with place.code.in_use():
        block, lasting, _ = _trained(place, this, part)
        return TrainedBlock.of(block, lasting)


def sum_part(this: RoundOnWorkers, part: CohortPart) -> SummedBlock:
    """The finished training of some clients, in a worker, of which a part of the sum is left; raises the same."""
    place = _place(this.run)
    with place.code.in_use():
        block, lasting, summed = _trained(place, this, part)
        total: BlockSum = pickle.loads(summed)  # noqa: S301 - of who runs code here anyway
        state = {name: block.transform_state[name].cpu() for name in lasting}
        return SummedBlock.of(total, lasting, replace(block, positions=part.positions, transform_state=state))


def _trained(place: "_Place", this: RoundOnWorkers, part: CohortPart) -> tuple[CohortBlock, Collection[str], bytes]:
    # The block, the names of the rows of the transform's state that last, and the sum as it was sent
    torch.set_num_threads(1)  # in this thread: workers are counted by threads
    training, round_index, plan, transform, summed = pickle.loads(this.shared)  # noqa: S301 - as above
    device = torch.device(plan.device)
    kept = part.transform_state
    cohort = Cohort(
        model=place.model,
        start=aligned(this.start).to(device),
        population=place.on_device(plan),
        clients=part.clients,
        steps=part.steps,
        training=training,
        streams=place.streams,
        round_index=round_index,
        plan=plan,
        transform=transform,
        transform_state=None if kept is None else {name: torch.from_numpy(_own(rows)) for name, rows in kept.items()},
        objective=None if part.prox_mu is None else lambda _: _objective(part, device),
        begin=None if part.begin is None else _own(part.begin),
    )
    return cohort.train_block(np.arange(len(part.clients))), getattr(transform, "lasting", ()), summed


def _objective(part: CohortPart, device: torch.device) -> LocalObjective:
    assert part.prox_mu is not None
    correction = None if part.correction is None else upload([_own(part.correction)], device)[0]
    return LocalObjective(part.prox_mu, correction)


class _Place:
    # Code from outside, model and data of a run in this process
    def __init__(self, code: RunCode, model: FlatModel, population: Population, streams: Streams) -> None:
        self.code, self.model, self.streams = code, model, streams
        self._populations = {"cpu": population}
        self._moving = threading.Lock()

    def on_device(self, plan: ExecutionPlan) -> Population:
        with self._moving:
            if plan.device not in self._populations:
                self._populations[plan.device] = on_device(self._populations["cpu"], plan)
            return self._populations[plan.device]


_looking = threading.Lock()
_building: dict[str, threading.Lock] = {}
_places: dict[str, _Place] = {}


def forget(token: str) -> None:
    """Model and data of a run that has ended are given up in this process."""
    _places.pop(token, None)


def _place(run: RunOnWorkers) -> _Place:
    with _looking:
        if (found := _places.get(run.token)) is not None:
            return found
        building = _building.setdefault(run.token, threading.Lock())
    with building:  # other runs go on: code from outside may have to wait for its turn
        if (found := _places.get(run.token)) is not None:
            return found
        place = _built(run)
        with _looking:
            for old in list(_places)[: 1 - _MOST_RUNS]:
                del _places[old]
            _places[run.token] = place
            _building.pop(run.token, None)
        return place


def _built(run: RunOnWorkers) -> _Place:
    keep_freed_memory()
    allowed = f"allowed: {run.versions}, as where the run was begun"
    precondition(run.versions == _versions(), f"a worker has {_versions()}; {allowed}", InfeasibleError)
    # Workers of a cluster outlive a run, and edits; this process itself has the code of its own runs
    tops = tops_of(run.sources) if run.process != _PROCESS else ()
    code = RunCode(tops, [Path(folder) for folder in run.plugin_folders])
    with code.in_use():
        return _Place(code, *_found(run))


def _found(run: RunOnWorkers) -> tuple[FlatModel, Population, Streams]:
    # Model, data and randomness of a run whose code from outside can be imported
    places = Places.beside(*map(Path, run.data_folders))
    scenario = parse_scenario(run.scenario, "the scenario of the run", places=places)
    _refuse_others("code", run.sources, _digests(scenario), ScenarioError)
    sources = outside_sources(scenario)
    found_later(() if sources is None else sources.tops)
    for reference in outside_code(scenario).values():
        remember(reference)
    streams = Streams(scenario.seed)
    population = build_population(scenario, streams)
    _refuse_others("data", run.data, fingerprints(scenario, population), DataError)
    model = build_model(scenario, population)
    compile_program(model)
    image_format(model)
    return model, population, streams


def _refuse_others(
    what: str, expected: Mapping[str, str], here: Mapping[str, str], error: type[ScenarioError | DataError]
) -> None:
    other = ", ".join(sorted(name for name in {*here, *expected} if here.get(name) != expected.get(name)))
    precondition(not other, f"{other}: a worker has other {what}; allowed: the same on all machines", error)


def _digests(scenario: Scenario) -> dict[str, str]:
    sources = outside_sources(scenario)
    return {} if sources is None else dict(sources.digests)


def _versions() -> str:
    return f"wirelessfl {package_version()} with torch {torch.__version__}"
