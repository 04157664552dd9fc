"""Claims of the page on multi-objective clipping about methods that are all tuned alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from publications.claims import Claim, Verdict, weigh
from publications.effects import Level
from publications.levels import Method
from publications.moo_methods import TUNED_NAMES
from publications.studies import Size
from publications.sweep_keys import LR, NORM_RATE
from publications.sweeps import CLIPPING_EPSILONS, sweeps_named
from publications.tables import Tables
from publications.tuned_claims import ahead_when_tuned
from publications.tuning_runs import tuned_point

PAPER, SWEEP = "moo-adaptive-clipping", "clipping"
BASELINES = ("DP-SGD", "DP-SGD-WAV", "dynamic DP", "tempered sigmoid")

TEST_IMAGES = 10_000
"""Of MNIST, on which tuned methods are compared."""


def _ahead(method: str, *others: str) -> Callable[[Tables], Verdict]:
    return ahead_when_tuned(PAPER, SWEEP, method, *others)


def _moo_ahead_of_dp_sgd(method: str, sweep: str = SWEEP) -> Callable[[Tables], Verdict]:
    """MOO against DP-SGD, with the difference in images, and whether η_C is the least one that was tried."""

    def check(tables: Tables) -> Verdict:
        found = ahead_when_tuned(PAPER, sweep, method, "DP-SGD")(tables)
        effect = found.effect
        assert effect is not None  # a comparison of runs has one
        told = [effect.name, f"{TEST_IMAGES * effect.value:.1f} of {TEST_IMAGES:,} images"]
        if has_least_rate(method, str(tables.about["size"]), sweep):
            told.append("η_C the least that was tried")
        return replace(found, effect=replace(effect, name="; ".join(told)))

    return check


def has_least_rate(method: str, size: str, sweep: str = SWEEP) -> bool:
    """Whether tuning chose the least η_C of its grid for a form of MOO: C then moves least."""
    here = next(one for one in sweeps_named(PAPER, sweep) if one.size == size)
    tuned = next(one for one in here.methods if one.name == method)
    won = tuned.setting_in(tuned_point(PAPER, sweep, size, method))
    return bool(won[NORM_RATE] == min(tuned.grid[NORM_RATE]))


def chosen_rates(size: Size, methods: Sequence[Method]) -> list[float]:
    """The learning rates that tuning chose for some methods in a size; none where it was not tuned."""
    names = dict.fromkeys(name for one, name in TUNED_NAMES if one in methods)
    points = [tuned_point(PAPER, SWEEP, size, name) for name in names]
    return [float(point[LR]) for point in points if point]


TUNED_MOO = Claim(
    "All tuned alike, at published ε = 3.61, MOO is more accurate than DP-SGD.",
    "ours",
    _moo_ahead_of_dp_sgd("MOO"),
)
TUNED_BEST = Claim(
    "All tuned alike, at published ε = 3.61, MOO is the most accurate of the methods.",
    "ours",
    _ahead("MOO", *BASELINES),
)
TUNED_TEMPERED = Claim(
    "All tuned alike, at published ε = 3.61, tempered sigmoids are more accurate than ReLU.",
    "ours",
    _ahead("tempered sigmoid", "DP-SGD"),
)
TUNED_DYNAMIC = Claim(
    "All tuned alike, at published ε = 3.61, dynamic DP is more accurate than DP-SGD.",
    "ours",
    _ahead("dynamic DP", "DP-SGD"),
)
TUNED_WAV = Claim(
    "All tuned alike, at published ε = 3.61, DP-SGD-WAV is more accurate than DP-SGD.",
    "ours",
    _ahead("DP-SGD-WAV", "DP-SGD"),
)
TUNED_PRIVATE = Claim(
    "All tuned alike, at accounted ε = 3.61, MOO is more accurate than DP-SGD.",
    "ours",
    _moo_ahead_of_dp_sgd("MOO, private"),
)
TUNED_BEST_PRIVATE = Claim(
    "All tuned alike, at accounted ε = 3.61, MOO is more accurate than DP-SGD and tempered sigmoids.",
    "ours",
    _ahead("MOO, private", "DP-SGD", "tempered sigmoid"),
)


def _ahead_of_a_falling_rate(tables: Tables) -> Verdict:
    """MOO with private feedback against DP-SGD whose learning rate falls as its norm does."""
    ours = (f"tuned-{SWEEP}", tuned_point(PAPER, SWEEP, str(tables.about["size"]), "MOO, private"))
    return weigh({"": [Level("difference", tables.difference(ours, ("falling-rate", {})))]})


TUNED_FALLING = Claim(
    "Tuned, at accounted ε = 3.61, MOO is more accurate than DP-SGD whose learning rate falls as MOO's norm does.",
    "ours",
    _ahead_of_a_falling_rate,
)
TUNED_CLAIMS = (
    TUNED_MOO,
    TUNED_BEST,
    TUNED_TEMPERED,
    TUNED_DYNAMIC,
    TUNED_WAV,
    TUNED_PRIVATE,
    TUNED_BEST_PRIVATE,
    TUNED_FALLING,
    *(
        Claim(
            f"All tuned alike, at {spent} ε = {epsilon:g}, MOO is more accurate than DP-SGD.",
            "ours",
            _moo_ahead_of_dp_sgd(method, sweep),
        )
        for sweep, epsilon in CLIPPING_EPSILONS.items()
        if sweep != SWEEP
        for method, spent in (("MOO", "published"), ("MOO, private", "accounted"))
    ),
)
"""On MNIST, at published ε = 3.61 where none is named; noise of DP-SGD and of private MOO is accounted as published."""
