"""How far a run moves on this machine itself when it is disturbed as rounding disturbs it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from publications.stored import Stored
from publications.tables import LEARNT

NOT_LEARNT = 1e-9
"""Largest relative difference of what is not learnt: ε, noise, gains, times, energies, sizes.

Measured on two kinds of processor: ε of wavelets by up to 2.5e-11, by libm; all others not at all.
"""

DISTURBANCE = 2.0**-22
"""Relative change of the learning rate that disturbs a run as rounding does: two units in the last place of single
precision, in every step."""

STEADY = 0.003
"""An accuracy that moves by less than this when disturbed may lie no further off than this, whatever the multiple.

A run that was older than the noise had 0.7133 for 0.7099: 0.0034 apart. No run of another processor lay more than
0.0008 off. An accuracy that moves by more itself is one of a run that turns at a last digit, as at the rate 32.
"""


@dataclass(frozen=True)
class Drift:
    """How far each number that is learnt moves when its run is disturbed.

    Attributes:
        moves: By metric: of an accuracy absolute, of a loss relative; infinite where one of two numbers is not finite.
        changed: What is not learnt and changes all the same. Then the disturbed run is not the same run: at a learning
            rate times clip that equals a clip norm, for one, a little more is accounted for in another way.
    """

    moves: Mapping[str, float]
    changed: tuple[str, ...] = ()

    def allows(self, name: str, times: float) -> float:
        """How far a number may lie from the recorded one by so many of its own drifts; 0 where that is not known."""
        moved = self.moves.get(name, 0.0)
        if self.changed or not math.isfinite(moved):
            return 0.0
        return min(times * moved, STEADY) if is_accuracy(name) and moved < STEADY else times * moved

    def text(self, names: Iterable[str]) -> str:
        """How far these numbers move, in words."""
        if self.changed:
            return (
                f"its own drift is not known, for disturbed by rounding it has other {', '.join(self.changed)} too: "
                "the first limit decides"
            )
        return "disturbed by rounding, here itself " + ", ".join(
            f"{name} moves by {self.moves[name]:.2g}" + ("" if math.isfinite(self.moves[name]) else _UNKNOWN)
            for name in names
            if name in self.moves
        )


_UNKNOWN = " (not usable: the first limit decides)"


def own_drift(one: Stored, now: Mapping[str, float], work: Path) -> Drift:
    """How far a run moves when its learning rate is disturbed by ± `DISTURBANCE`.

    Args:
        one: The run.
        now: Its numbers undisturbed.
        work: Folder for traces.
    """
    rate = one.run.scenario.training.optimizer.lr
    disturbed = [
        one.made_again(work / f"disturbed{sign:+}", training__optimizer__lr=rate * (1 + sign * DISTURBANCE))
        for sign in (1, -1)
    ]
    learnt = [name for name in one.numbers if is_learnt(name)]
    return Drift(
        {name: max(apart(name, now[name], numbers[name]) for numbers in disturbed) for name in learnt},
        tuple(
            name
            for name in one.numbers
            if not is_learnt(name) and not all(near(now[name], numbers[name], NOT_LEARNT) for numbers in disturbed)
        ),
    )


def is_learnt(name: str) -> bool:
    """Whether a number follows from training; all others follow from the scenario and its random numbers."""
    return name in LEARNT or name == "validation_loss"


def is_accuracy(name: str) -> bool:
    """Whether a number is an accuracy."""
    return name.endswith("accuracy")


def near(now: float, then: float, relative: float, absolute: float = 0.0) -> bool:
    """Whether two numbers agree; two that are NaN do."""
    return math.isclose(now, then, rel_tol=relative, abs_tol=absolute) or (math.isnan(now) and math.isnan(then))


def apart(name: str, now: float, then: float) -> float:
    """Difference of two numbers, of an accuracy absolute, else relative; infinite where one alone is not finite."""
    if now == then or (math.isnan(now) and math.isnan(then)):
        return 0.0
    if not (math.isfinite(now) and math.isfinite(then)):
        return math.inf
    if is_accuracy(name):
        return abs(now - then)
    # Of the smaller one: against the larger one no two losses differ by more than 1, and a fifth would allow any
    smaller = min(abs(now), abs(then))
    return abs(now - then) / smaller if smaller else math.inf
