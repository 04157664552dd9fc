"""Whether the ε that are published for multi-objective and for dynamic clipping hold."""

from __future__ import annotations

import wirelessfl as wfl
from publications.claims import Claim, Outcome, Verdict, verdict
from publications.effects import MissingRuns, ratio
from publications.levels import all_levels, level_words
from publications.moo_methods import DYNAMIC, EPSILON, KEYS, MOO
from publications.tables import Tables


def _keeps_that_of_dp_sgd(tables: Tables) -> Verdict:
    told, factors = [], []
    for level in all_levels(tables, MOO, KEYS):
        accounted = float(tables.band(*MOO.at(level), "epsilon_accounted").mean[0])
        factors.append(accounted / float(level[EPSILON]))
        audit = tables.study(MOO.study).audit(level)
        if audit:
            told.append(
                f"target {level[EPSILON]}: accounted {wfl.epsilon_text(accounted)}, "
                f"empirical at least {wfl.epsilon_text(audit.epsilon_empirical)}"
            )
    return verdict(
        max(factors) <= 1.01,
        "; ".join(told) or "accounted ε is ∞",
        "the norm follows raw gradients: one sample whose gradient is long along ∂g̃/∂C multiplies C, and with it the "
        "noise that everyone sees, by any factor, in any step but a round's first; no finite ε holds, whatever an "
        "audit of one canary finds",
        ratio(max(factors), "accounted over stated ε"),
    )


def _approximation_holds(tables: Tables) -> Verdict:
    """Contradicted by an audit above what is published; where none is, decided by what is accounted."""
    told, shown, accounted = [], [], []
    for level in all_levels(tables, DYNAMIC, KEYS):
        if audit := tables.study(DYNAMIC.study).audit(level):
            shown.append(audit.epsilon_empirical / audit.epsilon_published)
            accounted.append(audit.epsilon_accounted / audit.epsilon_published)
            words = [audit.epsilon_published, audit.epsilon_empirical, audit.epsilon_accounted]
            published, empirical, composed = (wfl.epsilon_text(one) for one in words)
            named = f"published {published}, empirical at least {empirical}, accounted {composed}"
            told.append(f"{level_words(level, 'ε')}: {named}")
    if not told:
        raise MissingRuns("dynamic DP has not been audited")
    numbers = "; ".join(told)
    effect = ratio(max(shown), "empirical (at least) over published ε")
    if max(shown) <= 1 and max(accounted) > 1.01:
        reason = "more is accounted than is published, and the audit does not show more"
        return Verdict(Outcome.UNDECIDED, numbers, reason, effect)
    return verdict(
        max(shown) <= 1,
        numbers,
        "the published ε is a central-limit approximation over all steps and no bound; the accounted one composes the "
        "multiplier of every step",
        effect,
    )


MOO_GUARANTEE = Claim(
    "MOO keeps the (ε, δ) of DP-SGD.", "IV, V-A: the RDP accountant", _keeps_that_of_dp_sgd, everywhere=True
)
DYNAMIC_GUARANTEE = Claim(
    "Dynamic DP keeps the ε that is published for it.",
    "ours; Du et al. 2021, on whose ε the line of Table III rests here",
    _approximation_holds,
    everywhere=True,
)
