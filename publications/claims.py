"""Claims of a paper, and how they were tested.

A check takes the tables of all studies and gives a verdict. It is judged on paired differences over seeds with a
confidence interval, never on a single mean; what has not run is not tested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from publications.studies import Point
from publications.tables import Difference, MissingRuns, Tables


class Outcome(Enum):
    """What became of a claim."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    Attributes:
        outcome: In a word.
        numbers: What it rests on, with confidence intervals.
        reason: Why, in a sentence.
    """

    outcome: Outcome
    numbers: str
    reason: str


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, or of the privacy accounting about it.

    Attributes:
        text: What is claimed.
        source: Where: section, figure or table of the paper.
        check: Gives the verdict; may raise `MissingRuns`, which makes it *not tested*.
    """

    text: str
    source: str
    check: Callable[[Tables], Verdict]


@dataclass(frozen=True)
class Comparison:
    """One half of an ordering: the first is to be better than the second.

    Attributes:
        name: In words, e.g. ``FedProx − FedAvg at ε = 6.52``.
        first: Name of a study and a point in it.
        second: The other.
        metric: Which number, one of `publications.tables.METRICS`.
    """

    name: str
    first: tuple[str, Point]
    second: tuple[str, Point]
    metric: str = "test_accuracy"


def judge(claim: Claim, tables: Tables) -> Verdict:
    """The verdict on a claim."""
    try:
        return claim.check(tables)
    except MissingRuns as missing:
        return not_tested(str(missing))


def not_tested(reason: str) -> Verdict:
    """Nothing can be said, for this reason."""
    return Verdict(Outcome.NOT_TESTED, "", reason)


def verdict(holds: bool, numbers: str, reason: str) -> Verdict:
    """Confirmed or not, by a check of one's own."""
    return Verdict(Outcome.CONFIRMED if holds else Outcome.NOT_CONFIRMED, numbers, reason)


def greater(*comparisons: Comparison, least: float = 0.0) -> Callable[[Tables], Verdict]:
    """A check that every first is greater than its second by more than ``least``.

    Confirmed only if the whole 95 % interval of every paired difference lies above ``least`` (each then is tested at
    2.5 %, and so is their conjunction).
    """

    def check(tables: Tables) -> Verdict:
        differences = [tables.difference(one.first, one.second, one.metric) for one in comparisons]
        return weigh([one.name for one in comparisons], differences, least, [_is_share(c) for c in comparisons])

    return check


def _is_share(comparison: Comparison) -> bool:
    return comparison.metric.endswith("accuracy")


def weigh(
    names: Sequence[str], differences: Sequence[Difference], least: float = 0.0, percent: Sequence[bool] | None = None
) -> Verdict:
    """The verdict on differences that all are to be above ``least``, with what each of them shows."""
    shares = percent or [True] * len(names)
    numbers = "; ".join(
        f"{name}: {one.text(percent=share)}" for name, one, share in zip(names, differences, shares, strict=True)
    )
    seeds = min(one.seeds for one in differences)
    surely = [name for name, one in zip(names, differences, strict=True) if one.low > least]
    against = [name for name, one in zip(names, differences, strict=True) if one.high < least]
    open_ones = [name for name in names if name not in surely and name not in against]
    if len(surely) == len(names):
        return verdict(True, numbers, f"every 95 % interval over {seeds} seeds lies on the claimed side")
    parts = [f"the opposite holds for {', '.join(against)}"] if against else []
    parts += (
        [f"the 95 % interval over {seeds} seeds includes no difference for {', '.join(open_ones)}"] if open_ones else []
    )
    return verdict(False, numbers, "; ".join(parts))
