"""Claims of the zCDP paper, and how they were tested."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

from publications.bound_pages import ZCDP_BOUND_CLAIMS
from publications.claims import Claim, Outcome, Verdict, not_tested, scale_of, verdict, weigh
from publications.effects import Effect, Level
from publications.gradients import GRADIENT_NORM
from publications.studies import Point
from publications.tables import Tables
from publications.tuning_runs import tuned_point
from publications.zcdp_points import (
    EPSILONS,
    KINDS,
    LEVELS,
    NOISE,
    PAPER_LEVELS,
    STEPS,
    WORDS,
    convergence_point,
    method_point,
    trade_off_point,
)
from publications.zcdp_theory import THEOREM_1_CLAIM, THEORY_CLAIMS

Pair = tuple[str, tuple[str, Point], tuple[str, Point]]
"""In words; study and point of which a number is to be larger; those that it is compared with."""

Pairs = Callable[[str], list[Pair]]
"""The pairs in a size."""

Levels = Mapping[str, tuple[Sequence[float], Sequence[int]]]
"""σ and τ by kind of model."""

SIZE = "size"
EARLY = "early_accuracy"
MASKED, PLAIN = "secure_aggregation", "ideal"


def _differences(pairs: Pairs, metric: str = "test_accuracy") -> Callable[[Tables], Verdict]:
    """A check that the first exceeds the second on average; the points depend on the size that was run."""

    def check(tables: Tables) -> Verdict:
        compared = pairs(str(tables.about[SIZE]))
        levels = [Level(name, tables.difference(first, second, metric)) for name, first, second in compared]
        return weigh({"": levels}, 0.0, scale_of(metric))

    return check


def _methods(kind: str, first: int, second: int, size: str) -> list[Pair]:
    study = f"against-dp-sgd-{kind}"
    return [("difference", (study, method_point(size, kind, first)), (study, method_point(size, kind, second)))]


def _masks(kind: str, size: str) -> list[Pair]:
    """Masked against plain uploads, both at the published ε."""
    return [
        (f"ε = {epsilon}", _trade_off(kind, size, epsilon, MASKED), _trade_off(kind, size, epsilon, PLAIN))
        for epsilon in EPSILONS
    ]


def _larger_epsilon(kind: str, size: str) -> list[Pair]:
    return [
        (
            f"{WORDS[uplink]}, ε {low} → {high}",
            _trade_off(kind, size, high, uplink),
            _trade_off(kind, size, low, uplink),
        )
        for uplink in (MASKED, PLAIN)
        for low, high in pairwise(EPSILONS)
    ]


def _trade_off(kind: str, size: str, epsilon: float, uplink: str) -> tuple[str, Point]:
    return f"trade-off-{kind}", trade_off_point(size, kind, epsilon, uplink)


def _more_noise(kind: str, levels: Levels, size: str) -> list[Pair]:
    """The largest σ against the smallest."""
    noises, steps = levels[kind]
    return [
        (
            f"τ = {tau}, σ {noises[0]:g} → {noises[-1]:g}",
            convergence_point(kind, noises[-1], tau),
            convergence_point(kind, noises[0], tau),
        )
        for tau in steps
    ]


def _more_steps(kind: str, noise: float, size: str) -> list[Pair]:
    """The largest τ against the smallest."""
    steps = LEVELS[kind][1]
    name = f"σ = {noise}, τ {steps[0]} → {steps[-1]}"
    return [(name, convergence_point(kind, noise, steps[-1]), convergence_point(kind, noise, steps[0]))]


def _turned(pairs: Pairs) -> Pairs:
    return lambda size: [(name, second, first) for name, first, second in pairs(size)]


def _claims_on(kind: str) -> tuple[Claim, ...]:
    """What the paper says of one kind of model."""
    who, at = KINDS[kind][0].upper() + KINDS[kind][1:], 0 if kind == "logistic" else 1
    convergence, against, trade_off = (f"VII-{part}, Fig. {one + at}" for part, one in (("B", 3), ("C", 5), ("D", 7)))
    noises = LEVELS[kind][0]
    ours = partial(_methods, kind, 0, 1)
    ranges = {"in the paper's range": PAPER_LEVELS, f"up to σ = {noises[-1]:g}": LEVELS}
    return (
        *(
            claim
            for words, levels in ranges.items()
            for claim in (
                Claim(
                    f"{who}: a larger σ leaves a larger loss ({words}).",
                    convergence,
                    _differences(partial(_more_noise, kind, levels), "test_loss"),
                ),
                Claim(
                    f"{who}: a larger σ leaves a lower accuracy ({words}).",
                    convergence,
                    _differences(_turned(partial(_more_noise, kind, levels))),
                ),
            )
        ),
        Claim(
            f"{who}: a larger τ is faster at the beginning (accuracy over the first quarter of the rounds).",
            convergence,
            _differences(partial(_more_steps, kind, noises[0]), EARLY),
        ),
        Claim(
            f"{who}: a larger τ ends at a larger loss (at the largest σ).",
            convergence,
            _differences(partial(_more_steps, kind, noises[-1]), "test_loss"),
        ),
        Claim(
            f"{who}: at ε = 10 and one learning rate the scheme is faster than DP-SGD (first quarter of the rounds).",
            against,
            _differences(ours, EARLY),
        ),
        Claim(
            f"{who}: at ε = 10 and one learning rate the scheme ends more accurate than DP-SGD.",
            against,
            _differences(ours),
        ),
        Claim(
            f"{who}: at ε = 10 and one learning rate its loss is lower than that of DP-SGD.",
            against,
            _differences(_turned(ours), "test_loss"),
        ),
        Claim(f"{who}: a larger ε gives a higher accuracy.", trade_off, _differences(partial(_larger_epsilon, kind))),
        Claim(
            f"{who}: masked uploads always are more accurate than plain ones at the same published ε.",
            trade_off,
            _differences(partial(_masks, kind)),
        ),
    )


def _tuned(kind: str, baseline: str, size: str) -> list[Pair]:
    """The scheme against a baseline, both at the settings that won."""
    paper, study = "zcdp-secure-aggregation", f"tuned-{kind}"
    first, second = (tuned_point(paper, kind, size, method) for method in ("paper's scheme", baseline))
    return [("difference", (study, first), (study, second))]


def _claims_of_ours(kind: str) -> tuple[Claim, ...]:
    """Which advantage is left at equal accounted ε, with methods that are tuned alike."""
    who = KINDS[kind][0].upper() + KINDS[kind][1:]
    return tuple(
        Claim(
            f"{who}: at equal accounted ε = 10, all tuned alike, the scheme beats {baseline}.",
            "this page",
            _differences(partial(_tuned, kind, baseline)),
        )
        for baseline in ("DP-SGD shuffled", "DP-SGD Poisson")
    )


def gradient_norms_apart(tables: Tables) -> Verdict:
    """Whether the network's gradient norm ends below that of DP-SGD; the intervals of two means, not paired by seed."""
    size, study = str(tables.about[SIZE]), "against-dp-sgd-network"
    ends = []
    for method in (1, 0):
        curve = tables.study(study).curve(method_point(size, "network", method), GRADIENT_NORM)
        if not curve:
            return not_tested(f"{study}: no models are stored")
        ends.append(curve[-1])
    other, ours = ends
    mean, half = other.mean - ours.mean, math.hypot(other.half_width, ours.half_width)
    effect = Effect(mean, mean - half, mean + half, "number")
    numbers = f"DP-SGD {other.mean:.3g} ± {other.half_width:.2g}, the scheme {ours.mean:.3g} ± {ours.half_width:.2g}"
    if abs(mean) <= half:
        return Verdict(Outcome.UNDECIDED, numbers, f"{ours.seeds} seeds do not tell the sign", effect)
    return verdict(mean > 0, numbers, f"after {ours.round} rounds, 95 % intervals over {ours.seeds} seeds", effect)


ROUNDS_TO_TURN = 100
"""The paper draws so many."""


def turning(tables: Tables) -> Verdict:
    """Whether the loss at σ = 10⁻³ and τ = 40 surely ends above its least value, which it has in the middle third."""
    told, found = [], []
    for study in ("convergence-logistic", "unscaled-logistic"):
        if study not in tables.studies:
            continue
        curve = tables.study(study).curve({NOISE: 1e-3, STEPS: 40}, "train_loss")
        if not curve or curve[-1].round < ROUNDS_TO_TURN:
            continue
        least, last = min(curve, key=lambda row: row.mean), curve[-1]
        rises = last.mean - last.half_width > least.mean + least.half_width
        found.append(rises and ROUNDS_TO_TURN / 3 < least.round < 2 * ROUNDS_TO_TURN / 3)
        told.append(
            f"{study}: least {least.mean:.4g} ± {least.half_width:.2g} after {least.round} rounds, "
            f"{last.mean:.4g} ± {last.half_width:.2g} after {last.round}"
        )
    if not found:
        return not_tested("too few rounds in the small size; the size `full` has the paper's 100")
    reason = "the training loss turns" if any(found) else "the training loss does not rise again by more than it varies"
    return verdict(any(found), "; ".join(told), reason)


CLAIMS = (
    *_claims_on("logistic"),
    *_claims_on("network"),
    Claim(
        "Network of three layers: at ε = 10 and one learning rate its gradient norm ends lower than that of DP-SGD.",
        "VII-C, Fig. 6",
        gradient_norms_apart,
    ),
    Claim(
        "At σ = 10⁻³ and τ = 40 the loss falls for about 40 rounds and rises again.",
        "VII-B, Fig. 3",
        turning,
    ),
    THEOREM_1_CLAIM,
    *_claims_of_ours("logistic"),
    *_claims_of_ours("network"),
    *ZCDP_BOUND_CLAIMS,
    *THEORY_CLAIMS,
)
