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
from wirelessfl.radio.digital_links import Link
from wirelessfl.simulation.medium import ticks
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
        (7.0, 4.0, [3]),  # the third is the last in time; nobody waits for the fourth
        (4.0, 4.0, [3]),  # ready at deadline − airtime is in time
        (3.999, 3.0, [2, 3]),
        (10.0, 10.0, []),
        (50.0, 10.0, []),
    ],
)
def test_a_slot_starts_when_the_last_client_in_time_is_ready(deadline: float, round_s: float, late: list[int]) -> None:
    played = play(small(rounds=3, timing__deadline_s=deadline, **ALL_CLOSE), COMPUTE, dimension=610)
    for number, this in enumerate(played.rounds, start=1):
        assert this.round.with_status(Status.LATE).tolist() == late
        assert this.values["sim_time"] == pytest.approx(number * round_s, abs=1e-9)
        (sent, _), *_ = played.times(EventKind.TRANSMIT, number)
        assert this.values["sim_time"] - sent == pytest.approx(1.0, abs=1e-9)
        assert [node for _, node in played.times(EventKind.LATE, number)] == late
        assert this.round.worked[late].tolist() == [ticks(round_s - 1.0)] * len(late), "they work until the slot opens"


@pytest.mark.parametrize(
    ("count", "deadline", "round_s", "late"),
    [
        (2, 7.0, 3.0, [2, 3]),  # the quorum comes first
        (4, 7.0, 4.0, [3]),  # and here can no longer come
        (3, 3.5, 3.0, [2, 3]),
    ],
)
def test_a_quorum_beside_a_deadline(count: int, deadline: float, round_s: float, late: list[int]) -> None:
    timing = {"deadline_s": deadline, "wait_for": {"count": count}, "bandwidth_hz": 610.0}
    played = play(small(clients__count=4, rounds=1, timing=timing), COMPUTE, dimension=610)
    (this,) = played.rounds
    assert this.round.with_status(Status.LATE).tolist() == late
    assert this.values["sim_time"] == pytest.approx(round_s, abs=1e-9)


def test_where_all_are_late_a_round_is_over_at_once() -> None:
    played = play(small(rounds=2, timing__deadline_s=1.5, **ALL_CLOSE), COMPUTE, dimension=610)
    for this in played.rounds:
        assert len(this.round.with_status(Status.LATE)) == 4 and not this.round.worked.any()
        assert this.values["sim_time"] == 0.0


def test_crashes_are_noticed_when_they_happen_and_end_the_waiting() -> None:
    """Whoever crashes had said when it would be ready; whoever would be late is not waited for, crashed or not."""
    crashed_at: dict[str, list[float]] = {"in time": [], "late": []}
    keys: dict[str, Any] = {**ALL_CLOSE, "faults__crash_rate_per_s": 0.3}
    played = play(small(rounds=40, timing__deadline_s=5.0, **keys), COMPUTE, dimension=610)
    begin = 0.0
    for number, this in enumerate(played.rounds, start=1):
        crashes = {node: at - begin for at, node in played.times(EventKind.CRASH, number)}
        crashed_at["in time"] += [at for node, at in crashes.items() if node < 3]
        crashed_at["late"] += [at for node, at in crashes.items() if node == 3]
        opens = max(crashes.get(node, COMPUTE[node]) for node in range(3))
        assert max(crashes.values(), default=0.0) <= opens + 1e-9
        airtime = 1.0 if len(this.round.with_status(Status.PARTICIPATED)) else 0.0
        assert this.values["sim_time"] - begin == pytest.approx(opens + airtime, abs=1e-9)
        begin = this.values["sim_time"]
    assert crashed_at["in time"] and crashed_at["late"]


def test_a_round_without_noise_of_the_air_waits_for_those_in_time_alone() -> None:
    central = {"mechanism": "gaussian", "unit": "client", "clip": 1.0, "noise_multiplier": 1.0}
    for keys in ({"uplink": {"kind": "ideal"}}, {"uplink": {"kind": "ideal"}, "training__privacy": central}):
        played = play(small(clients__count=4, rounds=1, timing__deadline_s=7.0, **keys), COMPUTE)
        assert played.rounds[0].round.with_status(Status.LATE).tolist() == [3]
        assert played.rounds[0].values["sim_time"] == 3.0


@pytest.mark.parametrize("keys", [{}, CELLS, EDGES], ids=["one cell", "several", "edges"])
def test_over_the_air_and_digital_rounds_end_by_the_same_instant(keys: dict[str, Any]) -> None:
    """Compute times of some 10 ms, a slot of 6.1 ms; the backhaul of several cells comes on top for everybody."""
    base = {"timing__bandwidth_hz": 1e5, "timing__deadline_s": 0.018, "timing__straggler_scale": 1.0, **keys}
    _, rounds, _ = run(small(rounds=4, **base))
    backhaul = 0.0 if not keys else 2 * 32 * 610 / 1e9
    downlink = 32 * 610 / 1e7
    ends = [0.0] + [this.values["sim_time"] for this in rounds]
    assert any(len(this.round.with_status(Status.LATE)) for this in rounds)
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
        assert bool(this.round.secagg and this.round.secagg.abort_reason) == (heard == 0)


def second_round(played: Play) -> float:
    """Seconds of the second round, before which no keys are agreed."""
    return played.rounds[1].values["sim_time"] - played.rounds[0].values["sim_time"]


def test_a_deadline_within_the_airtime_is_refused_with_the_figures() -> None:
    for deadline in (0.5, 1.0):
        with pytest.raises(InfeasibleError, match=r"timing.deadline_s: found .* a slot over the air lasts 1 s"):
            make_plan(small(timing__deadline_s=deadline, **ALL_CLOSE))
    assert make_plan(small(timing__deadline_s=1.5, **ALL_CLOSE)).training_s == pytest.approx(0.5)


@pytest.mark.filterwarnings("ignore:timing.deadline_s:wirelessfl.errors.ModelWarning")
@pytest.mark.parametrize("uplink", [{"kind": "ideal"}, {"kind": "digital", "snr_db": 1.0}])
def test_uplinks_without_a_slot_have_no_airtime_to_subtract(uplink: dict[str, Any]) -> None:
    plan = make_plan(small(uplink=uplink, timing__deadline_s=0.001))
    assert math.isnan(plan.training_s)
