"""Robust rules: how the server combines the single updates of a round."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import CoreVariant, Count, External, NonNegative, Positive, Reference, key
from wirelessfl.scenario.family import Family

Faulty = Annotated[int, Field(ge=0, le=10**9)]


class MeanRule(CoreVariant, core="wirelessfl.learning.robust:Mean"):
    """The mean."""

    rule: Literal["mean"] = key("mean", "The mean, weighted by samples: not robust.")


class CountedRule(CoreVariant):
    """Base of the rules for a number of malicious clients."""

    rule: str = key("krum", "Which of them.")
    f: Faulty = key(1, "Malicious clients f that the rule is made for, among those who arrive.")

    @property
    def least(self) -> int:
        """The fewest updates for which it is defined."""
        return 2 * self.f + 3


class KrumRule(CountedRule, core="wirelessfl.learning.robust:Krum"):
    """Blanchard et al. 2017."""

    rule: Literal["krum"] = key(
        "krum", "The update closest to its n - f - 2 nearest others (Krum), of at least 2f + 3 that arrive."
    )


class MultiKrumRule(CountedRule, core="wirelessfl.learning.robust:MultiKrum"):
    """Blanchard et al. 2017."""

    rule: Literal["multi_krum"] = key(
        "multi_krum", "The plain mean of the m updates that Krum ranks first (Multi-Krum), of at least 2f + 3."
    )
    m: Count | None = key(None, "Updates that are averaged. null: n - f - 2 of n that arrive.")


class BulyanRule(CountedRule, core="wirelessfl.learning.robust:Bulyan"):
    """El Mhamdi et al. 2018."""

    rule: Literal["bulyan"] = key(
        "bulyan",
        "n - 2f updates chosen by Krum one after the other, and of each coordinate the mean of the n - 4f values "
        "closest to the median (Bulyan), of at least 4f + 3.",
    )

    @property
    def least(self) -> int:
        """The fewest updates for which it is defined."""
        return 4 * self.f + 3


class TrimmedMeanRule(CoreVariant, core="wirelessfl.learning.robust:TrimmedMean"):
    """Yin et al. 2018."""

    rule: Literal["trimmed_mean"] = key(
        "trimmed_mean", "The plain mean of each coordinate without its largest and its smallest values."
    )
    trim: Annotated[float, Field(ge=0, lt=0.5)] = key(
        0.1, "Share of the values that is left out at either end of each coordinate, rounded down to whole values."
    )


class MedianRule(CoreVariant, core="wirelessfl.learning.robust:Median"):
    """Yin et al. 2018."""

    rule: Literal["median"] = key("median", "The median of each coordinate.")
    weighted: bool = key(False, "Whether half of the samples decides in place of half of the clients.")


class GeometricMedianRule(CoreVariant, core="wirelessfl.learning.robust:GeometricMedian"):
    """Pillutla et al. 2022."""

    rule: Literal["geometric_median"] = key(
        "geometric_median",
        "The point with the least sum of distances to all updates, weighted by samples (RFA; Weiszfeld's algorithm).",
    )
    iterations: Annotated[int, Field(ge=1, le=10**6)] = key(100, "Iterations at most.")
    tolerance: NonNegative = key(1e-6, "Relative change of the point below which they end.")
    smoothing: Positive = key(1e-6, "Distance below which an update counts as this far away.")


class NormClipRule(CoreVariant, core="wirelessfl.learning.robust:NormClip"):
    """Sun et al. 2019."""

    rule: Literal["norm_clip"] = key("norm_clip", "The mean, weighted by samples, of updates cut to a norm.")
    norm: Positive = key(1.0, "Largest norm of an update; a longer one is scaled down to it.")


class ExternalRule(
    External,
    family="robust",
    protocol="wirelessfl.learning.robust:RobustRule",
    check="wirelessfl.learning.robust.conformance:check_robust_rule",
):
    """A rule of the user's own."""

    rule: Reference = key(..., "Importable rule, as package.module:Class.")


RobustRule = Annotated[
    MeanRule
    | KrumRule
    | MultiKrumRule
    | BulyanRule
    | TrimmedMeanRule
    | MedianRule
    | GeometricMedianRule
    | NormClipRule
    | ExternalRule,
    Family("rule", default="mean"),
]
