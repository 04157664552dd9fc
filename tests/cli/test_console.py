"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from wirelessfl.cli.console import duration_text
from wirelessfl.summary import epsilon_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.00241, "2.41 ms"), (9.76, "9.76 s"), (119.0, "119 s"), (125.0, "2 min 05 s"), (7384.0, "2 h 03 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_epsilons() -> None:
    assert epsilon_text(math.inf) == "∞"
    assert epsilon_text(367.3) == "367"
