"""The clock: ticks, and what comes first at one instant."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.errors import InputError
from wirelessfl.simulation.medium import TICKS_PER_SECOND, after_all_else, all_seconds, all_ticks, seconds, ticks


def test_ten_tenths_make_one_second() -> None:
    assert sum(0.1 for _ in range(10)) != 1.0
    assert sum(ticks(0.1) for _ in range(10)) == ticks(1.0) == TICKS_PER_SECOND


@given(st.floats(min_value=0.0, max_value=1e9))
def test_ticks_round_to_half_a_picosecond(duration: float) -> None:
    # Half a tick, plus the spacing of floats at this size: all the error there can be.
    assert abs(seconds(ticks(duration)) - duration) <= 0.5e-12 + duration * 2**-52


@given(st.lists(st.floats(min_value=0.0, max_value=9e6)))
def test_many_durations_are_rounded_as_one_is(durations: list[float]) -> None:
    assert all_ticks(np.array(durations)).tolist() == [ticks(duration) for duration in durations]


@given(st.lists(st.integers(min_value=0, max_value=2**70)))
def test_many_times_are_the_nearest_seconds_as_one_is(times: list[int]) -> None:
    assert all_seconds(times).tolist() == [seconds(time) for time in times]
    assert all(
        float(Fraction(time, TICKS_PER_SECOND)) == found for time, found in zip(times, all_seconds(times), strict=True)
    )


@pytest.mark.parametrize("duration", [-1e-9, float("nan"), float("inf")])
def test_a_duration_that_is_none_is_refused(duration: float) -> None:
    with pytest.raises(ValueError, match="duration"):
        ticks(duration)


@pytest.mark.parametrize("duration", [-1e-9, float("nan")])
def test_durations_of_which_one_is_none_are_refused(duration: float) -> None:
    with pytest.raises(ValueError, match="duration"):
        all_ticks(np.array([1.0, duration]))


@pytest.mark.parametrize("duration", [9_223_373.0, 1e7, float("inf")])
def test_durations_that_no_array_of_ticks_holds_are_refused_in_words(duration: float) -> None:
    with pytest.raises(InputError, match=r"allowed: at most 9.22e\+06 s"):
        all_ticks(np.array([1.0, duration]))
    assert all_ticks(np.array([9_223_372.0])).tolist() == [9_223_372 * TICKS_PER_SECOND]


def test_a_window_scheduled_first_still_closes_last() -> None:
    env = simpy.Environment()
    order: list[str] = []

    def sender(name: str, delay: int) -> simpy.events.ProcessGenerator:
        yield env.timeout(delay)
        order.append(name)
        yield env.timeout(0)
        order.append(f"{name} again")

    closing = after_all_else(env, 5)
    assert closing.callbacks is not None
    closing.callbacks.append(lambda _: order.append("window"))
    env.process(sender("b", 5))
    env.process(sender("a", 5))
    env.process(sender("late", 6))
    env.run()
    assert order == ["b", "a", "b again", "a again", "window", "late", "late again"]
