"""Links of recorded rate, delay and loss: logs of a network or of its simulator, in place of channels."""

import math
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.radio.course import What, course_of
from wirelessfl.radio.digital_links import DigitalLinks, Link
from wirelessfl.radio.propagation import Moment


@dataclass(frozen=True, eq=False)
class ClientLog:
    """One client's link over time, held from each line to the next; the last line ends the log.

    Attributes:
        time_s: (n,) ascending, the first 0 or less.
        rate_bps: (n,) at which it sends.
        delay_s: (n,) from the last symbol to the arrival.
        loss: (n,) share of packets that are lost, and sent again.
    """

    time_s: NDArray[np.float64]
    rate_bps: NDArray[np.float64]
    delay_s: NDArray[np.float64]
    loss: NDArray[np.float64]

    def upload(self, begin_s: float, bits: float) -> tuple[list[tuple[What, float]], float] | None:
        """What is sent for how many seconds up to the last symbol of a message, and the delay; None past the end.

        Nothing is sent at the rate 0. At the rate r and the loss q, (1 − q) r bit/s get through.
        """
        first = int(np.searchsorted(self.time_s, begin_s, side="right")) - 1
        parts: list[tuple[What, float]] = []
        left, now = bits, begin_s
        for line in range(first, len(self.time_s) - 1):
            rate, until = float(self.rate_bps[line]), float(self.time_s[line + 1])
            through = rate * (1.0 - float(self.loss[line]))
            if through > 0 and left <= through * (until - now):
                return [*parts, ("data", left / through)], float(self.delay_s[line])
            left -= through * (until - now)
            parts.append(("data" if rate > 0 else "nothing", until - now))
            now = until
        return None


@dataclass(frozen=True, eq=False)
class LinkLog:
    """The logs of all clients, and where they come from.

    Attributes:
        name: of the file, for messages.
        clients: the log of each.
    """

    name: str
    clients: tuple[ClientLog, ...]

    def link(self, client: int, begin_s: float, bits: float) -> Link:
        """The link of a message.

        Raises:
            DataError: the log ends before the message does.
        """
        log = self.clients[client]
        upload = log.upload(begin_s, bits)
        if upload is None:
            raise DataError(
                f"uplink.rate.file: {self.name}: found lines of client {client} up to {log.time_s[-1]:.6g} s, and a "
                f"message of {bits:,.0f} bits that begins at {begin_s:.6g} s and is not through then; allowed: a log "
                "that ends later, or fewer rounds"
            )
        parts, delay = upload
        duration = sum(seconds for _, seconds in parts)
        on_air = sum(seconds for what, seconds in parts if what == "data")
        course = course_of(parts, duration)
        return Link(duration / bits, active=on_air / duration, wait_s=delay, course=course)

    def mean_rate(self) -> float:
        """Bit/s that get through, over time and clients; at least 1."""
        means = [
            np.average((one.rate_bps * (1.0 - one.loss))[:-1], weights=np.diff(one.time_s)) for one in self.clients
        ]
        return max(1.0, float(np.mean(means)))


@dataclass(frozen=True)
class RecordedLinks:
    """Links that a log tells, at the instant at which a client begins to send; there are no channels.

    Attributes:
        log: of the clients.
        transmit_watts: p of a client on the air; NaN where watts are unknown.
        power_over_noise: 2p/N0 in Hz.
        grant_s: as of `DigitalLinks`.
        vary: as of `DigitalLinks`; logs change over time.
        ages: as of `DigitalLinks`; a log knows the whole of a message.
    """

    log: LinkLog
    transmit_watts: float
    power_over_noise: float
    grant_s: float = 0.0
    vary: ClassVar[bool] = True
    ages: ClassVar[bool] = False

    def __post_init__(self) -> None:
        precondition(len(self.log.clients) > 0, "the log has no clients")

    def draw(
        self, clients: NDArray[np.int64], moment: Moment, share: float, bits: float | None = None
    ) -> tuple[list[Link], None]:
        """Links of n clients; they have no channels.

        Raises:
            DataError: a log ends before a message does.
        """
        begins = np.broadcast_to(moment.time_s, (len(clients),)).tolist()
        size = 1.0 if bits is None else bits
        return [
            self.log.link(client, begin, size) for client, begin in zip(clients.tolist(), begins, strict=True)
        ], None

    def joules(self, airtime: NDArray[np.float64]) -> NDArray[np.float64]:
        """Energy (n,) of seconds on the air; NaN where watts are unknown."""
        return self.transmit_watts * airtime

    def pilot_joules(self, pilot_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Energy (n,) of seconds of pilots, of which a log knows none: 0."""
        return np.zeros(len(pilot_s))


UploadLinks: TypeAlias = DigitalLinks | RecordedLinks
"""Links of clients that send messages of their own: by their channels, or by a log."""


def client_log(rows: NDArray[np.float64]) -> ClientLog:
    """A log from lines (n, 4) of time, rate, delay and loss.

    Raises:
        ValueError: one is out of range, or the times are no log of a run from its beginning.
    """
    lines = rows[np.argsort(rows[:, 0], kind="stable")]
    time, rate, delay, loss = lines.T
    precondition(len(lines) >= 2, f"found {len(lines)} line; allowed: at least 2, of which the last ends the log")
    precondition(time[0] <= 0, f"found time_s from {time[0]:g} on; allowed: from 0 on, the beginning of the run")
    twice = np.flatnonzero(np.diff(time) == 0)
    precondition(len(twice) == 0, f"found time_s {time[twice[0]] if len(twice) else math.nan:g} twice; allowed: once")
    for name, values, most, allowed in (
        ("rate_bps", rate, math.inf, "at least 0"),
        ("delay_s", delay, math.inf, "at least 0"),
        ("loss", loss, 1.0, "0 to 1"),
    ):
        wrong = values[(values < 0) | (values > most)]
        precondition(len(wrong) == 0, f"found {name} {wrong[0] if len(wrong) else 0:g}; allowed: {allowed}")
    return ClientLog(time, rate, delay, loss)
