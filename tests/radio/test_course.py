"""What a client has sent of a message that is cut off, against stretches of time laid down by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import run, small
from tests.simulation.uplinks.test_spatial import sdma
from wirelessfl.radio import Harq, Link, Stretch
from wirelessfl.radio.course import course_of
from wirelessfl.simulation import FinishedRound
from wirelessfl.trace import EventBatch, EventKind, Status

# Pilots for 1 s, data for 2 s and feedback for 0.5 s, three times
RETRANSMITTED = Link(6.0 / 8, wait_s=1.0, pilot_s=3.0, course=Harq(4, 0.5).course(3, 1.0))
PIECES = Link(
    1.0, active=0.5, course=course_of([("data", 1.0), ("nothing", 4.0), ("data", 2.0), ("data", 1.0)], 8.0), wait_s=3.0
)


@pytest.mark.parametrize(
    ("link", "elapsed", "data", "pilots"),
    [
        (Link(0.5), 3.0, 3.0, 0.0),
        (Link(0.5, pilot_s=2.0), 1.0, 0.0, 1.0),
        (Link(0.5, pilot_s=2.0), 5.0, 3.0, 2.0),
        (Link(0.5, wait_s=2.0), 5.0, 4.0, 0.0),
        (RETRANSMITTED, 0.5, 0.0, 0.5),
        (RETRANSMITTED, 3.2, 2.0, 1.0),
        (RETRANSMITTED, 8.0, 4.0, 3.0),
        (RETRANSMITTED, 10.0, 6.0, 3.0),
        (PIECES, 3.0, 1.0, 0.0),
        (PIECES, 5.5, 1.5, 0.0),
        (PIECES, 10.0, 4.0, 0.0),
    ],
)
def test_by_hand(link: Link, elapsed: float, data: float, pilots: float) -> None:
    assert np.multiply(link.cut_off(8.0, elapsed), elapsed) == pytest.approx([data, pilots])


def test_a_whole_message_is_the_sum_of_its_stretches() -> None:
    for link in (Link(0.5), Link(0.5, pilot_s=2.0), Link(0.5, wait_s=2.0), RETRANSMITTED, PIECES):
        whole = (link.on_air(8.0), link.piloting(8.0))
        assert link.cut_off(8.0, link.duration(8.0)) == pytest.approx(whole)


def test_neighbouring_stretches_are_one() -> None:
    parts: list[Any] = [("data", 1.0), ("pilots", 0.0), ("data", 1.0), ("nothing", 2.0)]
    assert course_of(parts, 4.0) == (Stretch("data", 0.0, 0.5), Stretch("nothing", 0.0, 0.5))


def cut_off(rounds: list[FinishedRound], events: list[EventBatch]) -> list[tuple[float, float]]:
    """Of each upload that was too late, its seconds until then and those on the air."""
    found = []
    for this, batch in zip(rounds, events, strict=True):
        at, node, kind = np.asarray(batch.time), np.asarray(batch.node), np.asarray(batch.kind)
        for client in np.flatnonzero(this.status == Status.LATE).tolist():
            begins = at[(kind == EventKind.TRANSMIT) & (node == client)]
            ends = at[(kind == EventKind.LATE) & (node == client)]
            if len(begins):
                found.append((float(ends[0] - begins[0]), float(np.nan_to_num(this.slots["tx_time"])[client])))
    return found


def test_feedback_of_a_late_message_is_silence() -> None:
    """Transmissions of 1 s, 0.5 s apart, at a rate that one transmission never carries."""
    uplink = {"kind": "digital", "snr_db": 0.0, "harq": {"max": 4, "feedback_s": 0.5}, "access": "tdma"}
    scenario = small(uplink=uplink, channel__fading={"model": "static"}, clients__count=1, timing__deadline_s=4.0)
    bits = run(scenario)[0].deployment.uplink.payload_bits  # type: ignore[attr-defined]
    uplink |= {"rate": {"model": "fixed", "rate_bps": float(bits)}}
    changes: dict[str, Any] = {"timing__deadline_s": 4.0, "timing__bandwidth_hz": bits / 1.5}
    _, rounds, events = run(small(uplink=uplink, channel__fading={"model": "static"}, clients__count=1, **changes))
    found = cut_off(rounds, events)
    assert found
    for elapsed, sent in found:
        times, rest = divmod(elapsed, 1.5)
        assert sent == pytest.approx(times + min(rest, 1.0), abs=1e-6)


@pytest.mark.filterwarnings("ignore::wirelessfl.errors.ModelWarning")
@pytest.mark.parametrize("beyond", [0.1, 0.3, 0.5, 0.603])
def test_a_group_sends_pilots_one_after_the_other(beyond: float) -> None:
    """200,000 pilots at 1 MHz take 0.2 s; data follow those of all three."""
    changes: dict[str, Any] = {"channel__csi": {"pilot_symbols": 200_000}, "timing__bandwidth_hz": 1e6}
    _, _, (batch, *_) = run(sdma("zf", clients=3, rounds=1, **changes))
    begins = np.asarray(batch.time)[np.asarray(batch.kind) == EventKind.TRANSMIT]
    arrival = np.asarray(batch.time)[np.asarray(batch.kind) == EventKind.COMPUTE_START].min()
    assert len(set(begins.tolist())) == 1 and len(begins) == 3
    deadline = float(begins[0] - arrival) + beyond
    _, (this,), _ = run(sdma("zf", clients=3, rounds=1, timing__deadline_s=deadline, **changes))
    late = this.status == Status.LATE
    expected = np.clip(beyond - 0.2 * np.arange(3), 0.0, 0.2) + max(beyond - 0.6, 0.0)
    assert late.sum() == 3
    np.testing.assert_allclose(np.nan_to_num(this.slots["tx_time"]), expected, atol=1e-9)
