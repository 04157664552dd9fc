"""What the zCDP paper says, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

from wirelessfl.papers.bound_pages import ZCDP_BOUND_CLAIMS
from wirelessfl.papers.claims import Claim, Comparison, Verdict, greater, not_tested, verdict, weigh
from wirelessfl.papers.paper import Point
from wirelessfl.papers.tables import Tables
from wirelessfl.papers.zcdp_points import (
    EPSILON,
    EPSILONS,
    KINDS,
    LEVELS,
    STEPS,
    WORDS,
    convergence_point,
    method_point,
    trade_off_point,
)
from wirelessfl.papers.zcdp_sum import sum_rows

Pair = tuple[str, tuple[str, Point], tuple[str, Point]]
"""In words; study and point of which a number is to be larger; those that it is compared with."""

Pairs = Callable[[str], list[Pair]]
"""The pairs in a size."""

SIZE = "size"


def _differences(pairs: Pairs, metric: str = "test_accuracy") -> Callable[[Tables], Verdict]:
    """A check that every first exceeds its second; the points depend on the size that was run."""

    def check(tables: Tables) -> Verdict:
        compared = pairs(str(tables.about[SIZE]))
        found = [tables.difference(first, second, metric) for _, first, second in compared]
        return weigh([name for name, *_ in compared], found, 0.0, [metric.endswith("accuracy")] * len(found))

    return check


def _methods(first: int, second: int, size: str) -> list[Pair]:
    def at(kind: str, method: int) -> tuple[str, Point]:
        return f"against-dp-sgd-{kind}", method_point(size, kind, method)

    return [(words, at(kind, first), at(kind, second)) for kind, words in KINDS.items()]


def _masks(size: str) -> list[Pair]:
    return [
        (
            f"{words}, ε = {epsilon}",
            (f"trade-off-{kind}", trade_off_point(size, kind, epsilon, "secure_aggregation")),
            (f"trade-off-{kind}", trade_off_point(size, kind, epsilon, "ideal")),
        )
        for kind, words in KINDS.items()
        for epsilon in EPSILONS
    ]


def _masks_accounted(size: str) -> list[Pair]:
    return [
        (
            f"{words}, ε = {epsilon}",
            (f"equal-{kind}", {EPSILON: epsilon}),
            (f"trade-off-{kind}", trade_off_point(size, kind, epsilon, "ideal")),
        )
        for kind, words in KINDS.items()
        for epsilon in EPSILONS
    ]


def _larger_epsilon(size: str) -> list[Pair]:
    return [
        (
            f"{words}, {WORDS[uplink]}, ε {low} → {high}",
            (f"trade-off-{kind}", trade_off_point(size, kind, high, uplink)),
            (f"trade-off-{kind}", trade_off_point(size, kind, low, uplink)),
        )
        for kind, words in KINDS.items()
        for uplink in ("secure_aggregation", "ideal")
        for low, high in pairwise(EPSILONS)
    ]


def _by_noise(size: str) -> list[Pair]:
    """The larger σ against the next smaller one."""
    return [
        (
            f"{KINDS[kind]}, τ = {tau}, σ {low} → {high}",
            convergence_point(kind, high, tau),
            convergence_point(kind, low, tau),
        )
        for kind, (noises, steps) in LEVELS.items()
        for tau in steps
        for low, high in pairwise(noises)
    ]


def _less_noise(size: str) -> list[Pair]:
    return [(name, second, first) for name, first, second in _by_noise(size)]


def _by_steps(noise: Callable[[tuple[float, ...]], float]) -> list[Pair]:
    return [
        (
            f"{KINDS[kind]}, σ = {noise(noises)}, τ {steps[0]} → {steps[-1]}",
            convergence_point(kind, noise(noises), steps[-1]),
            convergence_point(kind, noise(noises), steps[0]),
        )
        for kind, (noises, steps) in LEVELS.items()
    ]


def _theorem_1_holds(tables: Tables) -> Verdict:
    """Accounted against published ε of everything that Theorem 1 speaks about with masks."""
    size, told, holds = str(tables.about[SIZE]), [], True
    for kind, words in KINDS.items():
        study = f"against-dp-sgd-{kind}"
        for method in (0, 2):
            point = method_point(size, kind, method)
            said, true = (
                float(tables.band(study, point, f"epsilon_{column}").mean[0]) for column in ("published", "accounted")
            )
            holds = holds and true <= said
            told.append(f"{words}, τ = {point[STEPS]}: published {said:.3g}, accounted {true:.3g}")
    worst = sum_rows()[1]
    told.append(
        f"exact sum of {worst['devices in the sum']} uploads: published {worst['ε published (Theorem 1)']}, at least "
        f"{worst['ε of the sum, at least']}"
    )
    reason = "the 1/r is proven for one local step only, and a fresh shuffle each round makes every batch a use"
    return verdict(holds, "; ".join(told), reason)


CLAIMS = (
    Claim("A larger σ leaves a larger loss.", "VII-B, Fig. 3 and 4", _differences(_by_noise, "test_loss")),
    Claim("A larger σ leaves a lower accuracy.", "VII-B, Fig. 3 and 4", _differences(_less_noise)),
    Claim(
        "A larger τ is faster at the beginning (accuracy after the first evaluated round).",
        "VII-B, Fig. 3 and 4",
        greater(*(Comparison(*one, "first_accuracy") for one in _by_steps(min))),
    ),
    Claim(
        "A larger τ ends at a larger loss (at the largest σ).",
        "VII-B, Fig. 3 and 4",
        greater(*(Comparison(*one, "test_loss") for one in _by_steps(max))),
    ),
    Claim(
        "At σ = 10⁻³ and τ = 40 the loss falls for about 40 rounds and rises again.",
        "VII-B, Fig. 3",
        lambda tables: not_tested("too few rounds in the small size; the size `full` has the paper's 100"),
    ),
    Claim(
        "At ε = 10 the scheme is more accurate than DP-SGD.",
        "VII-C, Fig. 5 and 6",
        _differences(partial(_methods, 0, 1)),
    ),
    Claim(
        "At ε = 10 it is so from the first rounds on.",
        "VII-C, Fig. 5 and 6",
        _differences(partial(_methods, 0, 1), "first_accuracy"),
    ),
    Claim(
        "At ε = 10 its loss is lower than that of DP-SGD.",
        "VII-C, Fig. 5 and 6",
        _differences(lambda size: [(name, b, a) for name, a, b in _methods(0, 1, size)], "test_loss"),
    ),
    Claim("A larger ε gives a higher accuracy.", "VII-D, Fig. 7 and 8", _differences(_larger_epsilon)),
    Claim(
        "Secure aggregation always is more accurate than plain uploads at the same published ε.",
        "VII-D, Fig. 7 and 8",
        _differences(_masks),
    ),
    Claim("Each device has the (ε, δ) of Theorem 1.", "V, Theorem 1", _theorem_1_holds),
    Claim(
        "At equal accounted ε = 10 the scheme (τ steps a round) still beats DP-SGD on shuffled batches.",
        "ours",
        _differences(partial(_methods, 3, 4)),
    ),
    Claim(
        "At equal accounted ε = 10 it beats DP-SGD on Poisson batches.",
        "ours",
        _differences(partial(_methods, 3, 5)),
    ),
    Claim(
        "Secure aggregation is more accurate than plain uploads at equal accounted ε.",
        "ours",
        _differences(_masks_accounted),
    ),
    *ZCDP_BOUND_CLAIMS,
)
