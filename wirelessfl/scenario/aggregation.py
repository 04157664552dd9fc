"""When the server steps the model: in rounds, or whenever updates come in."""

from typing import Annotated, Literal

from wirelessfl.scenario.base import CoreVariant, Count, Family, NonNegative, Section, Share, key


class ConstantStaleness(CoreVariant, core="wirelessfl.learning.aggregation:ConstantDiscount"):
    """No discount."""

    name: Literal["constant"] = key("constant", "s = 1: late updates count as much as fresh ones.")


class PolynomialStaleness(CoreVariant, core="wirelessfl.learning.aggregation:PolynomialDiscount"):
    """A power of the staleness (Xie et al. 2019)."""

    name: Literal["polynomial"] = key("polynomial", "s = (1 + staleness)^(-exponent).")
    exponent: NonNegative = key(0.5, "The exponent a.")


class HingeStaleness(CoreVariant, core="wirelessfl.learning.aggregation:HingeDiscount"):
    """No discount for a while, then a hyperbola (Xie et al. 2019)."""

    name: Literal["hinge"] = key("hinge", "s = 1 up to grace, then 1/(slope (staleness - grace) + 1).")
    slope: NonNegative = key(10.0, "The slope a.")
    grace: NonNegative = key(4.0, "The staleness b up to which nothing is taken off.")


Staleness = Annotated[ConstantStaleness | PolynomialStaleness | HingeStaleness, Family("name", default="polynomial")]


class Synchronous(Section):
    """Rounds."""

    mode: Literal["synchronous"] = key(
        "synchronous", "Rounds: all clients of a round start from one model, and the server steps it once."
    )


class Asynchronous(Section):
    """No waiting for each other."""

    mode: Literal["asynchronous"] = key(
        "asynchronous", "Clients train at their own pace; the server steps the model whenever enough updates are in."
    )
    buffer: Count = key(1, "Updates that make a step, which ends a round: 1 is FedAsync, more is FedBuff.")
    mixing: Share = key(0.6, "Weight α of a fresh update, or of a buffer of them, against the model that is there.")
    mixes: Literal["models", "updates"] = key(
        "models", "models: w + α s (w_i - w), as in FedAsync; updates: w + α s Δ_i, as in FedBuff."
    )
    staleness: Staleness = key(PolynomialStaleness(), "Discount s of updates from a model that was left behind.")


Aggregation = Annotated[Synchronous | Asynchronous, Family("mode", default="synchronous")]
