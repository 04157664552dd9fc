"""Local training of the model, and how the server uses what it receives."""

from typing import Annotated, Literal

from wirelessfl.scenario.algorithm import Algorithm, FedNova, Scaffold, Upcycled
from wirelessfl.scenario.base import (
    CoreVariant,
    Count,
    Decay,
    External,
    PositiveSingle,
    Reference,
    Rule,
    Section,
    Steps,
    StepsOf,
    key,
)
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.mechanism import Mechanism, NoMechanism, noises_locally
from wirelessfl.scenario.robust import MeanRule, RobustRule
from wirelessfl.scenario.server_optimizer import ServerOptimizer, ServerSgd


class LocalOptimizer(CoreVariant, core_names={"lr": None}):
    """Base of the local optimizers: the learning rate is no argument of their class."""


class Sgd(LocalOptimizer, core="wirelessfl.learning.optimizers:SGD"):
    """Stochastic gradient descent with momentum; the momentum starts at zero in every round."""

    name: Literal["sgd"] = key("sgd", "Stochastic gradient descent with momentum.")
    lr: PositiveSingle = key(0.05, "Learning rate.")
    momentum: Decay = key(0.5, "Momentum; starts from zero in every round.")


class Adam(LocalOptimizer, core="wirelessfl.learning.optimizers:Adam"):
    """Adam (Kingma and Ba 2015)."""

    name: Literal["adam"] = key("adam", "Adam (Kingma and Ba 2015).")
    lr: PositiveSingle = key(0.001, "Learning rate.")
    beta1: Decay = key(0.9, "Decay of the mean of the gradients.")
    beta2: Decay = key(0.999, "Decay of the mean of their squares.")
    eps: PositiveSingle = key(1e-8, "Added to the denominator.")


class AdaGrad(LocalOptimizer, core="wirelessfl.learning.optimizers:AdaGrad"):
    """AdaGrad (Duchi et al. 2011)."""

    name: Literal["adagrad"] = key("adagrad", "AdaGrad (Duchi et al. 2011).")
    lr: PositiveSingle = key(0.01, "Learning rate.")
    eps: PositiveSingle = key(1e-10, "Added to the denominator.")


class ExternalOptimizer(
    External,
    family="optimizer",
    protocol="wirelessfl.learning.optimizers:Optimizer",
    check="wirelessfl.learning.local_conformance:check_optimizer",
):
    """An optimizer of the user's own."""

    name: Reference = key(
        ...,
        "Importable optimizer, as package.module:Class; no noise of the uplink is then counted, as updates may follow "
        "more than their own client's data.",
    )
    lr: PositiveSingle = key(0.05, "Learning rate.")


Optimizer = Annotated[Sgd | Adam | AdaGrad | ExternalOptimizer, Family("name", default="sgd")]


class Training(Section, exclusive=(("epochs", "steps"),), otherwise={"epochs": 5}):
    """Local training between broadcast and upload, and the server's step."""

    algorithm: Algorithm = key(Upcycled(), "Local objective, what clients keep and send, and the server's step.")
    server_optimizer: ServerOptimizer = key(
        ServerSgd(), "What the server does with the aggregated update before the algorithm's step; costs no privacy."
    )
    robust: RobustRule = key(
        MeanRule(),
        "How the server combines the single updates of a round; with too few for the rule the round is given up.",
    )
    optimizer: Optimizer = key(Sgd(), "Local optimizer.")
    lr_schedule: Annotated[Steps, StepsOf(PositiveSingle)] | None = key(
        None, "Factor on optimizer.lr as {first round: factor, ...} counted from round 1. null: 1 throughout."
    )
    epochs: Count | None = key(None, "Passes over the client's own data in a round; 5 where steps is not given.")
    steps: Count | None = key(None, "Mini-batch steps in a round, instead of epochs.")
    batch_size: Count = key(20, "Samples in a mini-batch.")
    partial_work: bool = key(
        False,
        "Whether clients that would miss the deadline stop training in time and send what they have, instead of being "
        "cut off.",
    )
    privacy: Mechanism = key(NoMechanism(), "Noise in local training.")

    def rules(self) -> list[Rule]:
        """What the algorithms ask of the local steps."""
        algorithm = self.algorithm
        return [
            (
                isinstance(algorithm, Scaffold) and algorithm.payload == 1 and self.steps is None,
                "algorithm.payload",
                "1 with training.epochs, by which clients take as many steps as they have batches",
                "2, or training.steps in place of training.epochs",
            ),
            (
                isinstance(algorithm, Scaffold) and (algorithm.payload, algorithm.option) == (1, 1),
                "algorithm.payload",
                "1 with algorithm.option: 1, whose control variate does not follow from the update",
                "2, or algorithm.option: 2",
            ),
            (
                isinstance(algorithm, Scaffold) and algorithm.option == 1 and noises_locally(self.privacy),
                "algorithm.option",
                f"1 with training.privacy.mechanism: {self.privacy.mechanism}, whose noise does not protect the "
                "gradient over all samples that a client sends",
                "2, or training.privacy.mechanism: none, or unit: client",
            ),
            (
                isinstance(algorithm, Scaffold) and algorithm.payload == 1 and self.partial_work,
                "algorithm.payload",
                "1 with training.partial_work, by which clients take unequal numbers of steps",
                "2, or partial_work: false",
            ),
            (
                isinstance(algorithm, Scaffold) and algorithm.option == 1 and self.partial_work,
                "algorithm.option",
                "1 with training.partial_work, whose gradient over all samples is no part of the local steps",
                "2, or partial_work: false",
            ),
            (
                isinstance(algorithm, Scaffold) and algorithm.option == 2 and not isinstance(self.optimizer, Sgd),
                "algorithm.option",
                f"2 with training.optimizer.name: {self.optimizer.name}",
                "1, or the optimizer sgd, whose weights of gradients are known",
            ),
            (
                isinstance(algorithm, FedNova) and not isinstance(self.optimizer, Sgd),
                "algorithm.name",
                f"fednova with training.optimizer.name: {self.optimizer.name}",
                "the optimizer sgd, whose weights of gradients are known",
            ),
        ]
