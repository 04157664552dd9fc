"""Data of a scenario: the clients' samples, test and public samples."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wirelessfl import plugins
from wirelessfl.assembly.inputs import DATASET, found, reading
from wirelessfl.assembly.objects import make_object
from wirelessfl.assembly.plan import check_clients
from wirelessfl.assembly.roles import with_poisoned_labels
from wirelessfl.conformance import method_at
from wirelessfl.errors import CheckFailed, DataError, ScenarioError, defined_at
from wirelessfl.inputs import ROOT_VARIABLE, data_folders
from wirelessfl.learning import (
    ExecutionPlan,
    PartitionedData,
    Population,
    SyntheticPopulation,
)
from wirelessfl.learning.data import (
    Dataset,
    Examples,
    LogNormalSizes,
    SharedSource,
    SkewedSources,
    load_adult,
    load_adult_stand_in,
    load_synthetic,
)
from wirelessfl.learning.data.adult import Scaling
from wirelessfl.learning.data.catalogue import download
from wirelessfl.learning.held_out import hold_out
from wirelessfl.learning.local_conformance import check_samples
from wirelessfl.learning.partition import Partition, PartitionRule, check_shares
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.base import CoreVariant, External
from wirelessfl.scenario.data import Synthetic
from wirelessfl.scenario.mechanism import (
    Mechanism,
    MedianClip,
    NoMechanism,
    Zcdp,
)
from wirelessfl.scenario.partition import NaturalPartition
from wirelessfl.scenario.partition import Partition as PartitionSection
from wirelessfl.scenario.published_data import DownloadedSet, LabelledSet
from wirelessfl.streams import Streams


def fetch(scenario: Scenario, dataset: DownloadedSet) -> None:
    """Download of what is missing of a published set, into its root or the first folder of WIRELESSFL_DATA.

    Raises:
        DataError: neither is named, or the download fails.
    """
    if dataset.root is not None:
        root = next((path for path in scenario.places.candidates(dataset.root) if path.is_dir()), Path(dataset.root))
    else:
        folders = data_folders()
        if not folders:
            raise DataError(
                f"data.dataset.download: found true without a folder; allowed: with a root or {ROOT_VARIABLE}"
            )
        root = folders[0]
    download(dataset.name, root)


def build_population(scenario: Scenario, streams: Streams) -> Population:
    """The clients' data, with the labels that they train on.

    Raises:
        DataError: files are missing or damaged, or there are more clients than samples.
        InfeasibleError: registered clients take more memory than there is.
    """
    with scenario.located():
        return with_poisoned_labels(scenario, _honest_population(scenario, streams), streams)


def _honest_population(scenario: Scenario, streams: Streams) -> Population:
    data, count = scenario.data, scenario.clients.count
    check_clients(count)
    if isinstance(data.dataset, Synthetic) and isinstance(data.partition, NaturalPartition):
        task = data.dataset
        law = _synthetic_law(task.alpha, task.beta, task.iid)
        return SyntheticPopulation(
            streams, count, law, LogNormalSizes(minimum=task.min_samples, maximum=task.max_samples)
        )
    whole = _load(scenario)
    dataset = _divided(scenario, whole)[0]
    if len(dataset.train) < count:
        raise DataError(
            f"clients.count: found {count} clients for {len(dataset.train)} training samples; "
            "allowed: at most one client for each sample (the synthetic set with partition natural makes data on "
            "demand)"
        )
    partition = _partition(data.partition, dataset, count, streams)
    owners = _owners_of_test(data.partition, dataset, count)
    population = PartitionedData(dataset, partition, whole.fingerprint(), owners_of_test=owners)
    return _without_held_out(scenario, population, streams).side_by_side()


def _without_held_out(scenario: Scenario, population: PartitionedData, streams: Streams) -> PartitionedData:
    # The population with validation and test samples taken out of the clients' shares, as the scenario says
    wanted = {"validation": scenario.data.validation, "test": scenario.data.test}
    fractions = {name: part.fraction for name, part in wanted.items() if part is not None}
    if not fractions:
        return population
    generator = streams.generator("held_out")
    partition, found = hold_out(population.partition, list(fractions.values()), generator)
    held, dataset = dict(zip(fractions, found, strict=True)), population.dataset
    parts = {name: dataset.train.take(own.rows) for name, own in held.items()}
    return replace(
        population,
        dataset=replace(dataset, test=parts.get("test", dataset.test)),
        partition=partition,
        held_out=parts.get("validation"),
        owners_of_test=held["test"].owners if "test" in held else population.owners_of_test,
    )


def _owners_of_test(choice: PartitionSection, dataset: Dataset, count: int) -> NDArray[np.int64] | None:
    # (N,) client that owns each test sample, −1 for owners that are no client; None without a natural division, and
    # where no client has any, as in a division of LEAF by users
    if not isinstance(choice, NaturalPartition) or dataset.owners is None or dataset.test_owners is None:
        return None
    clients = np.unique(dataset.owners)[:count]
    place = np.minimum(np.searchsorted(clients, dataset.test_owners), len(clients) - 1)
    owned = clients[place] == dataset.test_owners
    return np.where(owned, place, -1) if owned.any() else None


def load_data(scenario: Scenario) -> tuple[Dataset, Examples | None]:
    """The dataset that the clients share, and the public samples that were taken out of it, if any.

    Raises:
        DataError: files are missing or damaged, or the public samples leave nothing.
    """
    return _divided(scenario, _load(scenario))


def _divided(scenario: Scenario, whole: Dataset) -> tuple[Dataset, Examples | None]:
    wanted = public_samples(scenario.training.privacy)
    if wanted == 0:
        return whole, None
    kept = len(whole.train) - wanted
    if kept < 1:
        raise DataError(
            f"training.privacy.clipping.proxy_samples: found {wanted} of {len(whole.train)} training samples; "
            "allowed: fewer; the clients train on the rest"
        )
    return whole.head(kept), whole.train.take(np.arange(kept, len(whole.train)))


def public_samples(mechanism: Mechanism) -> int:
    """Number of training samples that are public and belong to no client."""
    clipping = None if isinstance(mechanism, NoMechanism | Zcdp) else mechanism.clipping
    return clipping.proxy_samples if isinstance(clipping, MedianClip) else 0


@dataclass(frozen=True)
class DataContext:
    """Context of data sets, beside their own keys.

    Attributes:
        split_seed: fixes the division into training and test samples where the source has none.
    """

    split_seed: int


def _load(scenario: Scenario) -> Dataset:
    data = scenario.data
    if isinstance(data.dataset, DownloadedSet) and data.dataset.download:
        fetch(scenario, data.dataset)
    dataset = found(scenario, DATASET, data.dataset)
    with reading(dataset) if isinstance(dataset, CoreVariant) else nullcontext():
        whole: Dataset = make_object("data.dataset.name", dataset, context=DataContext(data.split_seed))
    if isinstance(dataset, External):
        try:
            check_samples(whole)
        except CheckFailed as failure:
            where = defined_at(plugins.load_function("data.dataset.name", dataset.reference, Dataset))
            raise ScenarioError(f"data.dataset.name: {dataset.name}: {failure}{where}") from failure
    elif isinstance(dataset, LabelledSet) and dataset.classes is not None:
        whole = whole.only(dataset.classes)
    if data.test is not None:
        whole = whole.pooled()
    return whole if data.limit is None else whole.head(data.limit)


def synthetic(alpha: float, beta: float, iid: bool, min_samples: int, max_samples: int, split_seed: int) -> Dataset:
    """The synthetic task with its samples pooled."""
    return load_synthetic(
        _synthetic_law(alpha, beta, iid), LogNormalSizes(minimum=min_samples, maximum=max_samples), split_seed
    )


def adult(root: str | None, source: str, fnlwgt: bool, scaling: Scaling, split_seed: int) -> Dataset:
    """Adult from its files, or rows of the same form."""
    if source == "files":
        return load_adult(root, split_seed, fnlwgt=fnlwgt, scaling=scaling)
    return load_adult_stand_in(split_seed, fnlwgt=fnlwgt, scaling=scaling)


def _synthetic_law(alpha: float, beta: float, iid: bool) -> SharedSource | SkewedSources:
    return SharedSource() if iid else SkewedSources(alpha, beta)


@dataclass(frozen=True)
class PartitionContext:
    """Context of the functions of `wirelessfl.learning.partition`, beside their own keys."""

    num_samples: int
    targets: NDArray[np.int64]
    owners: NDArray[np.int64] | None
    num_clients: int
    generator: np.random.Generator


def _partition(choice: PartitionSection, dataset: Dataset, count: int, streams: Streams) -> Partition:
    key, generator = "data.partition.scheme", streams.generator("partition")
    if not isinstance(choice, External):
        samples, targets = len(dataset.train), dataset.train.targets.numpy()
        context = PartitionContext(samples, targets, dataset.owners, count, generator)
        divided: Partition = make_object(key, choice, context=context)
        return divided
    rule: PartitionRule = make_object(key, choice)
    divided = plugins.make(key, choice.reference, rule.divide, dataset, count, generator)
    try:
        check_shares(divided, len(dataset.train), count)
    except (TypeError, ValueError) as error:
        where = method_at(rule, "divide")
        raise ScenarioError(f"{key}: {choice.reference}: {error}{where}") from error
    return divided


def on_device(population: Population, plan: ExecutionPlan) -> Population:
    """The population with its samples where training happens, copied there once."""
    if isinstance(population, PartitionedData) and plan.device != "cpu":
        return population.to(plan.device)
    return population
