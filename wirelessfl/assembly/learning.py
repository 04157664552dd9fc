"""Data, model, local training and algorithm of a scenario."""

from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl import plugins
from wirelessfl.assembly.inputs import DATASET, found
from wirelessfl.assembly.objects import make_object
from wirelessfl.assembly.plan import check_clients
from wirelessfl.assembly.roles import with_poisoned_labels
from wirelessfl.conformance import given, method_at, misfit
from wirelessfl.errors import CheckFailed, DataError, ScenarioError, defined_at
from wirelessfl.learning import (
    Algorithm,
    AlgorithmFacts,
    ClientRows,
    ExecutionPlan,
    FlatModel,
    LocalObjective,
    LocalTraining,
    PartitionedData,
    Population,
    ServerState,
    SyntheticPopulation,
)
from wirelessfl.learning.batches import Sampling
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
from wirelessfl.learning.held_out import hold_out
from wirelessfl.learning.local_conformance import check_samples
from wirelessfl.learning.partition import Partition, PartitionRule, check_shares
from wirelessfl.learning.robust import RobustRule
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.base import CoreVariant, External
from wirelessfl.scenario.data import LabelledSet, NaturalPartition, Synthetic
from wirelessfl.scenario.data import Partition as PartitionSection
from wirelessfl.scenario.mechanism import (
    ExternalMechanism,
    GradientNoise,
    Mechanism,
    MedianClip,
    NoMechanism,
    Zcdp,
)
from wirelessfl.scenario.training import Sgd
from wirelessfl.streams import Streams


def build_population(scenario: Scenario, streams: Streams) -> Population:
    """The clients' data, with the labels that they train on.

    Raises:
        DataError: files are missing or damaged, or there are more clients than samples.
        InfeasibleError: registered clients take more memory than there is.
    """
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
    population = PartitionedData(dataset, partition, whole.fingerprint())
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
        owners_of_test=held["test"].owners if "test" in held else None,
    )


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
    data, dataset = scenario.data, found(scenario, DATASET, scenario.data.dataset)
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


def build_model(scenario: Scenario, population: Population) -> FlatModel:
    """The model as a function of one flat vector.

    Raises:
        ScenarioError: the model does not fit the data, or the user's own cannot be trained sample by sample.
    """
    shape, classes = population.feature_shape, population.num_classes
    try:
        return FlatModel(partial(make_object, "model.name", scenario.model, shape, classes), shape, classes)
    except (ValueError, RuntimeError) as error:
        place = plugins.place_of(error)
        where = f" ({place})" if place else _model_at(scenario)
        raise ScenarioError(
            f"model: {scenario.model.name} does not fit inputs of shape {shape}: {error}{where}"
        ) from error


def _model_at(scenario: Scenario) -> str:
    # Where a model from outside is defined
    if not isinstance(scenario.model, External):
        return ""
    return defined_at(plugins.load_function("model.name", scenario.model.reference, torch.nn.Module))


@dataclass(frozen=True)
class LocalSteps:
    """Context of algorithms, beside their own keys.

    Attributes:
        momentum: ρ, momentum of the clients' gradient descent; 0 for any other optimizer.
    """

    momentum: float


def build_algorithm(scenario: Scenario) -> Algorithm:
    """The federated algorithm.

    Raises:
        ScenarioError: one from outside that cannot be used.
    """
    training = scenario.training
    steps = LocalSteps(training.optimizer.momentum if isinstance(training.optimizer, Sgd) else 0.0)
    made: Algorithm = make_object("training.algorithm.name", training.algorithm, context=steps)
    given("algorithm", made, "facts", made.facts(), AlgorithmFacts)
    return made


def build_robust_rule(scenario: Scenario) -> RobustRule:
    """The rule by which the server combines single updates.

    Raises:
        ScenarioError: one from outside that cannot be used.
    """
    made: RobustRule = make_object("training.robust.rule", scenario.training.robust)
    least = given("robust", made, "least", made.least(), int)
    most = scenario.clients.most
    if not 1 <= least <= most:
        raise misfit("robust", made, "least", str(least), f"1 to {most}, the updates that a round can have")
    return made


def uploads_are_updates(scenario: Scenario) -> bool:
    """Whether clients are known to send the outcome of this round's local steps alone.

    Not so where they keep rows, by which samples of earlier rounds reach the upload, nor with an algorithm from
    outside: bounds on one sample's share of an update, and noise that adds up in a sum of them, then prove nothing.
    """
    return isinstance(scenario.training.algorithm, CoreVariant) and not build_algorithm(scenario).facts().client_side


def build_training(scenario: Scenario, algorithm: Algorithm, model: FlatModel) -> LocalTraining:
    """Local training of every client in a round."""
    training, server = scenario.training, algorithm.start(torch.zeros(model.dimension))
    given("algorithm", algorithm, "start", server, ServerState)
    rows = algorithm.first_rows(server, np.zeros(0, dtype=np.int64))
    nobody = given("algorithm", algorithm, "first_rows", rows, ClientRows)
    objective = given("algorithm", algorithm, "client", algorithm.client(server, nobody), LocalObjective)
    return LocalTraining(
        optimizer=make_object("training.optimizer.name", training.optimizer),
        learning_rate=training.optimizer.lr,
        batch_size=training.batch_size,
        epochs=training.epochs,
        steps=training.steps,
        sampling=_sampling(training.privacy),
        prox_mu=objective.prox_mu,
        clip=scenario.uplink.clip,
    )


def _sampling(mechanism: Mechanism) -> Sampling:
    match mechanism:
        case GradientNoise() | ExternalMechanism():
            return mechanism.sampling
        case NoMechanism() | Zcdp():
            return "shuffle"
        case _:
            assert_never(mechanism)


def on_device(population: Population, plan: ExecutionPlan) -> Population:
    """The population with its samples where training happens, copied there once."""
    if isinstance(population, PartitionedData) and plan.device != "cpu":
        return population.to(plan.device)
    return population
