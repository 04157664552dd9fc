"""Server optimizers: what the server does with the aggregated update before the algorithm's step."""

from typing import Annotated, Literal

from wirelessfl.scenario.base import (
    CoreVariant,
    Decay,
    External,
    NonNegativeSingle,
    PositiveSingle,
    Reference,
    key,
)
from wirelessfl.scenario.family import Family


class ServerSgd(CoreVariant, core="wirelessfl.learning.server_optimizers:ServerSgd"):
    """Gradient descent with momentum on the pseudo-gradient."""

    name: Literal["sgd"] = key("sgd", "The aggregated update, with momentum, times lr is added to the global model.")
    lr: PositiveSingle = key(1.0, "Learning rate of the server.")
    momentum: Decay = key(0.0, "Momentum over rounds.")


class Adaptive(CoreVariant):
    """What the server optimizers of Reddi et al. 2021 have in common."""

    name: str = key("adam", "Which of them.")
    lr: PositiveSingle = key(0.01, "Learning rate η of the server.")
    tau: PositiveSingle = key(0.001, "Degree of adaptivity τ: the step is η m/(√v + τ).")
    initial_v: NonNegativeSingle | None = key(None, "v before the first round. null: τ², as in the paper.")


class Decaying(Adaptive):
    """Adaptive server optimizers with momentum whose second moment forgets."""

    beta1: Decay = key(0.9, "Decay β₁ of the mean m of the updates.")
    beta2: Decay = key(0.99, "Decay β₂ of the mean v of their squares.")
    bias_correction: bool = key(False, "Whether η is multiplied by √(1 - β₂ᵗ)/(1 - β₁ᵗ) in step t; the paper has none.")


class ServerAdam(Decaying, core="wirelessfl.learning.server_optimizers:ServerAdam"):
    """FedAdam (Reddi et al. 2021)."""

    name: Literal["adam"] = key("adam", "v ← β₂ v + (1 - β₂) g² (FedAdam, Reddi et al. 2021).")


class ServerYogi(Decaying, core="wirelessfl.learning.server_optimizers:ServerYogi"):
    """FedYogi (Reddi et al. 2021)."""

    name: Literal["yogi"] = key("yogi", "v ← v - (1 - β₂) g² sign(v - g²) (FedYogi, Reddi et al. 2021).")


class ServerAdaGrad(Adaptive, core="wirelessfl.learning.server_optimizers:ServerAdaGrad"):
    """FedAdagrad (Reddi et al. 2021)."""

    name: Literal["adagrad"] = key("adagrad", "v ← v + g², without momentum (FedAdagrad, Reddi et al. 2021).")


class ExternalServerOptimizer(
    External,
    family="server_optimizer",
    protocol="wirelessfl.learning:ServerOptimizer",
    check="wirelessfl.learning.conformance:check_server_optimizer",
):
    """A server optimizer of the user's own."""

    name: Reference = key(..., "Importable server optimizer, as package.module:Class.")


ServerOptimizer = Annotated[
    ServerSgd | ServerAdam | ServerYogi | ServerAdaGrad | ExternalServerOptimizer, Family("name", default="sgd")
]
