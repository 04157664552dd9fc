"""Transmissions of a round on the time axis."""

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.simulation.clock import TICKS_PER_SECOND, seconds
from wirelessfl.simulation.medium import Medium


class AirTime:
    """The transmissions of a round, each a stretch of time of one client, under a label."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int, float]] = []

    def send(
        self, medium: Medium, position: int, duration_ticks: int, label: int = 0, active: float = 1.0
    ) -> Generator[simpy.Event, Any, None]:
        """Transmission for some ticks; a client that is interrupted was on the air until then.

        A message that takes less than a tick is sent in no time, and is sent all the same. Nothing is sent by a client
        that is interrupted at the instant at which it begins.

        Args:
            medium: where time passes.
            position: the client.
            duration_ticks: from the first symbol to the last.
            label: of the transmission.
            active: the part of it in which something is sent; the client pauses in the rest.
        """
        begin = medium.now
        try:
            yield medium.env.timeout(duration_ticks)
        except simpy.Interrupt:
            if medium.now > begin:
                self.note(position, begin, medium.now, label, active)
            raise
        self.note(position, begin, medium.now, label, active)

    def note(self, position: int, begin: int, end: int, label: int = 0, active: float = 1.0) -> None:
        """A client was on the air from ``begin`` to ``end``, in ticks, but for pauses; the two may be equal."""
        self._rows.append((label, position, begin, end, active))

    def senders(self, label: int | None = None) -> NDArray[np.int64]:
        """Positions of the clients that have sent anything, ascending, under one label or under all."""
        return np.array(sorted({row[1] for row in self._rows if label in (None, row[0])}), dtype=np.int64)

    def by_client(self, count: int, label: int | None = None) -> NDArray[np.float64]:
        """(count,) seconds on the air of each client, under one label or under all."""
        total = np.zeros(count)
        for row, position, begin, end, active in self._rows:
            if label is None or row == label:
                total[position] += (end - begin) / TICKS_PER_SECOND * active
        return total

    def occupied(self) -> float:
        """Seconds in which anybody was on the air, pauses included."""
        total = busy_until = 0
        for begin, end in sorted(row[2:4] for row in self._rows):
            total += max(0, end - max(begin, busy_until))
            busy_until = max(busy_until, end)
        return seconds(total)
