"""The checks behind the claims of the over-the-air paper."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from publications.claims import Comparison, Outcome, Verdict, at_each, greater, verdict, weigh
from publications.effects import Difference, Level, ratio
from publications.ota_points import (
    ALGORITHMS,
    ALONE,
    CLIPS,
    DRIFT,
    EPSILONS,
    JAMMED,
    JAMMED_EPSILONS,
    PAIRS,
    POLICY,
    STEP,
    SWEEP,
    Place,
    alone,
    clipped,
    drift,
    equal,
    iid,
    jammed,
    step,
)
from publications.tables import Tables

EARLY, METRIC = "early_accuracy", "late_accuracy"
"""Speed is judged on the first quarter of the rounds, the end on the last quarter: less noisy than one round alone."""

IMPEDED, SIGNIFICANT = 0.10, 0.01
"""Our readings of *significantly impedes* and of *significantly outperforms*, for which the paper has no numbers."""

_ROUNDING = 1e-9
"""What two sums of the same terms may differ by, as a share."""
_Pairs = list[tuple[str, Place, Place]]


def _compare(name: str, first: Place, second: Place, group: str = "", metric: str = METRIC) -> Comparison:
    return Comparison(name, first, second, metric, group)


def ordered(first: str, *others: str, metric: str = METRIC, least: float = 0.0) -> Callable[[Tables], Verdict]:
    """One algorithm above others by more than ``least``, on receiver noise alone.

    The paper does not state τ: where other values have run, the claim is judged at each of them, else at τ = 1 alone.
    """

    def check(tables: Tables) -> Verdict:
        def levels(pairs: _Pairs) -> list[Level]:
            return [Level(name, tables.difference(one, other, metric)) for name, one, other in pairs]

        def groups(norm: float) -> dict[str, list[Level]]:
            return {
                f"over {ALGORITHMS[other]}" if len(others) > 1 else "": levels(_at_norm(first, other, norm))
                for other in others
            }

        if SWEEP in tables.studies:
            return at_each("τ", {f"{norm:g}": groups(norm) for norm in CLIPS}, least)
        found = groups(1.0)
        if DRIFT in tables.studies:
            for other, some in zip(others, found.values(), strict=True):
                some += levels([("20 local epochs", drift(first), drift(other))])
        return _open_at_one(weigh(found, least))

    return check


def _at_norm(first: str, other: str, norm: float) -> _Pairs:
    """Where two algorithms stand side by side at a clip norm: at 1 at both pairs of ε and δ, else at the first."""
    if norm == 1.0:
        return [(f"ε = {pair[0]}", alone(first, pair), alone(other, pair)) for pair in PAIRS]
    return [(f"ε = {PAIRS[0][0]}", clipped(first, norm), clipped(other, norm))]


def at_one_clip_norm(check: Callable[[Tables], Verdict]) -> Callable[[Tables], Verdict]:
    """A check that decides nothing about algorithms, as one τ has run, which the paper does not state."""
    return lambda tables: _open_at_one(check(tables))


def _open_at_one(found: Verdict) -> Verdict:
    # Where several τ have run, without a jammer in the size `full`, the order of the three depends on it
    why = "τ = 1 alone has run, which the paper does not state, and the order of the three depends on τ"
    return found.opened(why, "at τ = 1 alone")


def over_baseline(metric: str = METRIC) -> Callable[[Tables], Verdict]:
    """All three above the baseline."""

    def check(tables: Tables) -> Verdict:
        pairs = [(f"ε = {pair[0]}", pair) for pair in PAIRS]
        found = [
            _compare(name, alone(one, pair), alone("fedavg", pair, "privacy_for_free"), words, metric)
            for name, pair in pairs
            for one, words in ALGORITHMS.items()
        ]
        if DRIFT in tables.studies:
            found += [
                _compare("20 local epochs", drift(one), drift("fedavg", "privacy_for_free"), words, metric)
                for one, words in ALGORITHMS.items()
            ]
        return greater(*found)(tables)

    return check


def with_jammer(metric: str = METRIC) -> Callable[[Tables], Verdict]:
    """Upcycled-FL above the others at every ε."""
    return greater(
        *(
            _compare(f"ε = {one}", jammed("upcycled", one), jammed(other, one), f"over {ALGORITHMS[other]}", metric)
            for one in JAMMED_EPSILONS
            for other in ("fedprox", "fedavg")
        )
    )


def falls_with_epsilon(tables: Tables) -> Verdict:
    """Every step down of ε lowers the accuracy of each."""
    steps = list(itertools.pairwise(JAMMED_EPSILONS))
    return greater(
        *(
            _compare(f"{high} − {low}", jammed(name, high), jammed(name, low), words)
            for name, words in ALGORITHMS.items()
            for high, low in steps
        )
    )(tables)


def impeded(tables: Tables) -> Verdict:
    """ε = 0.1 far below ε = 1."""
    return greater(
        *(_compare("", jammed(name, 1), jammed(name, 0.1), words) for name, words in ALGORITHMS.items()), least=IMPEDED
    )(tables)


def iid_beats_baseline(least: float = 0.0) -> Callable[[Tables], Verdict]:
    """On iid data, by more than ``least``; decides nothing, as the paper states neither rate nor τ for these."""
    check = greater(_compare("cross-layer − baseline", iid("cross_layer"), iid("privacy_for_free")), least=least)
    why = "the learning rate 0.05 and τ = 1 alone have run, and the paper states neither for iid data"
    return lambda tables: check(tables).opened(why, "at one rate and τ = 1 alone")


def accounting_of_updates(tables: Tables) -> Verdict:
    """Whether the accounted ε of whole updates is at most the published one, and what an audit shows."""
    return _accounting(tables, (ALONE, JAMMED))


def accounting_of_steps(tables: Tables) -> Verdict:
    """The same where one sample really moves an update by no more than the theorem supposes."""
    return _accounting(tables, (STEP,))


def _accounting(tables: Tables, studies: tuple[str, ...]) -> Verdict:
    pairs = [
        (run.numbers["epsilon_published"], run.numbers["epsilon_accounted"])
        for name in studies
        for run in tables.study(name).runs
        if run.point.get(POLICY) != "privacy_for_free"  # the baseline, which has a theorem of its own
    ]
    worst = max(pairs, key=lambda pair: pair[1] / pair[0])
    holds = all(accounted <= published for published, accounted in pairs)
    numbers = f"{len(pairs)} runs; largest excess: accounted {worst[1]:.4g} where {worst[0]:.4g} is published"
    audited = []
    for name in studies:
        for audit in tables.study(name).audits:
            audited.append(audit.epsilon_empirical / audit.epsilon_published)
            numbers += (
                f"; audit of {name}: at least {audit.epsilon_empirical:.3g} "
                f"where {audit.epsilon_published:.3g} is published"
            )
    excess = ratio(worst[1] / worst[0], "accounted over published ε")
    reason = "one sample can swing a whole update from one side of the clipping ball to the other, not by τ/n_i"
    if max(audited, default=0.0) > 1:
        lower = ratio(max(audited), "audited lower bound over published ε")
        return verdict(False, numbers, f"{reason}; an audit tells the two apart", lower)
    if holds:
        return verdict(True, numbers, "accounted ε is at most the published one in every run", excess)
    why = "the accounted ε is an upper bound, and no audit of this size refutes the published one"
    return Verdict(Outcome.UNDECIDED, numbers, f"{why}; {reason}", excess)


def even_iterations_are_free(tables: Tables) -> Verdict:
    """Whether Upcycled-FL, with twice the iterations, has the accounted ε of FedAvg."""
    table = tables.study(ALONE)
    quotients = []
    for pair in PAIRS:
        one, other = (table.by_seed("epsilon_accounted", alone(name, pair)[1]) for name in ("upcycled", "fedavg"))
        quotients += [one[seed] / other[seed] for seed in one.keys() & other.keys()]
    largest = max(quotients)
    return verdict(
        largest <= 1 + _ROUNDING,
        f"{len(quotients)} pairs of runs: accounted ε of Upcycled-FL over that of FedAvg {largest:.4g} at most",
        "an even iteration uses models that the server has, and no data: the ledger charges transmissions alone",
        ratio(largest, "accounted ε, Upcycled-FL over FedAvg"),
    )


def upcycled_at_equal_epsilon(tables: Tables) -> Verdict:
    """Upcycled-FL above the others where the accounted ε is the one stated."""
    return greater(
        *(
            _compare(f"ε = {epsilon}", equal("upcycled", epsilon), equal(other, epsilon), f"over {ALGORITHMS[other]}")
            for epsilon in EPSILONS
            for other in ("fedprox", "fedavg")
        )
    )(tables)


def step_beats_update(tables: Tables) -> Verdict:
    """One clipped step against a whole update, both with exact calibration."""
    return greater(
        *(_compare(f"ε = {epsilon}", step(epsilon, "exact"), equal("fedavg", epsilon)) for epsilon in EPSILONS)
    )(tables)


def power_of_exact(tables: Tables) -> Verdict:
    """The jamming energy of exact calibration over that of the theorem, the largest of all ε and seeds."""
    quotients = {epsilon: 1 - power_saving(tables, epsilon).mean for epsilon in JAMMED_EPSILONS}
    largest = max(quotients, key=lambda epsilon: quotients[epsilon])
    told = ", ".join(f"{quotient:.3g} at ε = {epsilon:g}" for epsilon, quotient in quotients.items())
    return verdict(
        quotients[largest] < 1,
        f"energy by exact calibration over that by Theorem 2: {told}",
        "both follow from ε and the channels alone, so that no seed changes the quotient",
        ratio(quotients[largest], f"jamming energy, exact over theorem, at ε = {largest:g}"),
    )


def power_saving(tables: Tables, epsilon: float) -> Difference:
    """1 − exact/theorem of the jammer's energy, paired over seeds."""
    table = tables.study(STEP)
    exact, theorem = (table.by_seed("jammer_energy", step(epsilon, kind)[1]) for kind in ("exact", "theorem"))
    return Difference({seed: 1 - exact[seed] / theorem[seed] for seed in sorted(exact.keys() & theorem.keys())})


def accuracy_of_exact(tables: Tables) -> Verdict:
    """The accuracy that exact calibration gains."""
    return greater(
        *(_compare(f"ε = {epsilon}", step(epsilon, "exact"), step(epsilon, "theorem")) for epsilon in JAMMED_EPSILONS)
    )(tables)
