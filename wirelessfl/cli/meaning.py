"""What an attacker can do at an ε, in plain words, for ``privacy explain`` and below the summary of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirelessfl.privacy import Meaning

ON_THE_PAGE = (2.0, 8.0, 50.0, 367.0)
"""The ε of docs/explanation/epsilon.md; 367 is that of quickstart."""
SIDE_BY_SIDE = len(ON_THE_PAGE)
"""ε in one table: more would not fit into 80 columns."""
PAGE = "docs/explanation/epsilon.md"
HOLDING = ("ota-sample-private", "ota-client-private")
"""Shipped scenarios whose accounted ε is small: one for a sample, one for a client."""
LARGE = 10.0
"""ε above which a summary says where to read what it means."""
_SURE, _LITTLE = 1e-4, 0.01
_PRIOR = 0.01
_FEW_ODDS, _MOST_ODDS = 100.0, 1e6

LEGEND = (
    "An attacker sees all that the adversary of the scenario sees, and knows every unit (sample or client) except one. "
    "The attacker guesses whether that unit was in the data, as it is in half of the cases: 50 % right is chance. "
    "Found is the share of those in the data whom the attacker names, where one in a thousand of the others is named "
    "wrongly. What is possible at most holds for any mechanism; the lines on Gaussian noise are the best attack where "
    "all noise is Gaussian, as over the air.",
    "* By ε alone. With a chance of at most 2 δ, odds grow by more than twice this factor.",
    "Names are those of Ponomareva et al., How to DP-fy ML (2023): strong up to ε = 1, reasonable up to 10.",
    "To lower ε: more noise (a jammer with calibration: exact), clipping by sample, fewer rounds, more clients. "
    f"{PAGE} measures each. {' and '.join(HOLDING)} are scenarios with a small accounted ε.",
)


def share_text(share: float) -> str:
    """A share in percent; one below 100 % is never rounded to it."""
    if 1.0 - share < _SURE:
        return "100 %" if share >= 1.0 else ">99.99 %"
    digits = 2 if share < _LITTLE or share > 1.0 - _LITTLE else 1
    return f"{100 * share:.{digits}f} %"


def odds_text(meaning: Meaning) -> str:
    """The factor by which odds may grow; large ones as a power of ten."""
    from wirelessfl.summary import power_of_ten

    if math.isinf(meaning.epsilon):
        return "without limit"
    if meaning.odds < _MOST_ODDS:
        return f"{meaning.odds:.3g}" if meaning.odds < _FEW_ODDS else f"{meaning.odds:,.0f}"
    return power_of_ten(round(meaning.epsilon / math.log(10)))


def meaning_rows(meanings: Sequence[Meaning]) -> Iterator[tuple[str, ...]]:
    """Rows of a table with one column for each ε."""
    from wirelessfl.privacy.meaning import verdict

    texts = {
        "called": [verdict(one.epsilon) for one in meanings],
        "right guesses, at most": [share_text(one.guess_bound) for one in meanings],
        "… with Gaussian noise": [share_text(one.guess_gaussian) for one in meanings],
        "found, at most": [share_text(one.found_bound) for one in meanings],
        "… with Gaussian noise ": [share_text(one.found_gaussian) for one in meanings],
        "a belief of 1 % grows to*": [share_text(one.belief(_PRIOR)) for one in meanings],
        "odds grow by, at most*": [odds_text(one) for one in meanings],
    }
    return ((name, *cells) for name, cells in texts.items())


def as_mapping(meaning: Meaning) -> dict[str, Any]:
    """The numbers of one ε, for JSON."""
    from wirelessfl.privacy.meaning import verdict

    return {
        "epsilon": meaning.epsilon,
        "delta": meaning.delta,
        "called": verdict(meaning.epsilon),
        "odds": meaning.odds,
        "guess_bound": meaning.guess_bound,
        "guess_gaussian": meaning.guess_gaussian,
        "advantage_bound": meaning.advantage_bound,
        "advantage_gaussian": meaning.advantage_gaussian,
        "tpr_at_fpr_0.001_bound": meaning.found_bound,
        "tpr_at_fpr_0.001_gaussian": meaning.found_gaussian,
    }


def advice(summary: Mapping[str, Any], trace: Path) -> str:
    """Where to read what a large ε means, what attacks it, and which scenarios hold; empty for a small one."""
    epsilon = summary["epsilon_accounted"]
    if not epsilon > LARGE:
        return ""
    scenario = trace.with_name("scenario.yaml")
    attack = f" Attack it: `wirelessfl audit {scenario}`." if scenario.exists() else ""
    return (
        f"→ What it means: `wirelessfl privacy explain {epsilon:.3g} --delta {summary['delta']:g}`, {PAGE}.{attack} "
        f"It is small in {' and '.join(HOLDING)}."
    )
