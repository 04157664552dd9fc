"""The checks behind the claims of the over-the-air paper."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from publications.claims import Comparison, Verdict, greater, verdict, weigh
from publications.effects import Difference, Level, ratio
from publications.ota_points import (
    ALGORITHMS,
    ALONE,
    DRIFT,
    EPSILONS,
    JAMMED,
    JAMMED_EPSILONS,
    PAIRS,
    STEP,
    Place,
    alone,
    drift,
    equal,
    iid,
    jammed,
    step,
)
from publications.tables import Tables

EARLY, METRIC = "early_accuracy", "late_accuracy"
"""Speed is judged on the first quarter of the rounds, the end on the last quarter: less noisy than one round alone."""

IMPEDED, STUCK = 0.10, 0.05


def _compare(name: str, first: Place, second: Place, group: str = "", metric: str = METRIC) -> Comparison:
    return Comparison(name, first, second, metric, group)


def ordered(first: str, second: str, metric: str = METRIC) -> Callable[[Tables], Verdict]:
    """One algorithm above another, on receiver noise alone, at both pairs and with many local epochs."""

    def check(tables: Tables) -> Verdict:
        found = [Comparison(f"ε = {pair[0]}", alone(first, pair), alone(second, pair), metric) for pair in PAIRS]
        if DRIFT in tables.studies:
            found.append(Comparison("20 local epochs", drift(first), drift(second), metric))
        return greater(*found)(tables)

    return check


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


def stuck(tables: Tables) -> Verdict:
    """At ε = 0.1, the end less than 5 points above the first round: what is left of these 5 points."""
    table = tables.study(JAMMED)
    left = {}
    for name, words in ALGORITHMS.items():
        _, where = jammed(name, 0.1)
        late, first = table.by_seed(METRIC, where), table.by_seed("first_accuracy", where)
        left[words] = [Level("", Difference({seed: STUCK - (late[seed] - first[seed]) for seed in late}))]
    return weigh(left)


def iid_beats_baseline(tables: Tables) -> Verdict:
    """On iid data."""
    return greater(_compare("cross-layer − baseline", iid("cross_layer"), iid("privacy_for_free")))(tables)


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
    ]
    worst = max(pairs, key=lambda pair: pair[1] / pair[0])
    holds = all(accounted <= published for published, accounted in pairs)
    numbers = f"{len(pairs)} runs; largest excess: accounted {worst[1]:.4g} where {worst[0]:.4g} is published"
    refuted = False
    for name in studies:
        for audit in tables.study(name).audits:
            refuted = refuted or audit.epsilon_empirical > audit.epsilon_published
            numbers += (
                f"; audit of {name}: at least {audit.epsilon_empirical:.3g} "
                f"where {audit.epsilon_published:.3g} is published"
            )
    excess = ratio(worst[1] / worst[0], "accounted over published ε")
    if holds:
        return verdict(not refuted, numbers, "accounted ε is at most the published one in every run", excess)
    reason = "one sample can swing a whole update from one side of the clipping ball to the other, not by τ/n_i"
    return verdict(False, numbers, f"{reason}; an audit tells the two apart" if refuted else reason, excess)


def survives(tables: Tables) -> Verdict:
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
    """The share of the theorem's jamming energy that exact calibration saves, seed by seed."""
    return weigh({"": [Level(f"ε = {epsilon}", power_saving(tables, epsilon)) for epsilon in JAMMED_EPSILONS]})


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
