"""The server's window: who is in time."""

from __future__ import annotations

import numpy as np
import pytest
import simpy

from wirelessfl.simulation.medium import Report, Reports, ticks
from wirelessfl.simulation.window import WaitFor, Window
from wirelessfl.trace import Status


def closing(
    arrivals: dict[int, float], wait_for: WaitFor, crashes: frozenset[int] = frozenset()
) -> tuple[float, Window]:
    """Play reports at given seconds; returns when the window closed, and the window."""
    env = simpy.Environment()
    window = Window(env, wait_for, len(arrivals), set(arrivals))
    closed_at: list[int] = []
    assert window.closed.callbacks is not None
    window.closed.callbacks.append(lambda _: closed_at.append(int(env.now)))

    def report(position: int, at: float) -> simpy.events.ProcessGenerator:
        yield env.timeout(ticks(at))
        if not closed_at:
            window.take(Report(position, Status.CRASHED) if position in crashes else Report(position))

    for position, at in arrivals.items():
        env.process(report(position, at))
    env.run()
    return closed_at[0] / ticks(1.0), window


def test_waits_for_all() -> None:
    assert closing({0: 1.0, 1: 3.0, 2: 2.0}, WaitFor())[0] == 3.0


def test_a_report_at_the_deadline_is_in_time() -> None:
    # 0.1 + 0.2 is not 0.3 in floating point; in ticks it is.
    at, window = closing({0: 0.1 + 0.2, 1: 0.31}, WaitFor(deadline_s=0.3))
    assert at == 0.3
    assert window.ready == {0} and window.outstanding == {1}


def test_all_that_arrive_with_the_last_one_needed_count() -> None:
    at, window = closing({0: 2.0, 1: 1.0, 2: 2.0, 3: 5.0}, WaitFor(count=2))
    assert at == 2.0
    assert window.ready == {0, 1, 2}


def test_reports_of_many_at_once_count_as_one_by_one() -> None:
    env = simpy.Environment()
    window = Window(env, WaitFor(), 4, {0, 1, 2, 3})
    window.take(Reports(ready=np.array([2]), crashed=np.array([], dtype=np.int64)))
    assert window.outstanding == {0, 1, 3} and window.ready == {2}
    window.take(Reports(ready=np.array([0]), crashed=np.array([1, 3])))
    assert (
        window.outstanding == set() and window.ready == {0, 2} and window.lost == dict.fromkeys((1, 3), Status.CRASHED)
    )
    env.run(until=window.closed)
    assert env.now == 0


def test_nobody_left_to_wait_for() -> None:
    at, window = closing({0: 1.0, 1: 4.0}, WaitFor(count=2), crashes=frozenset({1}))
    assert at == 4.0
    assert window.ready == {0} and window.lost == {1: Status.CRASHED}


def test_a_window_without_clients_closes_at_once() -> None:
    env = simpy.Environment()
    window = Window(env, WaitFor(deadline_s=10.0), 3, set())
    env.run(until=window.closed)
    assert env.now == 0


@pytest.mark.parametrize(
    ("wait_for", "selected", "needed"),
    [
        (WaitFor(), 7, 7),
        (WaitFor(fraction=0.1), 30, 3),
        (WaitFor(fraction=0.1), 31, 4),
        (WaitFor(fraction=0.001), 5, 1),
        (WaitFor(count=4), 9, 4),
        (WaitFor(count=4), 3, 3),
    ],
)
def test_how_many_are_needed(wait_for: WaitFor, selected: int, needed: int) -> None:
    assert wait_for.needed(selected) == needed
