"""The least noise that meets a target ε, with few evaluations of the ledger."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from wirelessfl.errors import InfeasibleError
from wirelessfl.privacy import Ledger, PrivacyFacts, Release, Statement

# Noise, as a multiple of the clip or, for zcdp, as a standard deviation, between which a target is looked for
_SEARCH = (1e-9, 1e7)
# How far the calibrated noise may lie above the least that suffices, relative
_PRECISION = 1e-3
# The same where a first guess is all that is wanted
_ROUGHLY = 1e-2

# A step of the search, in ln noise: ε far from the target says little of how far the noise is
_LONGEST_STEP = 3.0
# Steps along the curve of ln ε before only bisection is trusted: a jump of ε would be crept up to
_TANGENTS = 10

# Part of the precision that the two last points lie apart
_ALMOST = 0.9

_BESIDE = (
    "What is released beside the gradients costs more alone: with clipping.name quantile the count of gradients within "
    "the norm, whose noise is clipping.count_noise_std."
)


def calibrate(
    planned: Callable[[float, int], tuple[Release, ...]],
    epsilon: float,
    target: str,
    rounds: int,
    facts: PrivacyFacts,
    statement: Statement,
) -> float:
    """The least noise whose ledger over all rounds, with everybody in every round, meets a target.

    The ledger of the answer itself was computed and does not exceed the target. The central limit, which costs next to
    nothing, says where to look.

    Args:
        planned: from noise and round to what would be released.
        epsilon: the target.
        target: "accounted" or "published".
        rounds: M.
        facts: the population.
        statement: what ε is said about.

    Raises:
        InfeasibleError: no noise meets it, with the ledger's reason, or the least that is looked for does.
    """

    def ledger_at(noise: float, said: Statement) -> Ledger:
        ledger = Ledger(facts, said)
        for round_index in range(1, rounds + 1):
            for release in planned(noise, round_index):
                ledger.add(release)
        return ledger

    def reached(log_noise: float, said: Statement = statement) -> float:
        ledger = ledger_at(math.exp(log_noise), said)
        return ledger.epsilon_accounted() if target == "accounted" else ledger.epsilon_published()

    highest = math.log(_SEARCH[1])
    if reached(highest) > epsilon:
        reasons = " ".join(ledger_at(math.exp(highest), statement).why_different()) or _BESIDE
        raise InfeasibleError(
            f"training.privacy.epsilon: found {epsilon:g} as the {target} ε; no amount of noise reaches it for the "
            "unit "
            f"{statement.unit} and the adversary {statement.adversary}. {reasons}"
        )
    in_the_limit = replace(statement, accountant="gdp")
    guess = least_log_noise(lambda at: reached(at, in_the_limit), epsilon, Guess(0.0), _ROUGHLY)
    found = least_log_noise(reached, epsilon, guess, _PRECISION).log_noise
    if found <= math.log(_SEARCH[0]) + _PRECISION:
        raise InfeasibleError(
            f"training.privacy.epsilon: found {epsilon:g} as the {target} ε; the least noise that is tried, "
            f"{_SEARCH[0]:g}, already meets it. Give a smaller ε, or the noise itself: noise_multiplier, for zcdp "
            "noise_std"
        )
    return math.exp(found)


@dataclass(frozen=True)
class Guess:
    """A point at which ε is about the target.

    Attributes:
        log_noise: there, ln noise.
        slope: d ln ε/d ln noise about there; −1 is that of one Gaussian mechanism of large noise.
    """

    log_noise: float
    slope: float = -1.0


def least_log_noise(reached: Callable[[float], float], epsilon: float, guess: Guess, precision: float) -> Guess:
    """The least ln noise that meets a target, at most ``precision`` above it; at most about 25 evaluations.

    Two points are left, ``precision`` apart, of which the upper one meets the target and the lower one does not; each
    new point follows from the secant of ln ε over ln noise, which is almost a straight line.

    Args:
        reached: from ln noise to ε, not increasing; may be infinite or 0.
        epsilon: the target; met at the upper end of what is searched.
        guess: where to begin.
        precision: in ln noise.

    Returns:
        A point at which ``reached`` was evaluated and does not exceed the target (or the upper end of what is
        searched), with the last slope.
    """
    low, high = (math.log(limit) for limit in _SEARCH)
    at, slope = guess.log_noise, guess.slope
    before: tuple[float, float] | None = None
    steps = 0
    while high - low > precision:
        value = reached(at)
        low, high = (low, at) if value <= epsilon else (at, high)
        here = (at, _log_ratio(value, epsilon))
        slope = _secant(before, here, slope)
        before, steps = here, steps + 1
        at = _next(low, high, here, slope, precision) if steps < _TANGENTS else 0.5 * (low + high)
    return Guess(high, slope)


def _log_ratio(value: float, epsilon: float) -> float:
    return math.log(value / epsilon) if value > 0 else -math.inf


def _secant(before: tuple[float, float] | None, here: tuple[float, float], slope: float) -> float:
    # The slope between two points; the one known so far where they do not tell.
    if before is None or not (math.isfinite(before[1]) and math.isfinite(here[1])):
        return slope
    found = (here[1] - before[1]) / (here[0] - before[0])
    return found if found < 0 else slope


def _next(low: float, high: float, here: tuple[float, float], slope: float, precision: float) -> float:
    # Where the line through ``here`` meets the target, inside the bracket. Not nearer to a bound than almost the
    # precision: where the bound is that good, this point proves it.
    if high - low < 2 * _ALMOST * precision:
        return 0.5 * (low + high)
    step = max(-_LONGEST_STEP, min(_LONGEST_STEP, -here[1] / slope))
    return max(low + _ALMOST * precision, min(high - _ALMOST * precision, here[0] + step))
