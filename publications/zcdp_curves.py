"""Claims of the zCDP paper about curves over the rounds, of which means and intervals over the seeds are stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from publications.claims import Claim, Outcome, Verdict, not_tested, verdict
from publications.effects import Effect
from publications.gradients import GRADIENT_NORM
from publications.tables import CurveRow, StudyTable, Tables
from publications.zcdp_points import DEVICES, NOISE, STEPS, method_point

WINDOW = 8
"""Rounds of a mean: in so many turns of 10 devices each of the 16 has 5."""

AROUND_THE_TURN, LAST = (37, 44), (93, 100)
"""First and last of the rounds that are compared: those after which the paper sees the loss rise, and its last ones.

They follow from the paper's words; chosen by our curve, as around its minimum, they would favour a rise.
"""


def apart(mean: float, half_width: float, numbers: str, told: str) -> Verdict:
    """The verdict on a difference of two means that is to be above 0; the reason says what its interval is."""
    effect = Effect(mean, mean - half_width, mean + half_width, "number")
    if abs(mean) <= half_width:
        return Verdict(Outcome.UNDECIDED, numbers, f"{told}: the sign is open", effect)
    return verdict(mean > 0, numbers, told, effect)


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


def window(curve: Sequence[CurveRow], first: int, last: int) -> tuple[float, float]:
    """Mean over rounds, and a half width that the mean's own cannot exceed, whatever the rounds have in common."""
    rows = [row for row in curve if first <= row.round <= last]
    return float(np.mean([row.mean for row in rows])), float(np.mean([row.half_width for row in rows]))


def least_window(curve: Sequence[CurveRow]) -> tuple[int, float]:
    """The first round of the `WINDOW` rounds with the least mean, and that mean."""
    means = np.convolve([row.mean for row in curve], np.full(WINDOW, 1 / WINDOW), "valid")
    return curve[int(np.argmin(means))].round, float(means.min())


def rise(table: StudyTable, noise: float, steps: int) -> tuple[float, float] | None:
    """How much the training loss rises from the turn that the paper sees to round 100, with its half width.

    Means over the seeds are stored, not the seeds' own curves. The half width takes the two means for uncorrelated;
    as they share seeds, data and first models, that of a difference paired by seed would be smaller.
    """
    curve = table.curve({NOISE: noise, STEPS: steps}, "train_loss")
    if not curve or curve[-1].round < LAST[1]:
        return None
    (turn, turn_half), (end, end_half) = window(curve, *AROUND_THE_TURN), window(curve, *LAST)
    return end - turn, math.hypot(turn_half, end_half)


def rises_again(study: str, noise: float, steps: int, tables: Tables) -> Verdict:
    """Whether the training loss is larger in the last rounds than around round 40."""
    table = tables.study(study)
    found = rise(table, noise, steps)
    if found is None:
        return not_tested("too few rounds in the small size; the size `full` has the paper's 100")
    curve = table.curve({NOISE: noise, STEPS: steps}, "train_loss")
    first, least = least_window(curve)
    end = window(curve, *LAST)[0]
    compared = " to ".join(f"{one}-{other}" for one, other in (AROUND_THE_TURN, LAST))
    numbers = (
        f"{found[0]:+.3g} ± {found[1]:.2g} from rounds {compared}; least in rounds {first}-{first + WINDOW - 1} "
        f"({least:.4g}), {end - least:.2g} below the last eight ({end:.4g})"
    )
    told = (
        f"means over {WINDOW} rounds, in which each of the {DEVICES} devices has 5, of means over {curve[-1].seeds} "
        "seeds; the interval is not paired by seed"
    )
    return apart(*found, numbers, told)


def falls_at_first(tables: Tables) -> Verdict:
    """What is known of the fall that the paper sees before the accuracy rises: the model before round 1 is not."""
    table = tables.study("convergence-network")
    curves = [curve for steps in table.levels(STEPS) if (curve := table.curve({NOISE: 1e-2, STEPS: int(steps)}))]
    if not curves:
        return not_tested("σ = 10⁻² has run in the size `full` alone")
    fall = max(curve[0].mean - min(row.mean for row in curve) for curve in curves)
    after = f"after it the mean accuracy falls by {100 * fall:.1f} points at most below that of round 1"
    return not_tested(f"the model before the first round is not evaluated; {after} ({100 * curves[0][0].mean:.1f} %)")


def _rises(who: str, source: str, study: str, noise: float, steps: int) -> Claim:
    check: Callable[[Tables], Verdict] = partial(rises_again, study, noise, steps)
    return Claim(f"{who}: the training loss rises again after about 40 rounds.", source, check)


CURVE_CLAIMS = (
    Claim(
        "Network: at ε = 10 and one learning rate its gradient norm ends lower than that of DP-SGD.",
        "VII-C, Fig. 6",
        gradient_norms_apart,
    ),
    _rises("Logistic regression, σ = 10⁻³, τ = 40", "VII-B, Fig. 3", "convergence-logistic", 1e-3, 40),
    _rises("The same on features as they stand in the files", "VII-B, Fig. 3", "unscaled-logistic", 1e-3, 40),
    _rises("Network, σ = 10⁻², τ = 20", "VII-B, similar trends", "convergence-network", 1e-2, 20),
    Claim("Network, σ = 10⁻²: the accuracy falls at first and then rises.", "VII-B, Fig. 4", falls_at_first),
)
