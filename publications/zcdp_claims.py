"""Claims of the zCDP paper, and how they were tested."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

from publications.bound_pages import ZCDP_BOUND_CLAIMS
from publications.claims import Claim, Verdict, not_tested, scale_of, weigh
from publications.effects import Level
from publications.studies import Point
from publications.tables import Tables
from publications.tuning_runs import tuned_point
from publications.zcdp_points import (
    EPSILONS,
    KINDS,
    LEVELS,
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

SIZE = "size"
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


def _more_noise(kind: str, size: str) -> list[Pair]:
    """The largest σ against the smallest."""
    noises, steps = LEVELS[kind]
    return [
        (
            f"τ = {tau}, σ {noises[0]} → {noises[-1]}",
            convergence_point(kind, noises[-1], tau),
            convergence_point(kind, noises[0], tau),
        )
        for tau in steps
    ]


def _more_steps(kind: str, noise: float) -> list[Pair]:
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
    return (
        Claim(
            f"{who}: a larger σ leaves a larger loss.",
            convergence,
            _differences(partial(_more_noise, kind), "test_loss"),
        ),
        Claim(
            f"{who}: a larger σ leaves a lower accuracy.",
            convergence,
            _differences(_turned(partial(_more_noise, kind))),
        ),
        Claim(
            f"{who}: a larger τ is faster at the beginning (accuracy when first evaluated).",
            convergence,
            _differences(lambda size: _more_steps(kind, noises[0]), "first_accuracy"),
        ),
        Claim(
            f"{who}: a larger τ ends at a larger loss (at the largest σ).",
            convergence,
            _differences(lambda size: _more_steps(kind, noises[-1]), "test_loss"),
        ),
        Claim(f"{who}: at ε = 10 the scheme is more accurate than DP-SGD.", against, _differences(ours)),
        Claim(f"{who}: at ε = 10 it is so from the first rounds on.", against, _differences(ours, "first_accuracy")),
        Claim(
            f"{who}: at ε = 10 its loss is lower than that of DP-SGD.",
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
    """Which advantage is left at equal accounted ε."""
    who = KINDS[kind][0].upper() + KINDS[kind][1:]
    return (
        Claim(
            f"{who}: at equal accounted ε = 10 the scheme (τ steps a round) beats DP-SGD on shuffled batches.",
            "this page",
            _differences(partial(_methods, kind, 3, 4)),
        ),
        Claim(
            f"{who}: at equal accounted ε = 10 it beats DP-SGD on Poisson batches.",
            "this page",
            _differences(partial(_methods, kind, 3, 5)),
        ),
        *(
            Claim(
                f"{who}: at equal accounted ε = 10, all tuned alike, the scheme beats {baseline}.",
                "this page",
                _differences(partial(_tuned, kind, baseline)),
            )
            for baseline in ("DP-SGD shuffled", "DP-SGD Poisson")
        ),
    )


CLAIMS = (
    *_claims_on("logistic"),
    *_claims_on("network"),
    Claim(
        "At σ = 10⁻³ and τ = 40 the loss falls for about 40 rounds and rises again.",
        "VII-B, Fig. 3",
        lambda tables: not_tested("too few rounds in the small size; the size `full` has the paper's 100"),
    ),
    THEOREM_1_CLAIM,
    *_claims_of_ours("logistic"),
    *_claims_of_ours("network"),
    *ZCDP_BOUND_CLAIMS,
    *THEORY_CLAIMS,
)
