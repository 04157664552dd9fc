"""Effects: paired differences over seeds, their means over levels, and 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

ALPHA = 0.05
"""Intervals are two-sided: on each side of them lies half of this under no effect."""

Scale = Literal["points", "ratio", "number"]
"""Accuracies in percentage points, quotients on a logarithmic axis, or numbers as they are."""


class MissingRuns(Exception):
    """A number is asked for that no run has given; a claim that needs it is not tested."""


@dataclass(frozen=True)
class Difference:
    """A paired difference over seeds: first − second, seed by seed. Of one seed it has a mean and no interval.

    Attributes:
        by_seed: Differences of the seeds that both have.

    Raises:
        MissingRuns: there is no seed that both have, or a run of one has diverged.
    """

    by_seed: Mapping[int, float]

    def __post_init__(self) -> None:
        if not self.by_seed:
            raise MissingRuns("no common seed")
        bad = [seed for seed, one in self.by_seed.items() if not math.isfinite(one)]
        if bad:
            raise MissingRuns(f"no finite number for seed {bad[0]}")

    @classmethod
    def of(cls, differences: Sequence[float]) -> Difference:
        """From the difference of every seed, the first seed's first."""
        return cls(dict(enumerate(differences)))

    @property
    def seeds(self) -> int:
        """How many seeds both have."""
        return len(self.by_seed)

    @property
    def mean(self) -> float:
        """Of the differences."""
        return float(np.mean(list(self.by_seed.values())))

    @property
    def half_width(self) -> float:
        """Of the two-sided 95 % confidence interval by Student's t."""
        return self.half_width_at(ALPHA)

    def half_width_at(self, alpha: float) -> float:
        """Half width of the two-sided interval that misses with probability ``alpha``, NaN of one seed."""
        from scipy.stats import t

        if self.seeds == 1:
            return math.nan
        values = np.array(list(self.by_seed.values()))
        spread = float(values.std(ddof=1)) / math.sqrt(len(values))
        return float(t.ppf(1 - alpha / 2, len(values) - 1)) * spread

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half_width

    def text(self, *, percent: bool = True, alpha: float = ALPHA) -> str:
        """For people; in percentage points where it is one of accuracies.

        Args:
            percent: Whether it is one of accuracies.
            alpha: Probability with which the interval misses.
        """
        scale, unit = (100.0, " points") if percent else (1.0, "")
        span = "" if self.seeds == 1 else f" ± {scale * self.half_width_at(alpha):.2g}"
        return f"{scale * self.mean:+.3g}{span}{unit}"


def average(differences: Sequence[Difference]) -> Difference:
    """The mean effect over levels: the mean of their differences within every seed that all of them have.

    Raises:
        MissingRuns: no seed has all levels.
    """
    seeds = sorted(set.intersection(*(set(one.by_seed) for one in differences)))
    return Difference({seed: float(np.mean([one.by_seed[seed] for one in differences])) for seed in seeds})


@dataclass(frozen=True)
class Level:
    """A level at which a claim was tested: its name and the difference there."""

    name: str
    difference: Difference


@dataclass(frozen=True)
class Effect:
    """The size of what a claim speaks about, with the interval by which it was judged.

    Attributes:
        value: The size; a quotient where the scale is ``ratio``.
        low: Lower end of the interval, NaN where there is none.
        high: Upper end.
        scale: How it is read.
        threshold: Where the claimed side begins.
        claimed: On which side of it.
        name: Of what, where a claim has several.
        levels: What it is the mean of.
        alpha: Probability with which the interval misses: less than 5 % where that is divided among several effects.
        parts: The effects at several values of a setting, each judged by itself; this one is then one of them.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    scale: Scale = "points"
    threshold: float = 0.0
    claimed: Literal["above", "below"] = "above"
    name: str = ""
    levels: tuple[Level, ...] = ()
    alpha: float = ALPHA
    parts: tuple[Effect, ...] = ()

    def text(self) -> str:
        """For people."""
        if self.parts:
            return "; ".join(part.text() for part in self.parts)
        known = not math.isnan(self.low)
        at = "" if self.alpha == ALPHA else f" at {confidence(self.alpha)}"
        if self.scale == "ratio":
            span = f" ({_short(self.low)} to {_short(self.high)}{at})" if known else ""
            words = f"× {_short(self.value)}{span}"
        else:
            scale, unit = (100.0, " points") if self.scale == "points" else (1.0, "")
            span = f" ({_signed(scale * self.low)} to {_signed(scale * self.high)}{at})" if known else ""
            words = f"{_signed(scale * self.value)}{unit}{span}"
        return f"{words}, {self.name}" if self.name else words


def ratio(value: float, name: str = "", low: float = math.nan, high: float = math.nan) -> Effect:
    """A quotient that is claimed to be at most 1, such as accounted over published ε."""
    return Effect(value, low, high, "ratio", 1.0, "below", name)


def margin(value: float, name: str) -> Effect:
    """By how much a theorem holds, below zero where it does not."""
    return Effect(value, scale="number", name=name)


def confidence(alpha: float) -> str:
    """The confidence of an interval that misses with this probability, for people."""
    return f"{100 * (1 - alpha):.3g} %"


def _signed(value: float) -> str:
    return f"{value:+.3g}" if abs(value) < 1000 else f"{value:+,.0f}"


def _short(value: float) -> str:
    if math.isinf(value):
        return "∞"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
