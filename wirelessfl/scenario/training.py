"""Local training and how the server uses what it receives."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from wirelessfl.scenario.base import (
    ByShape,
    CoreVariant,
    Count,
    External,
    Family,
    NonNegative,
    NonNegativeSingle,
    PositiveSingle,
    Reference,
    Section,
    Steps,
    StepsOf,
    key,
)
from wirelessfl.scenario.mechanism import Mechanism, NoMechanism

Decay = Annotated[float, Field(ge=0, lt=1)]


class FedAvg(CoreVariant, core="wirelessfl.learning.algorithms.fedavg:FedAvg"):
    """Federated averaging (McMahan et al. 2017)."""

    name: Literal["fedavg"] = key("fedavg", "Federated averaging: the aggregate is added to the model.")


class FedProx(CoreVariant, core="wirelessfl.learning.algorithms.fedprox:FedProx"):
    """Federated averaging with a proximal term in the local loss (Li et al. 2020)."""

    name: Literal["fedprox"] = key("fedprox", "Federated averaging with a proximal term in the local loss.")
    mu: NonNegativeSingle = key(0.1, "Weight μ of the proximal term (μ/2)||w - w_server||².")


class Upcycled(CoreVariant, core="wirelessfl.learning.algorithms.upcycled:Upcycled"):
    """FedProx with a second step at the server that touches no data (Upcycled-FL)."""

    name: Literal["upcycled"] = key("upcycled", "FedProx plus a server step that re-uses the last update.")
    mu: PositiveSingle = key(0.1, "Weight μ of the proximal term; the server repeats μ/(μ + λ) of its last step.")
    lam: Annotated[NonNegative | Annotated[Steps, StepsOf(NonNegative)], ByShape()] = key(
        Steps((1, 26, 51, 76), (0.15, 0.4, 0.9, 1.9)),
        "λ of the server's second step: one number, or {first round: value, ...} counted from round 1.",
        alias="lambda",
    )

    def arguments(self) -> dict[str, Any]:
        """μ, and λ as {first round: value}."""
        return {"mu": self.mu, "schedule": self.lam.mapping() if isinstance(self.lam, Steps) else {1: self.lam}}


class ExternalAlgorithm(External):
    """An algorithm of the user's own."""

    family: ClassVar[str] = "algorithm"
    protocol: ClassVar[str] = "wirelessfl.learning:Algorithm"
    check: ClassVar[str] = "wirelessfl.learning.conformance:check_algorithm"

    name: Reference = key(..., "Importable algorithm, client side and server step together, as package.module:Class.")


Algorithm = Annotated[FedAvg | FedProx | Upcycled | ExternalAlgorithm, Family("name", default="upcycled")]


class ServerSgd(CoreVariant, core="wirelessfl.learning.server_optimizers:ServerSgd"):
    """Gradient descent with momentum on the pseudo-gradient."""

    name: Literal["sgd"] = key("sgd", "The aggregated update, with momentum, times lr is added to the global model.")
    lr: PositiveSingle = key(1.0, "Learning rate of the server.")
    momentum: Decay = key(0.0, "Momentum over rounds.")


class ExternalServerOptimizer(External):
    """A server optimizer of the user's own."""

    family: ClassVar[str] = "server_optimizer"
    protocol: ClassVar[str] = "wirelessfl.learning:ServerOptimizer"
    check: ClassVar[str] = "wirelessfl.learning.conformance:check_server_optimizer"

    name: Reference = key(..., "Importable server optimizer, as package.module:Class.")


ServerOptimizer = Annotated[ServerSgd | ExternalServerOptimizer, Family("name", default="sgd")]


class LocalOptimizer(CoreVariant, core_names={"lr": None}):
    """What the local optimizers have in common: the learning rate is no argument of their class."""


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


class ExternalOptimizer(External):
    """An optimizer of the user's own."""

    family: ClassVar[str] = "optimizer"
    protocol: ClassVar[str] = "wirelessfl.learning.optimizers:Optimizer"
    check: ClassVar[str] = "wirelessfl.learning.local_conformance:check_optimizer"

    name: Reference = key(
        ...,
        "Importable optimizer, as package.module:Class; no noise of the uplink is then counted, as updates may follow "
        "more than their own client's data.",
    )
    lr: PositiveSingle = key(0.05, "Learning rate.")


Optimizer = Annotated[Sgd | Adam | AdaGrad | ExternalOptimizer, Family("name", default="sgd")]


class Training(Section, exclusive=(("epochs", "steps"),), otherwise={"epochs": 5}):
    """What a client does between broadcast and upload, and what the server does with the sum."""

    algorithm: Algorithm = key(Upcycled(), "Local objective, what clients keep and send, and the server's step.")
    server_optimizer: ServerOptimizer = key(
        ServerSgd(), "What the server makes of the aggregated update before the algorithm's step; costs no privacy."
    )
    optimizer: Optimizer = key(Sgd(), "Local optimizer.")
    lr_schedule: Annotated[Steps, StepsOf(PositiveSingle)] | None = key(
        None, "Factor on optimizer.lr as {first round: factor, ...} counted from round 1. null: 1 throughout."
    )
    epochs: Count | None = key(None, "Passes over the client's own data in a round; 5 where steps is not given.")
    steps: Count | None = key(None, "Mini-batch steps in a round, instead of epochs.")
    batch_size: Count = key(20, "Samples in a mini-batch.")
    privacy: Mechanism = key(NoMechanism(), "Noise in local training.")
