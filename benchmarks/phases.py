"""Where the time of a round goes when nobody trains: seconds of each part of the simulator."""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any
from unittest import mock

from benchmarks.measurement import steady
from benchmarks.recorded import prepare, time_simulation, with_idle_learner
from wirelessfl.privacy import Ledger
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.medium import Medium
from wirelessfl.simulation.uplinks import IdealUplink, OverTheAir
from wirelessfl.streams import NodeStream, Streams
from wirelessfl.trace import CheckpointWriter, TraceWriter

PARTS: dict[str, tuple[tuple[type, str], ...]] = {
    "events": ((Simulation, "run"),),
    "streams": (
        *((NodeStream, law) for law in ("uniform", "normal", "complex_normal", "exponential")),
        (Streams, "generator"),
    ),
    "air": tuple((uplink, step) for uplink in (OverTheAir, IdealUplink) for step in ("plan", "receive")),
    "model update": ((Learner, "update"),),
    "ledger": tuple((Ledger, step) for step in ("add", "epsilon_published", "epsilon_accounted", "state")),
    "trace": ((Medium, "drain"), (TraceWriter, "append")),
    "checkpoint": ((CheckpointWriter, "save"),),
}
"""What belongs to each part; "events" are all the rest of a run. What a part calls of another counts to that one."""

SHELL = ("events", "streams", "ledger")
TRACE = ("trace", "checkpoint")
"""The parts that simulating costs beside what is simulated: training, the air and the step of the model."""


class PartTimes:
    """Seconds by part: of its functions, less those of other parts' functions inside them.

    Args:
        clock: what counts, the processor's seconds or those of the wall.
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        """Nothing has been called."""
        self._clock = clock
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inside: list[str] = []
        self._since = 0.0

    def counted(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, its time charged to a part."""

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            self._charge_innermost()
            self._inside.append(part)
            try:
                return function(*args, **kwargs)
            finally:
                self._charge_innermost()
                self._inside.pop()

        return within

    def _charge_innermost(self) -> None:
        now = self._clock()
        if self._inside:
            self.seconds[self._inside[-1]] += now - self._since
        self._since = now


@contextmanager
def part_times(clock: Callable[[], float]) -> Iterator[PartTimes]:
    """Inside, the parts of every run are timed."""
    times = PartTimes(clock)
    with ExitStack() as patches:
        for part, functions in PARTS.items():
            for owner, name in functions:
                counted = times.counted(part, getattr(owner, name))
                patches.enter_context(mock.patch.object(owner, name, counted))
        yield times


def time_parts(scenario: Scenario, threads: int, clock: Callable[[], float] = time.process_time) -> dict[str, float]:
    """Seconds of each part in a round in which nobody trains, the median of the rounds but the first.

    The processor's seconds stand on a busy machine; waiting for a disk is in those of the wall (``time.perf_counter``).
    """
    simulation = with_idle_learner(prepare(scenario, threads))
    readings: list[dict[str, float]] = [dict.fromkeys(PARTS, 0.0)]
    with part_times(clock) as times:
        time_simulation(simulation, scenario, lambda: readings.append({part: times.seconds[part] for part in PARTS}))
    return {part: steady(after[part] - before[part] for before, after in pairwise(readings)) for part in PARTS}
