"""The picture can be drawn of whatever a run may leave; that it looks right, somebody has to look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

import wirelessfl as wfl
from tests.simulation.scenarios import small
from tests.speed import rest_slow
from wirelessfl.summary.numbers import last_finite, to_json
from wirelessfl.summary.picture import draw_summary

CASES: dict[str, dict[str, Any]] = {
    "jammer": {"uplink__jammer": {"epsilon": 1.0}},
    "rotating": {"uplink__jammer": {"epsilon": 1.0, "role": "rotating"}},
    "ideal": {"uplink": {"kind": "ideal"}},
    "watts": {"uplink": {"kind": "over_the_air", "tx_power_dbm": 10.0}},
    "nobody": {"faults__availability": {"p": 0.0}},
    "one round": {"rounds": 1},
    "one round that diverges": {"rounds": 1, "uplink": {"kind": "ideal"}, "training__optimizer__lr": 1e30},
    "no events": {"trace__events": False},
    "many clients": {"clients__count": 210, "data__limit": 240},
    "everything goes wrong": {
        "faults": {
            "availability": {"model": "gilbert_elliott"},
            "crash_rate_per_s": 20.0,
            "fade_threshold": 0.3,
            "jammer_failure": 0.5,
            "server_restart": {"p": 0.3, "downtime_s": 0.01},
        },
        "timing__deadline_s": 0.016,
        "uplink__jammer": {"epsilon": 1.0},
    },
    "seldom evaluated": {"evaluate__every": 3},
    "antennas": {"uplink__receiver": {"antennas": 3, "combiner": "max_min"}, "uplink__jammer": {"epsilon": 1.0}},
    "subcarriers": {"channel__fading": {"model": "tdl", "groups": 8}, "channel__correlation": {"model": "clarke"}},
    "static": {"channel__fading": {"model": "static"}},
}


@pytest.mark.parametrize("name", rest_slow(CASES, fast=2))
def test_every_kind_of_run_has_a_picture(name: str, tmp_path: Path) -> None:
    result = wfl.simulate(small(**CASES[name]), tmp_path / "run", device="cpu")
    assert result.picture.stat().st_size > 20_000
    assert result.timeline.stat().st_size > 20_000


def test_a_run_in_which_nothing_was_sent_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """ε is 0 and not infinite, and a loss that nobody had is not in the legend."""
    texts, legends = list[str](), list[str]()

    def look(axes: Axes, *arguments: Any, **keys: Any) -> None:
        texts.extend(text.get_text() for text in axes.texts)
        legends.extend(axes.get_legend_handles_labels()[1])

    monkeypatch.setattr("wirelessfl.summary.picture.legend_inside", look)
    result = wfl.simulate(small(**CASES["nobody"]), tmp_path / "run", device="cpu", figures="none")
    with wfl.open_trace(result.trace) as trace:
        draw_summary(trace, tmp_path / "summary.png")
    assert "ε = 0: nothing was sent" in texts
    assert "test" in legends and "training" not in legends


def test_last_finite() -> None:
    assert last_finite(np.array([1.0, 2.0, np.nan])) == 2.0
    assert np.isnan(last_finite(np.array([np.nan])))
    assert np.isinf(last_finite(np.array([1.0, np.inf])))


def test_json_has_no_nan_and_no_infinity() -> None:
    text = to_json({"a": float("nan"), "b": [float("inf")], "c": {"d": -float("inf"), "e": 1.5}})
    assert json.loads(text) == {"a": None, "b": ["inf"], "c": {"d": "-inf", "e": 1.5}}
