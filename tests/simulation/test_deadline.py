"""One deadline for all uplinks: what is sent counts, the time on the air included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import run, small
from tests.simulation.uplinks.cells import Play, play
from wirelessfl.api import make_plan
from wirelessfl.errors import InfeasibleError
from wirelessfl.simulation.uplinks.digital_links import Link
from wirelessfl.trace import EventKind, Status

COMPUTE = (1.0, 2.0, 3.0, 9.0)
ALL_CLOSE = {"timing__bandwidth_hz": 610.0, "clients__count": 4}
"""A slot of exactly one second: d = 610 symbols at 610 a second."""
CELLS: dict[str, Any] = {
    "topology": {"kind": "multi_cell", "rings": 1, "inter_site_distance_m": 300.0},
    "channel__pathloss": {"model": "log_distance"},
}
EDGES: dict[str, Any] = {**CELLS, "topology": {**CELLS["topology"], "kind": "hierarchical", "edge_rounds": 2}}


@pytest.mark.parametrize(
    ("deadline", "round_s", "late"),
    [
        (7.0, 7.0, [3]),  # the server waits for the fourth as long as a slot still fits
        (4.0, 4.0, [3]),  # ready at deadline − airtime is in time
        (3.999, 3.999, [2, 3]),
        (10.0, 10.0, []),
        (50.0, 10.0, []),
    ],
)
def test_a_slot_over_the_air_is_over_by_the_deadline(deadline: float, round_s: float, late: list[int]) -> None:
    played = play(small(rounds=3, timing__deadline_s=deadline, **ALL_CLOSE), COMPUTE, dimension=610)
    for number, this in enumerate(played.rounds, start=1):
        assert this.with_status(Status.LATE).tolist() == late
        assert this.values["sim_time"] == pytest.approx(number * round_s, abs=1e-9)
        (sent, _), *_ = played.times(EventKind.TRANSMIT, number)
        assert this.values["sim_time"] - sent == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("keys", [{}, CELLS, EDGES], ids=["one cell", "several", "edges"])
def test_over_the_air_and_digital_rounds_end_by_the_same_instant(keys: dict[str, Any]) -> None:
    """Compute times of some 10 ms, a slot of 6.1 ms; the backhaul of several cells comes on top for everybody."""
    base = {"timing__bandwidth_hz": 1e5, "timing__deadline_s": 0.018, "timing__straggler_scale": 1.0, **keys}
    _, rounds, _ = run(small(rounds=4, **base))
    backhaul = 0.0 if not keys else 2 * 32 * 610 / 1e9
    downlink = 32 * 610 / 1e7
    ends = [0.0] + [this.values["sim_time"] for this in rounds]
    assert any(len(this.with_status(Status.LATE)) for this in rounds)
    assert np.all(np.diff(ends) <= downlink + 0.018 + backhaul + 1e-9)


def test_the_deadline_of_the_digital_case_stays_where_it_was() -> None:
    links = [Link(1e-6), Link(0.5e-6), Link(0.25e-6), Link(0.125e-6)]
    keys = {"uplink": {"kind": "digital", "snr_db": 10.0}, "clients__count": 4, "rounds": 3}
    for timing, total in (({}, 30.0), ({"wait_for": {"count": 3}}, 27.0), ({"deadline_s": 7.0}, 21.0)):
        played = play(small(**keys, timing=timing), COMPUTE, links, 250_000)
        assert played.rounds[-1].values["sim_time"] == pytest.approx(total)


@pytest.mark.parametrize("protocol", ["pairwise_prf", "secagg", "secagg_plus"])
@pytest.mark.parametrize("stage_timeout_s", [None, 100.0])
def test_secure_aggregation_that_is_not_over_by_the_deadline_is_given_up(
    protocol: str, stage_timeout_s: float | None
) -> None:
    uplink = {"kind": "secure_aggregation", "snr_db": 10.0, "protocol": protocol, "stage_timeout_s": stage_timeout_s}
    base = {"uplink": uplink, "timing__straggler_scale": 0.0, "rounds": 2}
    links = [Link(1e-5)] * 6
    free = second_round(play(small(**base), [1.0] * 6, links))
    assert free > 1.001, "the masked inputs take their time"
    for deadline, heard in ((free + 1e-6, 6), (free - 1e-4, 0)):
        cut = play(small(**base, timing__deadline_s=deadline), [1.0] * 6, links)
        this = cut.rounds[1]
        assert this.values["participants"] == heard
        assert second_round(cut) == pytest.approx(min(free, deadline), abs=1e-9)
        assert np.all(np.asarray(cut.events[1].time) <= this.values["sim_time"])
        assert bool(this.secagg and this.secagg.abort_reason) == (heard == 0)


def second_round(played: Play) -> float:
    """Seconds of the second round, before which no keys are agreed."""
    return played.rounds[1].values["sim_time"] - played.rounds[0].values["sim_time"]


def test_a_deadline_within_the_airtime_is_refused_with_the_figures() -> None:
    for deadline in (0.5, 1.0):
        with pytest.raises(InfeasibleError, match=r"timing.deadline_s: found .* a slot over the air lasts 1 s"):
            make_plan(small(timing__deadline_s=deadline, **ALL_CLOSE))
    assert make_plan(small(timing__deadline_s=1.5, **ALL_CLOSE)).training_s == pytest.approx(0.5)


@pytest.mark.parametrize("uplink", [{"kind": "ideal"}, {"kind": "digital", "snr_db": 1.0}])
def test_uplinks_without_a_slot_have_no_airtime_to_subtract(uplink: dict[str, Any]) -> None:
    plan = make_plan(small(uplink=uplink, timing__deadline_s=0.001))
    assert math.isnan(plan.training_s)
