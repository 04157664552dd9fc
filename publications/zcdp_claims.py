"""Claims of the zCDP paper, and how they were tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

from publications.bound_pages import ZCDP_BOUND_CLAIMS
from publications.claims import Claim, Verdict, scale_of, weigh
from publications.effects import Level
from publications.studies import Point
from publications.tables import Tables
from publications.tuned_claims import ahead_when_tuned
from publications.zcdp_curves import BASELINES, CURVE_CLAIMS, PAPER, SCHEME, at_one_rate, larger_gradient_norms
from publications.zcdp_points import (
    EPSILONS,
    PAPER_LEVELS,
    PAPER_NOISES,
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

NAMES: Mapping[str, str] = {"logistic": "Logistic regression", "network": "Network"}
"""How claims begin; short, so that a picture has room for the rest."""

SIZE = "size"
EARLY = "early_accuracy"
MASKED, PLAIN = "secure_aggregation", "ideal"


def _levels(pairs: Pairs, metric: str, tables: Tables) -> list[Level]:
    """The differences of all pairs; the points depend on the size that was run."""
    compared = pairs(str(tables.about[SIZE]))
    return [Level(name, tables.difference(first, second, metric)) for name, first, second in compared]


def _differences(pairs: Pairs, metric: str = "test_accuracy") -> Callable[[Tables], Verdict]:
    """A check that the first exceeds the second on average over the pairs."""
    return lambda tables: weigh({"": _levels(pairs, metric, tables)}, 0.0, scale_of(metric))


def _gradient_norms(pairs: Pairs) -> Callable[[Tables], Verdict]:
    """A check that the gradient norm ends larger at the first than at the second on average over the pairs."""
    return lambda tables: larger_gradient_norms(pairs(str(tables.about[SIZE])), tables)


def _always(pairs: Pairs) -> Callable[[Tables], Verdict]:
    """A check that the first is more accurate than the second in each of the pairs."""
    return lambda tables: weigh({level.name: [level] for level in _levels(pairs, "test_accuracy", tables)})


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
    """The paper's largest σ against its smallest."""
    (least, largest), steps = PAPER_LEVELS[kind]
    return [
        (
            f"τ = {tau}, σ {least:g} → {largest:g}",
            convergence_point(kind, largest, tau),
            convergence_point(kind, least, tau),
        )
        for tau in steps
    ]


def _more_steps(kind: str, size: str) -> list[Pair]:
    """The largest τ against the smallest, at each σ of the paper's that has run."""
    steps = PAPER_LEVELS[kind][1]
    return [
        (
            f"σ = {noise:g}, τ {steps[0]} → {steps[-1]}",
            convergence_point(kind, noise, steps[-1]),
            convergence_point(kind, noise, steps[0]),
        )
        for noise in PAPER_NOISES[size, kind]
    ]


def _turned(pairs: Pairs) -> Pairs:
    return lambda size: [(name, second, first) for name, first, second in pairs(size)]


_SIMILAR = "VII-B, similar trends"
"""Where the paper speaks of the network's loss at all; Fig. 4 shows its gradient norm."""


def _claims_on(kind: str) -> tuple[Claim, ...]:
    """What the paper says of one kind of model."""
    who, at = NAMES[kind], 0 if kind == "logistic" else 1
    convergence, against, trade_off = (f"VII-{part}, Fig. {one + at}" for part, one in (("B", 3), ("C", 5), ("D", 7)))
    noise, steps, ours = partial(_more_noise, kind), partial(_more_steps, kind), partial(_methods, kind, 0, 1)
    alike, of_steps = partial(at_one_rate, kind), partial(at_one_rate, kind, figures="convergence")
    once, loss = "at ε = 10 and one learning rate", convergence if kind == "logistic" else _SIMILAR
    return (
        Claim(
            f"{who}: a larger σ leaves a larger loss (in the paper's range).",
            loss,
            _differences(noise, "test_loss"),
        ),
        Claim(
            f"{who}: a larger σ leaves a lower accuracy (in the paper's range).",
            convergence,
            _differences(_turned(noise)),
        ),
        Claim(
            f"{who}: a larger τ is faster at the beginning (mean over the paper's σ).",
            convergence,
            of_steps(_differences(steps, EARLY)),
        ),
        Claim(
            f"{who}: a larger τ ends at a larger loss (mean over the paper's σ).",
            loss,
            of_steps(_differences(steps, "test_loss")),
        ),
        Claim(f"{who}: {once} the scheme is faster than DP-SGD.", against, alike(_differences(ours, EARLY))),
        Claim(f"{who}: {once} the scheme ends more accurate than DP-SGD.", against, alike(_differences(ours))),
        Claim(
            f"{who}: {once} its loss is lower than that of DP-SGD.",
            against if kind == "logistic" else "VII-C, similar trend",
            alike(_differences(_turned(ours), "test_loss")),
        ),
        Claim(f"{who}: a larger ε gives a higher accuracy.", trade_off, _differences(partial(_larger_epsilon, kind))),
        Claim(
            f"{who}: masked uploads always are more accurate than plain ones at the same published ε.",
            trade_off,
            _always(partial(_masks, kind)),
        ),
    )


_GRADIENT_CLAIMS = (
    Claim(
        "Network: a larger σ leaves a larger gradient norm at the end (in the paper's range).",
        "VII-B, Fig. 4, similar trends",
        _gradient_norms(partial(_more_noise, "network")),
    ),
    Claim(
        "Network: a larger τ ends at a larger gradient norm (mean over the paper's σ).",
        "VII-B, Fig. 4, similar trends",
        at_one_rate("network", _gradient_norms(partial(_more_steps, "network")), "convergence"),
    ),
)
"""What Fig. 4 shows in place of the loss."""


def _claim_of_ours(kind: str) -> Claim:
    """What is left of the scheme's advantage at equal accounted ε, with methods that are tuned alike."""
    return Claim(
        f"{NAMES[kind]}: all tuned alike, at equal accounted ε = 10, the scheme is more accurate than DP-SGD.",
        "ours",
        ahead_when_tuned(PAPER, kind, SCHEME, *BASELINES),
    )


CLAIMS = (
    *_claims_on("logistic"),
    *_claims_on("network"),
    *_GRADIENT_CLAIMS,
    *CURVE_CLAIMS,
    THEOREM_1_CLAIM,
    _claim_of_ours("logistic"),
    _claim_of_ours("network"),
    *ZCDP_BOUND_CLAIMS,
    *THEORY_CLAIMS,
)
