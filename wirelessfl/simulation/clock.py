"""Simulated time: integer ticks inside, seconds outside, converted here and nowhere else.

Ten steps of 0.1 s do not make 1.0 in floating point, so that a deadline and an arrival that a user means to
coincide would not. SimPy accepts integers; a tick is a picosecond, far below any symbol time.

Same-instant order. SimPy runs what happens at one instant by priority, then by the order of scheduling. A window
(deadline, wait-for rule) closes *after* everything else at its instant, whatever was scheduled first: a message
that arrives exactly at the deadline is in time, and of several that arrive at the same instant as the last one
needed all count. Clients that begin or end something of their own at one instant do so in ascending order of their
number; those who have waited for the same slot send in the order in which they became ready. Clients whose work goes
on across rounds (asynchronous aggregation) act in the order in which they started.
"""

import math
from collections.abc import Sequence

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.errors import InputError

TICKS_PER_SECOND = 10**12
LATEST_TICK = 2**63 - 1
"""The last instant that an array of ticks can hold; times of the simulation itself have no end."""

# Event priority after SimPy's URGENT (0) and NORMAL (1)
_LAST = 2


def ticks(seconds: float) -> int:
    """Whole ticks nearest to a finite duration in seconds."""
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"a duration must be finite and not negative, found {seconds} s")
    return round(seconds * TICKS_PER_SECOND)


def all_ticks(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """(n,) ticks of (n,) durations, each as ``ticks`` has it.

    Raises:
        InputError: a duration is longer than 63 bits can tell, 106 days.
        ValueError: a duration is negative or not a number.
    """
    if not np.all(seconds >= 0):
        raise ValueError(f"durations must not be negative, found {seconds}")
    longest = LATEST_TICK / TICKS_PER_SECOND
    if seconds.max(initial=0.0) >= longest:
        found = f"what a client does in a round takes {seconds.max():.3g} s"
        raise InputError(f"timing: {found}; at most {longest:.3g} s can be simulated")
    return np.rint(seconds * TICKS_PER_SECOND).astype(np.int64)


def seconds(time: int) -> float:
    """Seconds of a time in ticks."""
    return time / TICKS_PER_SECOND


def all_seconds(times: Sequence[int]) -> NDArray[np.float64]:
    """(n,) seconds of n times, each as ``seconds`` has it: whole numbers divide exactly, beyond 2**53, too."""
    return np.array([time / TICKS_PER_SECOND for time in times], dtype=np.float64)


def after_all_else(env: simpy.Environment, delay: int = 0) -> simpy.Event:
    """An event that fires after everything else that happens at the instant ``now + delay``.

    Args:
        env: the simulation.
        delay: ticks from now.
    """
    event = simpy.Event(env)
    event._ok = True
    event._value = None
    env.schedule(event, priority=_LAST, delay=delay)  # type: ignore[arg-type]
    return event
