"""What nodes did from when to when, from hand-written events and from runs."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from tests.simulation.scenarios import run, small
from wirelessfl.summary.overview import STATUS_COLOURS
from wirelessfl.summary.timeline import (
    _NEXT,
    _ZOOM_CLIENTS,
    DOING_COLOURS,
    MARKS,
    Mark,
    Stretch,
    _steps_title,
    _zoom_rows,
    activities,
)
from wirelessfl.trace import JAMMER_NODE, SERVER_NODE, EventBatch, EventKind, Status

E = EventKind


def table(*rows: tuple[float, int, EventKind]) -> xr.Dataset:
    time, node, kind = zip(*rows, strict=True)
    return xr.Dataset(
        {name: ("event", list(values)) for name, values in (("time", time), ("node", node), ("kind", kind))}
    )


def of(batch: EventBatch) -> xr.Dataset:
    return xr.Dataset({name: ("event", np.asarray(getattr(batch, name))) for name in ("time", "node", "kind")})


def test_a_round_over_the_air_by_hand() -> None:
    events = table(
        (0.0, 4, E.UNAVAILABLE),
        (0.0, SERVER_NODE, E.BROADCAST),
        (1.0, 0, E.COMPUTE_START),
        (1.0, 1, E.COMPUTE_START),
        (1.0, 2, E.COMPUTE_START),
        (1.0, 3, E.COMPUTE_START),
        (2.0, 0, E.COMPUTE_END),
        (2.5, 1, E.CRASH),
        (3.0, 3, E.COMPUTE_END),
        (4.0, 2, E.LATE),
        (4.0, 0, E.TRANSMIT),
        (4.0, 3, E.DEEP_FADE),
        (4.0, JAMMER_NODE, E.JAM),
        (5.0, SERVER_NODE, E.SUPERPOSE),
        (5.0, SERVER_NODE, E.AGGREGATE),
        (5.0, SERVER_NODE, E.EVALUATE),
    )
    stretches, marks = activities(events)
    assert set(stretches) == {
        Stretch(SERVER_NODE, "broadcasts", 0.0, 1.0),
        Stretch(0, "trains", 1.0, 2.0),
        Stretch(0, "waits", 2.0, 4.0),
        Stretch(0, "sends", 4.0, 5.0),
        Stretch(1, "trains", 1.0, 2.5),
        Stretch(2, "trains", 1.0, 4.0),
        Stretch(3, "trains", 1.0, 3.0),
        Stretch(3, "waits", 3.0, 4.0),
        Stretch(JAMMER_NODE, "jams", 4.0, 5.0),
    }
    assert marks == [
        Mark(4, E.UNAVAILABLE, 0.0),
        Mark(1, E.CRASH, 2.5),
        Mark(2, E.LATE, 4.0),
        Mark(3, E.DEEP_FADE, 4.0),
    ]


@pytest.mark.parametrize("uplink", ["over_the_air", "ideal", "digital", "secure_aggregation"])
def test_training_lasts_as_long_as_the_trace_says(uplink: str) -> None:
    scenario = small(uplink={"kind": uplink}, timing__deadline_s=5.0, rounds=2)
    _, rounds, events = run(scenario)
    for this, batch in zip(rounds, events, strict=True):
        stretches, _ = activities(of(batch))
        trained = {s.node: s.end - s.begin for s in stretches if s.doing == "trains"}
        done = this.round.with_status(Status.PARTICIPATED)
        for position in done.tolist():
            assert trained[position] == pytest.approx(this.slots["compute_time"][position], abs=2e-12)


def test_sending_over_the_air_lasts_as_long_as_the_slot() -> None:
    _, rounds, events = run(small(uplink__jammer={"epsilon": 1.0}))
    for this, batch in zip(rounds, events, strict=True):
        stretches, _ = activities(of(batch))
        for doing, count in (("sends", 6), ("jams", 1)):
            lengths = [s.end - s.begin for s in stretches if s.doing == doing]
            assert lengths == [pytest.approx(this.values["airtime"], abs=2e-12)] * count


def test_digital_sending_lasts_as_long_as_the_upload() -> None:
    _, rounds, events = run(small(uplink={"kind": "digital"}, rounds=1))
    stretches, _ = activities(of(events[0]))
    sent = {s.node: s.end - s.begin for s in stretches if s.doing == "sends"}
    for node, length in sent.items():
        assert length == pytest.approx(rounds[0].slots["tx_time"][node], abs=2e-12)
    assert len(sent) > 0


def test_who_is_not_selected_does_not_wait_after_the_set_up() -> None:
    """`pairwise_prf`: everybody advertises a key before the first round, whether selected in it or not."""
    events = table(
        (0.0, 0, E.ADVERTISE_KEYS),
        (0.0, 1, E.ADVERTISE_KEYS),
        (1.0, 0, E.ARRIVE),
        (2.0, 1, E.ARRIVE),
        (3.0, SERVER_NODE, E.BROADCAST),
        (4.0, 1, E.COMPUTE_START),
        (6.0, 1, E.COMPUTE_END),
        (7.0, SERVER_NODE, E.EVALUATE),
    )
    assert set(activities(events)[0]) == {
        Stretch(0, "sends", 0.0, 1.0),
        Stretch(0, "waits", 1.0, 3.0),
        Stretch(1, "sends", 0.0, 2.0),
        Stretch(1, "waits", 2.0, 3.0),
        Stretch(SERVER_NODE, "broadcasts", 3.0, 4.0),
        Stretch(1, "trains", 4.0, 6.0),
        Stretch(1, "waits", 6.0, 7.0),
    }


def test_every_kind_of_event_and_every_status_is_drawn_or_said_to_change_nothing() -> None:
    # A new kind has to be placed: what a node does after it, a mark, or neither.
    neither = {E.SUPERPOSE, E.AGGREGATE, E.EVALUATE, E.REQUEST, E.CLOUD, E.REPORT_LOSS}
    assert neither.isdisjoint(_NEXT) and neither.isdisjoint(MARKS)
    assert {*_NEXT, *MARKS, *neither} == set(EventKind)
    assert set(STATUS_COLOURS) == set(Status)
    assert set(DOING_COLOURS) == {doing for doing in _NEXT.values() if doing is not None}


@pytest.mark.parametrize(
    ("clients", "rounds", "title"),
    [
        (_ZOOM_CLIENTS, 1, "round 1 step by step"),
        (70, 3, "the first 3 rounds step by step, the first 40 of 70 clients"),
    ],
)
def test_the_title_says_which_clients_are_shown_step_by_step(clients: int, rounds: int, title: str) -> None:
    events = table((0.0, SERVER_NODE, E.BROADCAST), *((1.0, client, E.COMPUTE_START) for client in range(clients)))
    assert _steps_title(rounds, events, _zoom_rows(events)) == title
