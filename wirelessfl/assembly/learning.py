"""Model, local training and algorithm of a scenario."""

from dataclasses import dataclass
from functools import partial
from typing import assert_never

import numpy as np
import torch

from wirelessfl import plugins
from wirelessfl.assembly.inputs import found
from wirelessfl.assembly.objects import make_object
from wirelessfl.conformance import given, misfit
from wirelessfl.errors import ScenarioError, defined_at
from wirelessfl.learning import (
    Algorithm,
    AlgorithmFacts,
    ClientRows,
    FlatModel,
    LocalObjective,
    LocalTraining,
    Population,
    ServerState,
)
from wirelessfl.learning.adapters import LowRankAdaptation, TrainedPart
from wirelessfl.learning.augmentation import Augmentation
from wirelessfl.learning.batches import Sampling
from wirelessfl.learning.flat import INITIAL_MODEL
from wirelessfl.learning.robust import RobustRule
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.base import CoreVariant, External
from wirelessfl.scenario.data import Augment
from wirelessfl.scenario.mechanism import (
    ExternalMechanism,
    GradientNoise,
    Mechanism,
    NoMechanism,
    Zcdp,
    noises_locally,
)
from wirelessfl.scenario.model import Model, SequenceModel
from wirelessfl.scenario.training import Sgd
from wirelessfl.scenario.uplink import OverTheAir
from wirelessfl.streams import Streams


@dataclass(frozen=True)
class Tokens:
    """Context of models, beside their own keys.

    Attributes:
        vocabulary: V, the number of different words or letters; 0 where inputs are quantities.
    """

    vocabulary: int


def build_model(scenario: Scenario, population: Population) -> FlatModel:
    """The model as a function of one flat vector.

    Raises:
        ScenarioError: the model does not fit the data, or the user's own cannot be trained sample by sample.
    """
    shape, classes = population.feature_shape, population.num_classes
    words, model = population.vocabulary, scenario.model
    if not isinstance(model, External) and isinstance(model, SequenceModel) != (words is not None):
        kinds = " | ".join(one.model_fields["name"].default for one in SequenceModel.__subclasses__())
        inputs, allowed = ("quantities", f"any model but {kinds}") if words is None else ("words or letters", kinds)
        raise ScenarioError(
            f"model.name: found {model.name} with the dataset {scenario.data.dataset.name}, whose inputs are {inputs}; "
            f"allowed: {allowed}"
        )
    part, model = _trained_part(model), found(scenario, "model", model)
    build = partial(_module, model, part.adaptation, shape, classes, Tokens(len(words or ())))
    try:
        return FlatModel(build, shape, classes, part, Streams(scenario.seed).torch_seed(INITIAL_MODEL))
    except (ValueError, RuntimeError) as error:
        place = plugins.place_of(error)
        where = f" ({place})" if place else _model_at(scenario)
        raise ScenarioError(
            f"model.name: found {scenario.model.name}, which does not fit inputs of shape {shape}: {error}{where}; "
            "allowed: a model that takes them"
        ) from error


def _trained_part(model: Model) -> TrainedPart:
    lora = model.lora
    if lora is None:
        return TrainedPart(model.trainable)
    alpha = float(lora.rank) if lora.alpha is None else lora.alpha
    return TrainedPart(model.trainable, LowRankAdaptation(lora.rank, alpha, lora.targets, lora.unfrozen))


def _module(
    model: Model, adaptation: LowRankAdaptation | None, shape: tuple[int, ...], classes: int, context: Tokens
) -> torch.nn.Module:
    module: torch.nn.Module = make_object("model.name", model, shape, classes, context=context)
    return module if adaptation is None else adaptation.adapted(module)


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
    facts = given("algorithm", made, "facts", made.facts(), AlgorithmFacts)
    if facts.reads_gradients and noises_locally(training.privacy):
        found = f"reads_gradients with training.privacy.mechanism: {training.privacy.mechanism}"
        allowed = "the mechanism none, or unit: client; noise in local training protects nothing that is read beside it"
        raise misfit("algorithm", made, "facts", found, allowed)
    return made


def build_robust_rule(scenario: Scenario) -> RobustRule:
    """The rule by which the server combines single updates.

    Raises:
        ScenarioError: one from outside that cannot be used.
    """
    made: RobustRule = make_object("training.robust.rule", scenario.training.robust)
    least = given("robust", made, "least", made.least(), int)
    most, of_what = scenario.clients.most, "updates"
    if isinstance(scenario.uplink, OverTheAir) and scenario.uplink.slot_groups > 1:
        most, of_what = scenario.uplink.slot_groups, "sums of uplink.slot_groups"
    if not 1 <= least <= most:
        raise misfit("robust", made, "least", str(least), f"1 to {most}, the {of_what} that a round can have")
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
        augmentation=_augmentation(scenario.data.augment, model.feature_shape),
    )


def _augmentation(augment: Augment | None, shape: tuple[int, ...]) -> Augmentation | None:
    if augment is None:
        return None
    if len(shape) != 3:
        raise ScenarioError(
            f"data.augment: found a value with inputs of shape {shape}; allowed: null: images (channels, height, "
            "width) alone are augmented"
        )
    side = min(shape[1:])
    if augment.crop >= side:
        raise ScenarioError(f"data.augment.crop: found {augment.crop} with images of {shape}; allowed: below {side}")
    return Augmentation(**augment.model_dump())


def _sampling(mechanism: Mechanism) -> Sampling:
    match mechanism:
        case GradientNoise() | ExternalMechanism():
            return mechanism.sampling
        case NoMechanism() | Zcdp():
            return "shuffle"
        case _:
            assert_never(mechanism)
