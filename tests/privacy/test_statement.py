"""Statements and facts: what is allowed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from wirelessfl.privacy import PrivacyFacts, Statement


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta", 0.0),
        ("delta", 1.0),
        ("delta", math.nan),
        ("unit", "user"),
        ("adjacency", "remove"),
        ("adversary", "nobody"),
        ("colluding", -1),
        ("accountant", "moments"),
    ],
)
def test_statement_refuses(name: str, value: Any) -> None:
    arguments: dict[str, Any] = {"delta": 1e-5, name: value}
    with pytest.raises(ValueError, match=name):
        Statement(**arguments)


def test_only_a_zeroed_client_is_not_an_exchange() -> None:
    assert not Statement(1e-5, unit="client").exchange
    assert Statement(1e-5, unit="client", adjacency="replace").exchange
    assert Statement(1e-5, unit="sample").exchange


@pytest.mark.parametrize(
    ("samples", "weights", "total", "message"),
    [
        ([1, 2], [0.5], 3, "equally long"),
        ([-1, 2], [0.5, 0.5], 1, "samples"),
        ([0, 0], [0.5, 0.5], 0, "samples"),
        ([1, 2], [0.5, -0.5], 3, "weights"),
        ([1, 2], [0.5, math.nan], 3, "weights"),
    ],
)
def test_facts_refuse(samples: list[int], weights: list[float], total: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrivacyFacts(np.array(samples), np.array(weights), total)
