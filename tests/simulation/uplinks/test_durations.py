"""Uploads that last too long are warned of before the run."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.simulation.scenarios import PLAN, small
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ModelWarning, ScenarioError

SLOW = {"kind": "digital", "rate": {"model": "fixed", "rate_bps": 1.0}}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"uplink": SLOW}, r"lasts 1\.952e\+04 s, more than an hour"),
        ({"uplink": {**SLOW, "kind": "secure_aggregation", "protocol": "secagg"}}, "more than an hour"),
        ({"uplink": {**SLOW, "rate": {"model": "fixed", "rate_bps": 1e4}}, "timing__deadline_s": 1.9}, "is 1.9 s"),
    ],
)
def test_long_uploads_are_warned_of(keys: dict[str, Any], words: str) -> None:
    with pytest.warns(ModelWarning, match=words):
        build_simulation(small(**keys), PLAN)


@pytest.mark.parametrize("deadline", [None, 2.0])  # 610 numbers of 32 bits take 1.952 s
def test_others_are_not(deadline: float | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        uplink = {**SLOW, "rate": {"model": "fixed", "rate_bps": 1e4}}
        build_simulation(small(uplink=uplink, timing__deadline_s=deadline), PLAN)


@pytest.mark.parametrize("key", ["cfo_hz", "phase_std", "max_offset"])
def test_errors_of_oscillators_are_those_of_sums_over_the_air(key: str) -> None:
    with pytest.raises(ScenarioError, match="synchronises to each client"):
        small(uplink={"kind": "digital"}, channel__sync={key: 0.1})
