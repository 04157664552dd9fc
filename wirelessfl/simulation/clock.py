"""Simulated time: integer ticks inside, seconds outside, converted here and nowhere else.

Ten steps of 0.1 s do not make 1.0 in floating point, so that a deadline and an arrival that a user means to
coincide would not. SimPy accepts integers; a tick is a picosecond, far below any symbol time.

Same-instant order. SimPy runs what happens at one instant by priority, then by the order of scheduling. A window
(deadline, wait-for rule) closes *after* everything else at its instant, whatever was scheduled first: a message
that arrives exactly at the deadline is in time, and of several that arrive at the same instant as the last one
needed all count. Clients that begin or end something of their own at one instant do so in ascending order of their
number; those who have waited for the same slot send in the order in which they became ready. Clients whose work goes
on across rounds (asynchronous aggregation) act in the order in which they set out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import simpy
from numpy.typing import NDArray

TICKS_PER_SECOND = 10**12

_LAST = 2
"""Event priority after SimPy's URGENT (0) and NORMAL (1)."""


def ticks(seconds: float) -> int:
    """Whole ticks nearest to a finite duration in seconds."""
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"a duration must be finite and not negative, found {seconds} s")
    return round(seconds * TICKS_PER_SECOND)


def all_ticks(seconds: NDArray[np.float64]) -> NDArray[np.int64]:
    """(n,) ticks of (n,) durations, each as ``ticks`` has it; below some hundred days."""
    whole = np.rint(seconds * TICKS_PER_SECOND)
    if not np.all((seconds >= 0) & (whole < 2.0**63)):
        raise ValueError(f"durations must be from 0 to {2**63 / TICKS_PER_SECOND:.0f} s, found {seconds}")
    return whole.astype(np.int64)


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
