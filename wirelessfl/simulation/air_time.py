"""Time on the air: who sends what in a round, when."""

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
import simpy
from numpy.typing import NDArray

from wirelessfl.radio import Link
from wirelessfl.simulation.medium import TICKS_PER_SECOND, Medium, seconds, ticks


class AirTime:
    """The transmissions of a round, each a stretch of time of one client, under a label."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int, float, float, bool]] = []

    def send(
        self, medium: Medium, position: int, link: Link, bits: float, label: int = 0
    ) -> Generator[simpy.Event, Any, None]:
        """Transmission of a message; a client that is interrupted was on the air until then.

        A message that takes less than a tick is sent in no time, and is sent all the same. Nothing is sent by a client
        that is interrupted at the instant at which it begins.

        Args:
            medium: where time passes.
            position: the client.
            link: of the message.
            bits: of the message.
            label: of the transmission.
        """
        begin = medium.now
        try:
            yield medium.env.timeout(ticks(link.duration(bits)))
        except simpy.Interrupt:
            if medium.now > begin:
                shares = link.cut_off(bits, seconds(medium.now - begin))
                self.note(position, begin, medium.now, label, *shares, sends=link.sends)
            raise
        self.note(position, begin, medium.now, label, link.on_air(bits), link.piloting(bits), link.sends)

    def note(
        self,
        position: int,
        begin: int,
        end: int,
        label: int = 0,
        active: float = 1.0,
        piloting: float = 0.0,
        sends: bool = True,
    ) -> None:
        """A client was on the air from ``begin`` to ``end``, in ticks, but for pauses; the two may be equal.

        Args:
            position: the client.
            begin: when it began.
            end: when it ended.
            label: of the transmission.
            active: the part of the time in which it sent a message; in the rest it paused, or sent pilots.
            piloting: the part of it in which it sent pilots.
            sends: whether a message stands behind the pilots.
        """
        self._rows.append((label, position, begin, end, active, piloting, sends))

    def senders(self, label: int | None = None) -> NDArray[np.int64]:
        """Positions of the clients that have begun to send a message, ascending, under one label or under all."""
        return np.array(sorted({row[1] for row in self._rows if row[6] and label in (None, row[0])}), dtype=np.int64)

    def by_client(self, count: int, label: int | None = None) -> NDArray[np.float64]:
        """(count,) seconds on the air of each client without pilots, under one label or under all."""
        return self._total(count, label, 4)

    @property
    def has_pilots(self) -> bool:
        """Whether anybody has sent pilots."""
        return any(row[5] > 0 for row in self._rows)

    def pilots_by_client(self, count: int, label: int | None = None) -> NDArray[np.float64]:
        """(count,) seconds of pilots of each client, under one label or under all."""
        return self._total(count, label, 5)

    def _total(self, count: int, label: int | None, column: Literal[4, 5]) -> NDArray[np.float64]:
        total = np.zeros(count)
        for row in self._rows:
            if label is None or row[0] == label:
                total[row[1]] += (row[3] - row[2]) / TICKS_PER_SECOND * row[column]
        return total

    def occupied(self) -> float:
        """Seconds in which anybody was on the air, pauses and pilots included."""
        total = busy_until = 0
        for begin, end in sorted(row[2:4] for row in self._rows):
            total += max(0, end - max(begin, busy_until))
            busy_until = max(busy_until, end)
        return seconds(total)
