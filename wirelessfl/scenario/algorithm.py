"""Federated algorithms: the clients' local objective, what they keep and send, and the server's step."""

from typing import Annotated, Any, Literal

from wirelessfl.scenario.base import (
    ONE_OF_NUMBERS,
    CoreVariant,
    Count,
    External,
    NonNegative,
    NonNegativeSingle,
    PositiveSingle,
    Reference,
    Steps,
    StepsOf,
    key,
)
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.shape import ByShape


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


class Scaffold(CoreVariant, core="wirelessfl.learning.algorithms.scaffold:Scaffold"):
    """Control variates at the clients and at the server (Karimireddy et al. 2020)."""

    name: Literal["scaffold"] = key("scaffold", "SCAFFOLD: control variates correct every local gradient.")
    option: Annotated[Literal[1, 2], ONE_OF_NUMBERS] = key(
        2,
        "Control variate of a client: 1, its gradient at the received model, by one more pass over its samples; 2, "
        "the mean gradient of its local steps.",
    )
    server_lr: PositiveSingle = key(1.0, "Factor on the mean update.")
    payload: Annotated[Literal[1, 2], ONE_OF_NUMBERS] = key(
        2, "Vectors that a client sends. 1: the server computes the other, where all clients take equally many steps."
    )


class FedDyn(CoreVariant, core="wirelessfl.learning.algorithms.feddyn:FedDyn"):
    """Dynamic regularisation of the local losses (Acar et al. 2021)."""

    name: Literal["feddyn"] = key("feddyn", "FedDyn: local losses are regularised so that their minima agree.")
    alpha: PositiveSingle = key(0.01, "Weight α of the regularisation.")


class FedNova(CoreVariant, core="wirelessfl.learning.algorithms.fednova:FedNova"):
    """Updates normalised by the length of the local training (Wang et al. 2020)."""

    name: Literal["fednova"] = key("fednova", "FedNova: an update is divided by the weight of its gradients.")
    mu: NonNegativeSingle = key(0.0, "Weight μ of a proximal term (μ/2)||w - w_server||².")


class Ditto(CoreVariant, core="wirelessfl.learning.algorithms.personal:Ditto"):
    """Federated averaging, and a model of each client's own beside it (Li et al. 2021)."""

    name: Literal["ditto"] = key("ditto", "Ditto: personal models v, pulled to the global one, that stay with clients.")
    lam: NonNegativeSingle = key(0.1, "Weight λ of the pull: v - η(∇F(v) + λ(v - w_server)).", alias="lambda")


class FineTune(
    CoreVariant,
    core="wirelessfl.learning.algorithms.personal:FineTune",
    exclusive=(("epochs", "steps"),),
    otherwise={"epochs": 1},
):
    """Federated averaging, tested after local training of each client."""

    name: Literal["fine_tune"] = key(
        "fine_tune", "Federated averaging; each client trains the global model on before its own test samples are met."
    )
    steps: Count | None = key(None, "Local steps before a test.")
    epochs: Count | None = key(None, "Passes over the client's own data before a test; 1 where steps is not given.")


class ExternalAlgorithm(
    External,
    family="algorithm",
    protocol="wirelessfl.learning:Algorithm",
    check="wirelessfl.learning.conformance:check_algorithm",
    context="wirelessfl.assembly.learning:LocalSteps",
):
    """An algorithm of the user's own."""

    name: Reference = key(..., "Importable algorithm, client side and server step together, as package.module:Class.")


Algorithm = Annotated[
    FedAvg | FedProx | Upcycled | Scaffold | FedDyn | FedNova | Ditto | FineTune | ExternalAlgorithm,
    Family("name", default="upcycled"),
]
