"""Claims of the paper on multi-objective clipping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from publications.claims import Claim, Outcome, Verdict, not_tested, off_by, same, weigh
from publications.effects import Difference, Level, MissingRuns
from publications.levels import DATASET, DATASETS, Method, all_better, all_levels, level_words
from publications.moo_guarantees import DYNAMIC_GUARANTEE, MOO_GUARANTEE
from publications.moo_methods import (
    DP_SGD,
    DP_SGD_ONCE,
    DYNAMIC,
    DYNAMIC_EQUAL,
    EPSILON,
    FEDAVG,
    KEYS,
    METHODS,
    MOO,
    MOO_ONCE,
    MOO_PRIVATE,
    MOO_STEP,
    TEMPERED,
    WAV,
    WEIGHTED,
)
from publications.moo_numbers import DATA, EPSILONS, TABLE_III, stated_lead
from publications.moo_table import diverged_text, has_run
from publications.moo_theory import THEORY_CLAIMS
from publications.moo_tuned import (
    TUNED_BEST,
    TUNED_BEST_PRIVATE,
    TUNED_CLAIMS,
    TUNED_DYNAMIC,
    TUNED_MOO,
    TUNED_PRIVATE,
    TUNED_TEMPERED,
    TUNED_WAV,
    chosen_rates,
)
from publications.tables import Tables
from publications.tuned_claims import chosen_words

Check = Callable[[Tables], Verdict]

# --- where nothing is tuned ----------------------------------------------------------------------------------------

RATE = 0.5
"""The learning rate of the methods of every study that is not tuned, but those of `OTHER_RATES`."""
OTHER_RATES = ((FEDAVG, "DP-FedAvg", 0.1), (WEIGHTED, "weighted wavelets", 1.0))
"""Methods that have a rate of their own, which no sweep tunes."""
UNTUNED = ((WEIGHTED, "weighted wavelets"), (DYNAMIC_EQUAL, "dynamic DP at equal accounted ε"))
"""Forms that no sweep has beside those that are tuned."""


def qualified(check: Check, *methods: Method, compares: bool = True, beside: Claim | None = None) -> Check:
    """A check on accuracies that says what its effect rests on, and decides nothing about methods that are compared.

    They are all at `RATE`, which suits some and makes others fail, at most levels without any tuning: an interval tells
    about that rate. Its numbers and its effect stay.

    Args:
        check: Gives the effect.
        methods: Whose diverged runs are told.
        compares: Whether methods are compared with each other, and not each with itself, which is decided at any rate.
        beside: The claim about the same methods where all are tuned alike.
    """

    def judged(tables: Tables) -> Verdict:
        found = check(tables)
        if found.outcome is Outcome.NOT_TESTED or found.effect is None:
            return found
        size = tables.about["size"]
        told = [found.effect.name, diverged_text(tables, methods)]
        rates = chosen_rates(size, methods)
        other = [one for one in OTHER_RATES if one[0] in methods and has_run(tables, one[0])]
        own = ", ".join(f"{name} {rate:g}" for _, name, rate in other)
        apart = f" ({own})" if own else ""
        forms = ", ".join(name for method, name in UNTUNED if method in methods and has_run(tables, method))
        chosen = chosen_words(rates) + (f" (not tuned: {forms})" if rates and forms else "")
        told.append(f"learning rate {RATE:g}{apart}, {chosen}")
        found = replace(found, effect=replace(found.effect, name="; ".join(one for one in told if one)))
        if not compares:
            return found
        reason = (
            f"the learning rate is {RATE:g} for all{apart}, {chosen}, so that nothing is decided about the methods; at "
            f"it: {found.reason}"
        )
        beside_words = f"; judged below: “{beside.text.rstrip('.')}”" if beside else ""
        return replace(found, outcome=Outcome.UNDECIDED, reason=reason + beside_words)

    return judged


def over(first: Method, second: Method, beside: Claim | None = None) -> Check:
    """A check that the first is more accurate, on average over the levels that both have."""
    return qualified(all_better(((first, second),), KEYS, "ε"), first, second, beside=beside)


# --- claims --------------------------------------------------------------------------------------------------------

OTHERS = {name: methods for name, methods in METHODS.items() if name != "DP-FL w/ MOO"}
PUBLISHED = tuple(published for published, _ in METHODS.values())
EQUAL = tuple(equal for _, equal in METHODS.values() if equal)


def _ahead_of_dp_sgd(tables: Tables) -> Verdict:
    """MOO against DP-SGD; where their studies have not ended, by those of one seed."""
    try:
        return over(MOO, DP_SGD, TUNED_MOO)(tables)
    except MissingRuns:
        if not (has_run(tables, MOO_ONCE) and has_run(tables, DP_SGD_ONCE)):
            raise
        return over(MOO_ONCE, DP_SGD_ONCE, TUNED_MOO)(tables)


def _best(tables: Tables) -> Verdict:
    """MOO against every other method at equal published ε, but where the paper does not have it ahead."""
    pairs = [(MOO, published) for published, _ in OTHERS.values()]
    behind = [{DATASET: data, EPSILON: one} for data in DATA for one in EPSILONS if stated_lead(data, one) < 0]
    return all_better(pairs, KEYS, "ε", names=list(OTHERS), but=behind)(tables)


def _best_at_equal_epsilon(tables: Tables) -> Verdict:
    ran = {name: equal for name, (_, equal) in OTHERS.items() if equal and equal.study in tables.studies}
    if not ran:
        raise MissingRuns("no other method has run at equal accounted ε")
    return all_better([(MOO_PRIVATE, equal) for equal in ran.values()], KEYS, "ε", names=list(ran))(tables)


def _lost(tables: Tables, method: Method, data: str) -> Difference:
    """What a method loses from ε = 6.38 to 1.64."""
    high, low = ({DATASET: data, EPSILON: value} for value in (EPSILONS[0], EPSILONS[-1]))
    return tables.difference(method.at(high), method.at(low))


def _data_at_both_ends(tables: Tables) -> list[str]:
    """The data sets of which MOO has run at the largest and at the least ε.

    Raises:
        MissingRuns: there is none, or runs of the study are missing.
    """
    levels, ends = all_levels(tables, MOO, KEYS), (EPSILONS[0], EPSILONS[-1])
    found = [data for data in DATA if all({DATASET: data, EPSILON: one} in levels for one in ends)]
    if not found:
        raise MissingRuns("MOO has run on no data at both the largest and the least ε")
    return found


def _falls(tables: Tables) -> Verdict:
    """Every method loses accuracy from ε = 6.38 to 1.64."""
    groups = {
        name: [
            Level(f"{DATASETS[data]}, 6.38 less 1.64", _lost(tables, published, data))
            for data in _data_at_both_ends(tables)
        ]
        for name, (published, _) in METHODS.items()
    }
    return weigh(groups)


def _loses_least(tables: Tables) -> Verdict:
    """What each other method loses from ε = 6.38 to 1.64, less what MOO loses: the growth of MOO's lead over it."""
    groups: dict[str, list[Level]] = {}
    for data in _data_at_both_ends(tables):
        ours = _lost(tables, MOO, data).by_seed
        for name, (published, _) in OTHERS.items():
            theirs = _lost(tables, published, data).by_seed
            more = {seed: theirs[seed] - ours[seed] for seed in sorted(theirs.keys() & ours.keys())}
            level = Level(f"{DATASETS[data]}, lost by it less lost by MOO", Difference(more))
            groups.setdefault(name, []).append(level)
    return weigh(groups)


AGREEMENT = 0.02
"""What counts as the accuracy that is stated: two points on either side."""


NEEDED = "needs the paper's size with several seeds"
"""Clients, rounds and networks of the paper: elsewhere its numbers are those of another training."""


def _numbers(tables: Tables) -> Verdict:
    if tables.about["size"] != "full":
        return not_tested(NEEDED)
    try:
        return same(_off_table_iii(tables), AGREEMENT)
    except MissingRuns:
        return not_tested("; ".join([NEEDED, *_one_seed_words(tables)]))


def _one_seed_words(tables: Tables) -> list[str]:
    """By how much the runs of one seed differ from Table III on MNIST."""
    told = []
    for name, method in (("FL w/ DP-SGD", DP_SGD_ONCE), ("DP-FL w/ MOO", MOO_ONCE)):
        if has_run(tables, method):
            off = []
            for epsilon in EPSILONS:
                ours = tables.band(*method.at({DATASET: "mnist", EPSILON: epsilon}))
                off.append(f"{100 * float(ours.mean[0]) - TABLE_III[name]['mnist'][epsilon]:+.1f}")
            told.append(f"{name} {', '.join(off)} points")
    at = f"one seed there less the paper's, MNIST at ε = {', '.join(EPSILONS)}, learning rate {RATE:g} for all"
    return [f"{at}: {'; '.join(told)}"] if told else []


def _off_table_iii(tables: Tables) -> list[Level]:
    levels = []
    for name, (published, _) in METHODS.items():
        for level in all_levels(tables, published, KEYS):
            stated = TABLE_III[name][level[DATASET]][level[EPSILON]] / 100
            ours = tables.study(published.study).by_seed("test_accuracy", published.at(level)[1])
            levels.append(Level(f"{name} {level_words(level, 'ε')}", off_by(stated, ours)))
    return levels


def _leads(tables: Tables) -> Verdict:
    if tables.about["size"] != "full" or not has_run(tables, MOO):
        return not_tested(NEEDED)
    levels = []
    for level in all_levels(tables, MOO, KEYS):
        leads = [tables.difference(MOO.at(level), published.at(level)) for published, _ in OTHERS.values()]
        least = min(leads, key=lambda one: one.mean)
        stated = stated_lead(level[DATASET], level[EPSILON]) / 100
        levels.append(Level(level_words(level, "ε"), off_by(stated, dict(least.by_seed))))
    return same(levels, AGREEMENT)


CLAIMS = (
    Claim(
        "DP-FL with MOO is the most accurate of the six methods, but on CIFAR-10 at ε = 6.38.",
        "Table III",
        qualified(_best, *PUBLISHED, beside=TUNED_BEST),
    ),
    Claim("MOO is more accurate than DP-SGD with the same starting norm.", "Table III", _ahead_of_dp_sgd),
    Claim("Tempered sigmoids are more accurate than ReLU.", "Table III", over(TEMPERED, DP_SGD, TUNED_TEMPERED)),
    Claim("Dynamic DP is more accurate than DP-SGD.", "Table III", over(DYNAMIC, DP_SGD, TUNED_DYNAMIC)),
    Claim("DP-SGD-WAV is more accurate than DP-SGD.", "Table III", over(WAV, DP_SGD, TUNED_WAV)),
    Claim(
        "From ε = 6.38 to 1.64 every method loses accuracy.",
        "V-C",
        qualified(_falls, *PUBLISHED, compares=False),
    ),
    Claim(
        "From ε = 6.38 to 1.64 MOO loses less accuracy than every other method, so that its lead grows.",
        "V-C: mitigates this degradation more effectively; VI: particularly strong in lower privacy regimes",
        qualified(_loses_least, *PUBLISHED),
    ),
    Claim(
        "The accuracies are those of Table III.",
        "Table III",
        qualified(_numbers, *PUBLISHED),
    ),
    Claim(
        "MOO leads the best other method by what V-C states, 0.18 to 2.55 points, and is 0.21 behind it once.",
        "V-C",
        qualified(_leads, *PUBLISHED),
    ),
    MOO_GUARANTEE,
    DYNAMIC_GUARANTEE,
    Claim(
        "At equal accounted ε, MOO is more accurate than DP-SGD.",
        "ours",
        over(MOO_PRIVATE, DP_SGD, TUNED_PRIVATE),
    ),
    Claim(
        "At equal accounted ε, MOO is the most accurate of the methods.",
        "ours",
        qualified(_best_at_equal_epsilon, *EQUAL, beside=TUNED_BEST_PRIVATE),
    ),
    Claim("At equal accounted ε, dynamic DP is more accurate than DP-SGD.", "ours", over(DYNAMIC_EQUAL, DP_SGD)),
    Claim("At equal accounted ε, DP-SGD-WAV is more accurate than DP-SGD.", "ours", over(WEIGHTED, DP_SGD)),
    Claim(
        "MOO whose norm follows every sample is more accurate than MOO whose norm moves once a step.",
        "ours; Algorithm 1",
        over(MOO, MOO_STEP),
    ),
    *TUNED_CLAIMS,
    *THEORY_CLAIMS,
)
