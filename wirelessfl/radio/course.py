"""The course of a digital message in time: when its client sends data or pilots, and when it is silent."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

What = Literal["data", "pilots", "nothing"]


class Stretch(NamedTuple):
    """A part of a message in which its client does one thing.

    Attributes:
        what: is sent.
        seconds: of it, whatever the length of the message.
        share: of the time that the data take, pauses between them included, in addition.
    """

    what: What
    seconds: float
    share: float = 0.0


Course = tuple[Stretch, ...]
"""Stretches, one after the other."""


def course_of(parts: Iterable[tuple[What, float]], data_s: float) -> Course:
    """The course of known seconds, of which those without pilots are shares of ``data_s``."""
    merged: list[tuple[What, float]] = []
    for what, seconds in parts:
        if merged and merged[-1][0] == what:
            merged[-1] = (what, merged[-1][1] + seconds)
        elif seconds > 0:
            merged.append((what, seconds))
    return tuple(
        Stretch(what, seconds) if what == "pilots" else Stretch(what, 0.0, seconds / data_s) for what, seconds in merged
    )


def sent_until(course: Course, data_s: float, elapsed_s: float) -> tuple[float, float]:
    """Seconds of data and of pilots that a client has sent after so many seconds of a message."""
    sent, left = {"data": 0.0, "pilots": 0.0, "nothing": 0.0}, elapsed_s
    for what, seconds, share in course:
        here = min(seconds + share * data_s, left)
        sent[what] += here
        left -= here
    return sent["data"], sent["pilots"]
