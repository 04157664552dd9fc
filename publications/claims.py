"""Claims of a paper, and how they are judged.

A check takes the tables of one size and gives a verdict. Differences are paired by seed and averaged over the levels of
the claim (data sets, noises) within each seed; Student's t over the seeds then gives the interval of the mean effect.
A claim is confirmed if the whole 95 % interval lies on the claimed side, contradicted if it lies wholly on the other,
and undecided otherwise: under no effect either happens with a probability of 2.5 % at most. A claim about several
methods (*the best of*) is confirmed if that holds for each of them; it is contradicted by one, at 2.5 % divided by
their number. The interval that is printed is the one that decided: at 95 % where all are confirmed, and at 5 % divided
by their number otherwise. A claim about a setting that the paper does not state (`at_each`) is confirmed or
contradicted if it is at every value that has run, and undecided otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from publications.effects import ALPHA, Difference, Effect, Level, MissingRuns, Scale, average, confidence
from publications.studies import Point
from publications.tables import Tables


class Outcome(Enum):
    """What became of a claim."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"
    NOT_TESTED = "not tested"


@dataclass(frozen=True)
class Verdict:
    """What became of a claim.

    Attributes:
        outcome: In a word.
        numbers: What it rests on.
        reason: Why, in a sentence.
        effect: Its size, where it has one.
        remark: What stands beside the outcome in the table, such as ``it depends on τ``.
    """

    outcome: Outcome
    numbers: str
    reason: str
    effect: Effect | None = None
    remark: str = ""

    @property
    def one_seed(self) -> bool:
        """Whether it is open because there is one seed alone, which gives an effect and no interval."""
        return self.outcome is Outcome.UNDECIDED and self.effect is not None and math.isnan(self.effect.low)

    @property
    def is_decided(self) -> bool:
        """Whether it is confirmed or contradicted."""
        return self.outcome in (Outcome.CONFIRMED, Outcome.CONTRADICTED)

    def opened(self, why: str, remark: str) -> Verdict:
        """The verdict, undecided where it was decided; numbers and effect stay, and the reason behind the new one."""
        if not self.is_decided:
            return self
        return replace(self, outcome=Outcome.UNDECIDED, reason=f"{why}; at it: {self.reason}", remark=remark)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, or of the privacy accounting about it.

    Attributes:
        text: What is claimed.
        source: Where: section, figure or table of the paper; it begins with ``ours`` where the paper does not say it.
        check: Gives the verdict; may raise `MissingRuns`, which makes it *not tested*.
        everywhere: Whether it speaks of every setting, as a theorem does: a case of any size then decides.
    """

    text: str
    source: str
    check: Callable[[Tables], Verdict]
    everywhere: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether it is a claim about the paper, which the paper itself does not make."""
        return self.source.startswith("ours")


@dataclass(frozen=True)
class Comparison:
    """One half of an ordering: the first is to be better than the second.

    Attributes:
        name: The level, e.g. ``ε = 6.52``.
        first: Name of a study and a point in it.
        second: The other.
        metric: Which number, one of `publications.tables.METRICS`.
        group: Which of several methods it is about; levels of one group are averaged.
    """

    name: str
    first: tuple[str, Point]
    second: tuple[str, Point]
    metric: str = "test_accuracy"
    group: str = ""


def judge(claim: Claim, tables: Tables) -> Verdict:
    """The verdict on a claim."""
    try:
        return claim.check(tables)
    except MissingRuns as missing:
        return not_tested(str(missing))


def not_tested(reason: str) -> Verdict:
    """Nothing can be said, for this reason."""
    return Verdict(Outcome.NOT_TESTED, "", reason)


def verdict(holds: bool, numbers: str, reason: str, effect: Effect | None = None) -> Verdict:
    """Confirmed or contradicted, by a check of one's own."""
    return Verdict(Outcome.CONFIRMED if holds else Outcome.CONTRADICTED, numbers, reason, effect)


def greater(*comparisons: Comparison, least: float = 0.0) -> Callable[[Tables], Verdict]:
    """A check that the first is greater than the second by more than ``least``, on average over the comparisons."""

    def check(tables: Tables) -> Verdict:
        groups: dict[str, list[Level]] = {}
        for one in comparisons:
            difference = tables.difference(one.first, one.second, one.metric)
            groups.setdefault(one.group, []).append(Level(one.name, difference))
        return weigh(groups, least, scale_of(comparisons[0].metric))

    return check


def scale_of(metric: str) -> Scale:
    """How differences of a number are read."""
    return "points" if metric.endswith("accuracy") else "number"


def weigh(
    groups: Mapping[str, list[Level]], least: float = 0.0, scale: Scale = "points", alpha: float = ALPHA
) -> Verdict:
    """The verdict on effects that are to be above ``least``.

    Args:
        groups: Levels of each effect, by its name; the mean over its levels is judged.
        least: What it is to exceed.
        scale: How it is read.
        alpha: Probability with which an interval misses, before it is divided among several effects.
    """
    means = {name: average([level.difference for level in levels]) for name, levels in groups.items()}
    apart = alpha / len(means)
    against = [name for name, one in means.items() if one.mean + one.half_width_at(apart) < least]
    open_ones = [name for name, one in means.items() if not one.mean - one.half_width_at(alpha) > least]
    judged = apart if open_ones else alpha
    worst = min(against or open_ones or means, key=lambda name: means[name].mean)
    effect = _effect_of(means[worst], scale, least, worst, groups[worst], judged)
    told = [
        f"{name}: {one.text(percent=scale == 'points', alpha=judged)}".removeprefix(": ") for name, one in means.items()
    ]
    seeds = min(one.seeds for one in means.values())
    told += [f"these ± at {confidence(judged)}"] if judged != ALPHA and seeds > 1 else []
    numbers = "; ".join([*told, *_range_text(groups[worst], scale)])
    each = "each mean effect" if len(means) > 1 else "the mean effect"
    if against:
        which = f" for {', '.join(against)}" if len(means) > 1 else ""
        reason = f"the {confidence(judged)} interval of {each} over {seeds} seeds lies wholly on the other side{which}"
        return Verdict(Outcome.CONTRADICTED, numbers, reason, effect)
    if not open_ones:
        reason = f"the {confidence(judged)} interval of {each} over {seeds} seeds lies on the claimed side"
        return Verdict(Outcome.CONFIRMED, numbers, reason, effect)
    which = f" for {', '.join(open_ones)}" if len(means) > 1 else ""
    told_open = "one seed gives no interval" if seeds == 1 else f"{seeds} seeds do not tell the sign{which}"
    return Verdict(Outcome.UNDECIDED, numbers, told_open, effect)


def _effect_of(
    mean: Difference, scale: Scale, least: float, name: str, levels: Sequence[Level], alpha: float
) -> Effect:
    half = mean.half_width_at(alpha)
    return Effect(mean.mean, mean.mean - half, mean.mean + half, scale, least, "above", name, tuple(levels), alpha)


def at_each(
    setting: str,
    groups_at: Mapping[str, Mapping[str, list[Level]]],
    least: float = 0.0,
    scale: Scale = "points",
) -> Verdict:
    """The verdict on effects at several values of a setting that the paper does not state.

    Every value is judged as by `weigh`, at 5 % divided by their number. The claim is confirmed or contradicted if it is
    so at every value; if some confirm and others contradict it, it depends on the setting.

    Args:
        setting: Its symbol, e.g. ``τ``.
        groups_at: By its value, what `weigh` takes.
        least: What the effects are to exceed.
        scale: How they are read.
    """
    alpha = ALPHA / len(groups_at)
    found = {f"{setting} = {value}": weigh(groups, least, scale, alpha) for value, groups in groups_at.items()}
    parts = tuple(
        replace(one.effect, name=f"{name}, {one.effect.name}".removesuffix(", "))
        for name, one in found.items()
        if one.effect is not None
    )
    by_outcome: dict[Outcome, list[str]] = {}
    for name, one in found.items():
        by_outcome.setdefault(one.outcome, []).append(name)
    means = tuple(Level(one.name, average([level.difference for level in one.levels])) for one in parts)
    effect = replace(min(parts, key=lambda one: one.value), levels=means, parts=parts)
    numbers = ". ".join(f"{name}: {one.numbers}" for name, one in found.items())
    if len(by_outcome) == 1:
        (outcome,) = by_outcome
        return Verdict(outcome, numbers, f"{outcome.value} at every {setting} that has run", effect)
    told = "; ".join(f"{outcome.value} at {', '.join(names)}" for outcome, names in by_outcome.items())
    depends = {Outcome.CONFIRMED, Outcome.CONTRADICTED} <= by_outcome.keys()
    remark = f"it depends on {setting}" if depends else f"not sure at every {setting}"
    return Verdict(Outcome.UNDECIDED, numbers, f"the paper does not state {setting}; {told}", effect, remark)


def _range_text(levels: Sequence[Level], scale: Scale) -> list[str]:
    """The least and the greatest of several levels."""
    if len(levels) < 2:
        return []
    ends = [choose(levels, key=lambda level: level.difference.mean) for choose in (min, max)]
    told = [f"{level.difference.text(percent=scale == 'points')} ({level.name})" for level in ends]
    return [f"{len(levels)} levels, from {told[0]} to {told[1]}"]


def same(levels: Sequence[Level], margin: float, scale: Scale = "points", count: int = 0) -> Verdict:
    """The verdict on numbers that are to agree with stated ones.

    Confirmed if every 95 % interval of ours less the stated number lies within ``margin`` on either side, contradicted
    if one interval, at 95 % for all of them together, lies wholly outside.

    Args:
        levels: Our numbers less the stated ones.
        margin: What counts as agreement.
        scale: How differences are read.
        count: How many numbers are judged together, where some have not run.
    """
    apart = ALPHA / max(count, len(levels))
    unit = 100 if scale == "points" else 1
    outside = [one for one in levels if abs(one.difference.mean) - one.difference.half_width_at(apart) > margin]
    inside = [one for one in levels if abs(one.difference.mean) + one.difference.half_width <= margin]
    judged = ALPHA if len(inside) == len(levels) else apart
    others = outside or [one for one in levels if one not in inside] or levels
    farthest = max(others, key=lambda level: abs(level.difference.mean))
    effect = _effect_of(farthest.difference, scale, 0.0, f"ours less stated, {farthest.name}", levels, judged)
    numbers = f"{len(inside)} of {len(levels)} surely within ±{unit * margin:g}, {len(outside)} surely outside"
    if outside:
        return Verdict(Outcome.CONTRADICTED, numbers, "some numbers surely differ from the stated ones", effect)
    if len(inside) == len(levels):
        return Verdict(Outcome.CONFIRMED, numbers, "all numbers agree with the stated ones", effect)
    return Verdict(Outcome.UNDECIDED, numbers, "the seeds do not tell whether the numbers agree", effect)


def off_by(stated: float, by_seed: dict[int, float]) -> Difference:
    """Our numbers less a stated one, seed by seed."""
    return Difference({seed: one - stated for seed, one in by_seed.items()})
