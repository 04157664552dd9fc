"""Claims about methods at the settings that won: none is confirmed over a learning rate at an end of its grid."""

from __future__ import annotations

import pytest

from publications.claims import Outcome
from publications.tables import RunRow, StudyTable, Tables, value_of
from publications.tuned_claims import ahead_when_tuned
from publications.tuning_runs import tuned_point

PAPER, METHODS = "zcdp-secure-aggregation", ("paper's scheme", "DP-SGD shuffled", "DP-SGD Poisson")


@pytest.mark.parametrize(
    ("kind", "lead", "outcome"),
    [
        ("network", 0.02, Outcome.CONFIRMED),
        ("logistic", 0.02, Outcome.UNDECIDED),  # DP-SGD's learning rate won at the end of its grid
        ("logistic", -0.02, Outcome.CONTRADICTED),
    ],
)
def test_no_lead_is_confirmed_over_a_rate_at_an_end_of_its_grid(kind: str, lead: float, outcome: Outcome) -> None:
    runs = []
    for name in METHODS:
        point = {key: value_of(value) for key, value in tuned_point(PAPER, kind, "full", name).items()}
        # The spread over the seeds gives the interval a width
        accuracies = [0.8 + (lead + 0.001 * seed if name == METHODS[0] else 0.0) for seed in (1, 2, 3)]
        runs += [RunRow(point, seed, 20, {"test_accuracy": one}) for seed, one in enumerate(accuracies, start=1)]
    table = StudyTable(f"tuned-{kind}", tuple(runs[0].point), tuple(runs))
    found = ahead_when_tuned(PAPER, kind, *METHODS)(Tables({"size": "full"}, {table.name: table}))
    assert found.outcome is outcome
    assert found.effect is not None
    told = outcome is Outcome.UNDECIDED
    assert ("at an end of its grid" in found.reason) == told
    assert ("at an end of its grid" in found.effect.name) == told
