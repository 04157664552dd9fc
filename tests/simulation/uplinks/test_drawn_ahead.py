"""Links that are drawn before their clients begin to transmit are those of the instant at which they begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import run, small
from wirelessfl.radio.channel_source import ChannelSource
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.medium import TICKS_PER_SECOND
from wirelessfl.simulation.uplinks.digital.round_links import Uploads
from wirelessfl.trace import EventBatch, EventKind, Status

FIXED = {"model": "fixed", "rate_bps": 2e6}
# So slow that an upload has one piece: pieces are drawn apart.
CLARKE = {"model": "clarke", "doppler_hz": 2.0}
MARKOV = {"model": "gauss_markov", "doppler_hz": 2.0}
MOVING: dict[str, Any] = {
    "channel__placement": {"scheme": "random_waypoint", "radius_m": 200.0, "min_speed": 10.0, "max_speed": 30.0},
    "channel__pathloss": {"model": "tr38901", "scenario": "umi"},
}
ERRORS: dict[str, Any] = {"channel__csi": {"error_std": 0.3, "estimator": "mmse"}}
CHANNELS: dict[str, dict[str, Any]] = {
    "clarke": {"channel__correlation": CLARKE},
    "gauss_markov": {"channel__correlation": MARKOV, **ERRORS},
    "moving": {"channel__correlation": MARKOV, **MOVING, **ERRORS},
    "moving, independent fading": MOVING,
}
WAITING: dict[str, dict[str, Any]] = {
    "all": {},
    "count": {"timing__wait_for": {"count": 9}},
    "the first": {"timing__wait_for": {"count": 1}},
    "fraction, crashes": {"timing__wait_for": {"fraction": 0.5}, "faults__crash_rate_per_s": 100.0},
    "deadline": {"timing__deadline_s": 0.004},
    "deadline and count": {"timing__deadline_s": 0.004, "timing__wait_for": {"count": 20}},
    "at one instant": {"timing__straggler_scale": 0.0, "timing__cpu_hz": [1e9, 1e9], "timing__wait_for": {"count": 2}},
    "absent, asleep": {"faults__availability": {"p": 0.6}, "faults__fade_threshold": 0.3},
}

# Rounds of months: the clock passes what 63 bits of ticks can tell.
MONTHS: dict[str, Any] = {
    "timing__cycles_per_sample": 1.8e15,
    "timing__cpu_hz": [1e9, 1.5e9],
    "timing__straggler_scale": 0.0,
    "timing__wait_for": {"count": 9},
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many links each call draws."""
    drawn: list[int] = []
    as_is = ChannelSource.channels

    def counted(self: ChannelSource, nodes: np.ndarray, *further: Any, **named: Any) -> Any:
        drawn.append(len(nodes))
        return as_is(self, nodes, *further, **named)

    monkeypatch.setattr(ChannelSource, "channels", counted)
    yield drawn


def played(rate: dict[str, Any], **keys: Any) -> tuple[list[FinishedRound], list[EventBatch]]:
    uplink = {"kind": "digital", "access": "ofdma", "snr_db": 20.0, "rate": rate}
    scenario = small(rounds=3, clients__count=30, uplink=uplink, timing__bandwidth_hz=3e7, **keys)
    _, rounds, events = run(scenario)
    return rounds, events


@pytest.mark.filterwarnings("ignore:timing.deadline_s:wirelessfl.errors.ModelWarning")
@pytest.mark.parametrize("waiting", WAITING)
@pytest.mark.parametrize("channel", CHANNELS)
def test_links_drawn_ahead_are_those_drawn_one_by_one(
    channel: str, waiting: str, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bits in all rounds: nobody was asked for who did not begin, nobody later than in the next round."""
    keys = {**CHANNELS[channel], **WAITING[waiting]}
    rate = FIXED if channel == "gauss_markov" else {"model": "adaptive"}
    rounds, events = played(rate, **keys)
    ahead, calls[:] = list(calls), []
    monkeypatch.setattr(Uploads, "after", lambda *_: None)
    expected, expected_events = played(rate, **keys)
    assert set(calls) == {1} and sum(calls) == sum(ahead), "as many links"
    assert len(ahead) < len(calls) or waiting == "the first"
    for this, other in zip(rounds, expected, strict=True):
        assert this.status.tolist() == other.status.tolist()
        assert this.slots.keys() == other.slots.keys()
        for name, values in this.slots.items():
            np.testing.assert_array_equal(values, other.slots[name], err_msg=name)
        assert this.values["sim_time"] == other.values["sim_time"]
    for batch, others in zip(events, expected_events, strict=True):
        np.testing.assert_array_equal(batch.time, others.time)
        np.testing.assert_array_equal(batch.kind, others.kind)
    seen = {int(status) for this in rounds for status in this.status}
    nobody: set[Status] = set()
    expected_of = {"all": nobody, "at one instant": nobody, "absent, asleep": {Status.UNAVAILABLE, Status.DEEP_FADE}}
    assert expected_of.get(waiting, {Status.LATE}) <= seen
    assert Status.CRASHED in seen or waiting != "fraction, crashes"


def test_rounds_of_months_go_on_beyond_the_largest_array_of_ticks() -> None:
    rounds, _ = played({"model": "adaptive"}, channel__correlation=CLARKE, **MONTHS)
    assert float(rounds[-2].values["sim_time"]) > 2**63 / TICKS_PER_SECOND
    assert [int(np.count_nonzero(this.status == Status.PARTICIPATED)) for this in rounds] == [9, 9, 9]


def test_all_links_of_a_round_in_one_call_where_all_begin(calls: list[int]) -> None:
    for keys in ({}, {"timing__deadline_s": 0.004}):
        calls.clear()
        rounds, events = played({"model": "adaptive"}, channel__correlation=CLARKE, **keys)
        begun = [int(np.count_nonzero(np.asarray(batch.kind) == int(EventKind.TRANSMIT))) for batch in events]
        assert calls == begun
        late = [len(this.round.with_status(Status.LATE)) for this in rounds]
        assert bool(sum(late)) == bool(keys)
