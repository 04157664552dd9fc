"""Verdicts: judged on the interval of a mean effect over levels, paired by seed, never on a mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from publications.claims import Outcome, at_each, judge, same, weigh
from publications.effects import ALPHA, Difference, Effect, Level, MissingRuns, average, ratio
from publications.levels import Method, better
from publications.tables import Tables
from tests.publications.example import ABOUT, EXAMPLE, TABLES, study
from tests.statistics import shifted, standard_errors

EXPECTED = ("confirmed", "contradicted", "undecided", "contradicted", "not tested", "not tested")


def levels(*rows: Sequence[float] | NDArray[np.float64]) -> list[Level]:
    """Levels with their differences seed by seed."""
    return [Level(f"level {at}", Difference.of([float(one) for one in row])) for at, row in enumerate(rows)]


@pytest.mark.parametrize(("index", "expected"), list(enumerate(EXPECTED)))
def test_verdicts(index: int, expected: str) -> None:
    assert judge(EXAMPLE.claims[index], TABLES).outcome.value == expected


def test_reasons() -> None:
    reasons = [judge(claim, TABLES).reason for claim in EXAMPLE.claims]
    assert reasons[0] == "the 95 % interval of the mean effect over 3 seeds lies on the claimed side"
    assert reasons[1] == "the 95 % interval of the mean effect over 3 seeds lies wholly on the other side"
    assert reasons[2] == "3 seeds do not tell the sign"
    assert reasons[4] == "the study absent has not run"


def test_levels_are_averaged_within_a_seed() -> None:
    """One level alone decides nothing and one points the other way; the mean is sure."""
    first, second = [0.30, 0.10, 0.25, 0.05], [-0.08, 0.11, -0.05, 0.16]
    found = weigh({"": levels(first, second)})
    low, high = stats.ttest_1samp((np.array(first) + np.array(second)) / 2, 0).confidence_interval(0.95)
    assert found.outcome is Outcome.CONFIRMED and found.effect is not None
    assert (found.effect.low, found.effect.high) == pytest.approx((low, high))
    assert "2 levels, from +3.5 ±" in found.numbers and "to +17.5 ±" in found.numbers
    assert [level.name for level in found.effect.levels] == ["level 0", "level 1"]


def test_a_claim_about_levels_waits_for_the_last_of_them() -> None:
    """Of three levels one has not run: where both methods have run, the mean would be over two of them."""
    key = "data.dataset.name"
    better_one, other = Method("one"), Method("other")
    check = better(better_one, other, (key,), "σ")
    accuracies = {"mnist": [0.9, 0.8, 0.9], "fashion_mnist": [0.8, 0.7, 0.9], "cifar10": [0.4, 0.5, 0.4]}
    worse = {level: [one - 0.1 for one in values] for level, values in accuracies.items()}
    tables = Tables(
        {**ABOUT, "runs": {"one": 9, "other": 9}},
        {"one": study("one", accuracies, key), "other": study("other", worse, key)},
    )
    assert check(tables).outcome is Outcome.CONFIRMED
    begun = study("other", dict(list(worse.items())[:2]), key)
    with pytest.raises(MissingRuns, match="the study other lacks 3 of 9 runs"):
        check(replace(tables, studies={**tables.studies, "other": begun}))


def test_only_seeds_that_all_levels_have_count() -> None:
    one, other = Difference({1: 0.1, 2: 0.2, 3: 0.3}), Difference({2: 0.4, 3: 0.5, 4: 9.0})
    assert average([one, other]).by_seed == pytest.approx({2: 0.3, 3: 0.4})
    with pytest.raises(MissingRuns, match="no common seed"):
        average([one, Difference({4: 0.1, 5: 0.1})])
    with pytest.raises(MissingRuns, match="no finite number for seed 2"):
        Difference({1: 0.1, 2: math.nan})


def test_the_best_of_several_has_to_beat_each() -> None:
    sure, open_one, lost = [0.10, 0.11, 0.09], [0.1, -0.1, 0.05], [-0.1, -0.11, -0.09]
    assert weigh({"a": levels(sure), "b": levels(sure)}).outcome is Outcome.CONFIRMED
    found = weigh({"a": levels(sure), "b": levels(open_one)})
    assert found.outcome is Outcome.UNDECIDED and found.reason.endswith("for b")
    found = weigh({"a": levels(sure), "b": levels(lost), "c": levels(open_one)})
    assert found.outcome is Outcome.CONTRADICTED and found.reason.endswith("for b")
    assert found.effect is not None and found.effect.name == "b"


def test_the_interval_that_is_printed_is_the_one_that_decided() -> None:
    """Of two effects the worse is below 0 at 95 % and not at 97.5 %: undecided, and printed at 97.5 %."""
    below = [-0.040, -0.015, -0.005, -0.022, -0.010]
    assert weigh({"": levels(below)}).outcome is Outcome.CONTRADICTED
    found = weigh({"a": levels(below), "b": levels([0.1, 0.11, 0.09, 0.1, 0.1])})
    assert found.outcome is Outcome.UNDECIDED and found.effect is not None
    low, high = stats.ttest_1samp(below, 0).confidence_interval(0.975)
    assert (found.effect.low, found.effect.high) == pytest.approx((low, high))
    assert low < 0 < high and " at 97.5 %), a" in found.effect.text()
    assert "these ± at 97.5 %" in found.numbers


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_printed_interval_never_says_another_thing_than_the_verdict(count: int) -> None:
    rng = np.random.default_rng(shifted(19))
    seen = set()
    for _ in range(300):
        groups = {f"{at}": levels(rng.normal(rng.normal(0, 0.02), 0.01, 4)) for at in range(count)}
        found = weigh(groups, least=0.005)
        assert found.effect is not None
        if found.outcome is Outcome.CONFIRMED:
            assert found.effect.low > 0.005
        elif found.outcome is Outcome.CONTRADICTED:
            assert found.effect.high < 0.005
        else:
            assert found.effect.low <= 0.005 <= found.effect.high
        seen.add(found.outcome)
    assert len(seen) == 3


def test_a_claim_whose_sign_differs_between_values_of_a_setting_depends_on_it() -> None:
    above, below, wide = [0.10, 0.11, 0.09], [-0.10, -0.11, -0.09], [0.10, -0.10, 0.05]
    found = at_each("τ", {"1": {"": levels(above)}, "2": {"": levels(below)}})
    assert (found.outcome, found.remark) == (Outcome.UNDECIDED, "it depends on τ")
    assert found.reason == "the paper does not state τ; confirmed at τ = 1; contradicted at τ = 2"
    assert found.effect is not None
    assert [part.name for part in found.effect.parts] == ["τ = 1", "τ = 2"]
    assert found.effect.text().startswith("+10 points (")
    assert "97.5 %), τ = 1; -10 points (" in found.effect.text()
    assert [level.name for level in found.effect.levels] == ["τ = 1", "τ = 2"]
    assert found.effect.value == pytest.approx(-0.1)
    for one, outcome in ((above, Outcome.CONFIRMED), (below, Outcome.CONTRADICTED)):
        alike = at_each("τ", {"1": {"": levels(one)}, "2": {"": levels(one)}})
        assert (alike.outcome, alike.remark) == (outcome, "")
    open_one = at_each("τ", {"1": {"": levels(above)}, "2": {"": levels(wide)}})
    assert (open_one.outcome, open_one.remark) == (Outcome.UNDECIDED, "not sure at every τ")


def test_every_value_of_a_setting_is_judged_at_its_share_of_the_five_percent() -> None:
    """Sure at 95 % and not at 98.75 %, the share of one of four values."""
    barely = [0.040, 0.012, 0.004, 0.022, 0.010]
    assert weigh({"": levels(barely)}).outcome is Outcome.CONFIRMED
    found = at_each("τ", {f"{at}": {"": levels(barely)} for at in range(4)})
    assert found.outcome is Outcome.UNDECIDED and found.effect is not None
    assert found.effect.parts[0].low < 0 < found.effect.parts[0].high


def test_one_seed_gives_an_effect_and_no_interval() -> None:
    found = weigh({"a": levels([0.2]), "b": levels([0.1])})
    assert (found.outcome, found.one_seed, found.reason) == (Outcome.UNDECIDED, True, "one seed gives no interval")
    assert found.effect is not None and found.effect.text() == "+10 points, b"
    assert found.numbers == "a: +20 points; b: +10 points"
    assert same(levels([0.2]), 0.02).one_seed
    assert not weigh({"": levels([0.2, -0.2])}).one_seed


def test_beyond_a_threshold() -> None:
    wide = [0.16, 0.14, 0.15, 0.15, 0.16]
    assert weigh({"": levels(wide)}, least=0.1).outcome is Outcome.CONFIRMED
    assert weigh({"": levels(wide)}, least=0.15).outcome is Outcome.UNDECIDED
    assert weigh({"": levels(wide)}, least=0.2).outcome is Outcome.CONTRADICTED


def test_agreement_with_stated_numbers() -> None:
    near, far, wide = [0.001, -0.002, 0.0015], [0.05, 0.051, 0.049], [0.05, -0.05, 0.01]
    assert same(levels(near, near), 0.02).outcome is Outcome.CONFIRMED
    assert same(levels(near, far), 0.02).outcome is Outcome.CONTRADICTED
    assert same(levels(near, wide), 0.02).outcome is Outcome.UNDECIDED
    # Farthest of all but not surely outside: what is printed is the number that decided
    farther = [0.0, 0.3, -0.05]
    decided = same(levels(near, far, farther), 0.02)
    assert decided.outcome is Outcome.CONTRADICTED and decided.effect is not None
    assert decided.effect.name == "ours less stated, level 1" and decided.effect.low > 0.02
    # Of 54 numbers that are judged together the interval of one is wider, whatever has run
    wider = same(levels(near, [0.05, 0.054, 0.046]), 0.02, count=54)
    assert same(levels(near, [0.05, 0.054, 0.046]), 0.02).outcome is Outcome.CONTRADICTED
    assert wider.outcome is Outcome.UNDECIDED and wider.effect is not None and wider.effect.alpha == ALPHA / 54


def test_effects_for_people() -> None:
    assert Effect(0.0312, 0.01, 0.0524).text() == "+3.12 points (+1 to +5.24)"
    assert Effect(-0.5, scale="number").text() == "-0.5"
    assert ratio(24_738.4, "accounted over published ε").text() == "× 24,738, accounted over published ε"
    assert ratio(math.inf).text() == "× ∞"


# --- false alarms and power, by simulation ---------------------------------------------------------------------------

TRIALS = 4_000
MARGIN = standard_errors() * math.sqrt(0.025 * 0.975 / TRIALS)
"""A share of 2.5 % comes out farther from it than this with a probability of 10⁻⁶."""


def shares(effects: dict[str, float], *, seeds: int = 5, count: int = 3, spread: float = 0.02) -> dict[Outcome, float]:
    """How often each outcome comes, over draws of differences: levels of a seed share half of their variance."""
    rng = np.random.default_rng(shifted(18))
    found = dict.fromkeys(Outcome, 0)
    for _ in range(TRIALS):
        shared = rng.normal(0, spread, seeds)
        groups = {
            name: levels(*(effect + (shared + rng.normal(0, spread, seeds)) / math.sqrt(2) for _ in range(count)))
            for name, effect in effects.items()
        }
        found[weigh(groups).outcome] += 1
    return {outcome: number / TRIALS for outcome, number in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 5])
def test_without_an_effect_a_claim_is_confirmed_or_contradicted_in_one_of_forty(groups: int) -> None:
    found = shares({f"method {at}": 0.0 for at in range(groups)})
    assert found[Outcome.CONFIRMED] <= 0.025 + MARGIN
    assert found[Outcome.CONTRADICTED] <= 0.025 + MARGIN
    if groups == 1:  # the test is exact, not merely below
        assert found[Outcome.CONFIRMED] >= 0.025 - MARGIN
        assert found[Outcome.CONTRADICTED] >= 0.025 - MARGIN


@pytest.mark.slow
def test_an_effect_of_two_deviations_is_found_with_the_power_of_student_s_t() -> None:
    """Against the noncentral t distribution: five seeds, an effect of two standard deviations of the seeds' means."""
    deviation = 0.02 * math.sqrt(0.5 + 0.5 / 3)
    found = shares({"": 2 * deviation})
    power = float(stats.nct.sf(stats.t.ppf(0.975, 4), 4, 2 * math.sqrt(5)))
    assert power > 0.88
    assert found[Outcome.CONFIRMED] == pytest.approx(
        power, abs=standard_errors() * math.sqrt(power * (1 - power) / TRIALS)
    )
    assert found[Outcome.CONTRADICTED] == 0
