"""Claims of the zCDP paper about curves over the rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from publications.claims import Claim, Outcome, Verdict, at_each, not_tested, verdict, weigh
from publications.effects import Difference, Effect, Level, MissingRuns
from publications.gradients import GRADIENT_NORM
from publications.joint_curves import CurveRow
from publications.studies import Point
from publications.tables import Tables
from publications.tuned_claims import decided_between_rates
from publications.zcdp_measured import AROUND_THE_TURN, FIRST_DROP, LAST, LOSS_RISE, WINDOW
from publications.zcdp_points import DEVICES, NOISE, STEPS, method_point

PAPER, SCHEME, BASELINES = "zcdp-secure-aggregation", "paper's scheme", ("DP-SGD shuffled", "DP-SGD Poisson")
"""The paper, and what its sweeps call the methods; the first baseline is the paper's own."""

_TOO_FEW_ROUNDS = "too few rounds in the small size; the size `full` has the paper's 100"


def apart(mean: float, half_width: float, numbers: str, told: str) -> Verdict:
    """The verdict on a difference of two means that is to be above 0; the reason says what its interval is."""
    effect = Effect(mean, mean - half_width, mean + half_width, "number")
    if not abs(mean) > half_width:  # also where one seed gives no interval
        return Verdict(Outcome.UNDECIDED, numbers, f"{told}: the sign is open", effect)
    return verdict(mean > 0, numbers, told, effect)


def at_one_rate(
    kind: str, check: Callable[[Tables], Verdict], figures: str = "against-dp-sgd"
) -> Callable[[Tables], Verdict]:
    """A check on several local steps beside one in Fig. 5 or 6, or in Fig. 3 or 4, which have one learning rate.

    One step a round is DP-SGD.
    """
    return decided_between_rates(PAPER, f"{figures}-{kind}", kind, (SCHEME, BASELINES[0]), check)


def gradient_norms_apart(tables: Tables) -> Verdict:
    """Whether the network's gradient norm ends below that of DP-SGD; the intervals of two means, not paired by seed."""
    size, study = str(tables.about["size"]), "against-dp-sgd-network"
    ends = []
    for method in (1, 0):
        curve = tables.study(study).curve(method_point(size, "network", method), GRADIENT_NORM)
        if not curve:
            return not_tested(f"{study}: no models are stored")
        ends.append(curve[-1])
    other, ours = ends
    numbers = f"DP-SGD {other.mean:.3g} ± {other.half_width:.2g}, the scheme {ours.mean:.3g} ± {ours.half_width:.2g}"
    half = math.hypot(other.half_width, ours.half_width)
    told = f"after {ours.round} rounds, intervals of two means over {ours.seeds} seeds"
    return apart(other.mean - ours.mean, half, numbers, told)


def larger_gradient_norms(pairs: Sequence[tuple[str, tuple[str, Point], tuple[str, Point]]], tables: Tables) -> Verdict:
    """Whether the gradient norm ends larger at the first point of the pairs than at the second, on average over them.

    Gradient norms are stored as means over the seeds. The two means of a pair are taken as independent; the pairs share
    their seeds, so that their half widths are averaged, as if they missed together.

    Args:
        pairs: In words; study and point of which the gradient norm is to be larger; those that it is compared with.
        tables: Of a size.

    Raises:
        MissingRuns: a point has not run, or its run holds no models.
    """
    means, halves, told, ends = [], [], [], set()
    for name, *points in pairs:
        first, second = (_last_norm(tables, *point) for point in points)
        means.append(first.mean - second.mean)
        halves.append(math.hypot(first.half_width, second.half_width))
        told.append(f"{name}: " + " → ".join(f"{one.mean:.3g} ± {one.half_width:.2g}" for one in (second, first)))
        ends |= {(one.round, one.seeds) for one in (first, second)}
    if len(ends) > 1:
        return not_tested("the curves end in different rounds, or have different seeds")
    ((last, seeds),) = ends
    mean, half = float(np.mean(means)), float(np.mean(halves))
    numbers = f"{mean:+.3g} ± {half:.2g}; {'; '.join(told)}"
    return apart(
        mean, half, numbers, f"after {last} rounds, intervals of means over {seeds} seeds, which are not paired"
    )


def _last_norm(tables: Tables, study: str, where: Point) -> CurveRow:
    curve = tables.study(study).curve(where, GRADIENT_NORM)
    if not curve:
        raise MissingRuns(f"{study}: no gradient norm at {dict(where)}")
    return curve[-1]


def window(curve: Sequence[CurveRow], first: int, last: int) -> float:
    """Mean over rounds of a mean over seeds."""
    return float(np.mean([row.mean for row in curve if first <= row.round <= last]))


def least_window(curve: Sequence[CurveRow]) -> tuple[int, float]:
    """The first round of the `WINDOW` rounds with the least mean, and that mean."""
    means = np.convolve([row.mean for row in curve], np.full(WINDOW, 1 / WINDOW), "valid")
    return curve[int(np.argmin(means))].round, float(means.min())


_SCALINGS = {"public constants": "convergence-logistic", "none": "unscaled-logistic"}
"""By what features are divided by, the study."""


def logistic_rises_again(tables: Tables) -> Verdict:
    """Whether the training loss is larger in the last rounds than around round 40, at σ = 10⁻³ and τ = 40, by seed.

    Judged at either scaling of the features, which the paper does not state.
    """
    point, rises, told = {NOISE: 1e-3, STEPS: 40}, dict[str, dict[str, list[Level]]](), []
    for scaling, study in _SCALINGS.items():
        table = tables.study(study)
        curve = table.curve(point, "train_loss")
        if not curve or curve[-1].round < LAST[1]:
            return not_tested(_TOO_FEW_ROUNDS)
        rises[scaling] = {"": [Level("", Difference(table.by_seed(LOSS_RISE, point)))]}
        first, least = least_window(curve)
        end = window(curve, *LAST)
        told.append(
            f"scaling = {scaling}: the mean over the seeds is least in rounds {first}-{first + WINDOW - 1} "
            f"({least:.4g}), {end - least:.2g} below the last eight ({end:.4g})"
        )
    found = at_each("scaling", rises, scale="number")
    compared = " to ".join(f"{one}-{other}" for one, other in (AROUND_THE_TURN, LAST))
    reason = f"means over {WINDOW} rounds, in which each of the {DEVICES} devices has 5; {found.reason}"
    return replace(found, numbers=f"{found.numbers}, from rounds {compared}; {'; '.join(told)}", reason=reason)


def network_rises_again(tables: Tables) -> Verdict:
    """The same of the network at the paper's largest σ, at each τ: the paper names neither σ nor τ."""
    table = tables.study("convergence-network")
    rises: dict[str, dict[str, list[Level]]] = {}
    for steps in table.levels(STEPS):
        point = {NOISE: 1e-2, STEPS: steps}
        curve = table.curve(point, "train_loss")
        if not curve or curve[-1].round < LAST[1]:
            return not_tested(_TOO_FEW_ROUNDS)
        rises[str(steps)] = {"": [Level("", Difference(table.by_seed(LOSS_RISE, point)))]}
    return at_each("τ", rises, scale="number")


def falls_at_first(tables: Tables) -> Verdict:
    """Whether round 1 costs accuracy at σ = 10⁻², on average over τ; that it rises afterwards is the lesser part."""
    table = tables.study("convergence-network")
    drops, rises, least = [], [], set()
    for steps in table.levels(STEPS):
        point = {NOISE: 1e-2, STEPS: int(steps)}
        curve = table.curve(point)
        if not curve:
            return not_tested("σ = 10⁻² has run in the size `full` alone")
        drops.append(Level(f"τ = {steps}", Difference(table.by_seed(FIRST_DROP, point))))
        rises.append(curve[-1].mean - curve[0].mean)
        least.add(min(curve, key=lambda row: row.mean).round)
    found = weigh({"": drops})
    later = (
        f"over the seeds the mean is least in round {' or '.join(str(at) for at in sorted(least))}, and rises from "
        f"round 1 to the last by {100 * min(rises):.1f} to {100 * max(rises):.1f} points"
    )
    return replace(found, numbers=f"{found.numbers}; {later}")


CURVE_CLAIMS = (
    Claim(
        "Network: at ε = 10 and one learning rate its gradient norm ends lower than that of DP-SGD.",
        "VII-C, Fig. 6",
        at_one_rate("network", gradient_norms_apart),
    ),
    Claim(
        "Logistic regression, σ = 10⁻³, τ = 40: the training loss rises again after about 40 rounds.",
        "VII-B, Fig. 3",
        logistic_rises_again,
    ),
    Claim(
        "Network, at its largest σ, 10⁻²: the training loss rises again after about 40 rounds.",
        "VII-B, similar trends",
        network_rises_again,
    ),
    Claim("Network, σ = 10⁻²: the accuracy falls at first and then rises.", "VII-B, Fig. 4", falls_at_first),
)
