"""Verdicts: judged on intervals of paired differences, never on a mean."""

from __future__ import annotations

import pytest

from publications.claims import Outcome, judge, weigh
from publications.tables import Difference
from tests.publications.example import EXAMPLE, TABLES

EXPECTED = ("confirmed", "not confirmed", "not confirmed", "not confirmed", "not tested", "not tested")


@pytest.mark.parametrize(("index", "expected"), list(enumerate(EXPECTED)))
def test_verdicts(index: int, expected: str) -> None:
    assert judge(EXAMPLE.claims[index], TABLES).outcome.value == expected


def test_reasons() -> None:
    reasons = [judge(claim, TABLES).reason for claim in EXAMPLE.claims]
    assert reasons[0] == "every 95 % interval over 3 seeds lies on the claimed side"
    assert reasons[1] == "the opposite holds for bad − good"
    assert reasons[2] == "the 95 % interval over 3 seeds includes no difference for same"
    assert reasons[3] == "the opposite holds for 30"
    assert reasons[4] == "the study absent has not run"


def test_all_have_to_hold() -> None:
    surely, perhaps, not_at_all = (Difference(mean, 0.02, 5) for mean in (0.1, 0.01, -0.1))
    assert weigh(["a", "b"], [surely, surely]).outcome is Outcome.CONFIRMED
    found = weigh(["a", "b", "c"], [surely, perhaps, not_at_all])
    assert found.outcome is Outcome.NOT_CONFIRMED
    assert found.reason == ("the opposite holds for c; the 95 % interval over 5 seeds includes no difference for b")
    assert found.numbers == "a: +10 ± 2 points; b: +1 ± 2 points; c: -10 ± 2 points"


def test_beyond_a_threshold() -> None:
    assert weigh(["a"], [Difference(0.15, 0.04, 5)], least=0.1).outcome is Outcome.CONFIRMED
    assert weigh(["a"], [Difference(0.15, 0.06, 5)], least=0.1).outcome is Outcome.NOT_CONFIRMED
