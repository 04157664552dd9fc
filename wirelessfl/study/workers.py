"""Where runs are computed: one interface over processes of this machine and over a cluster."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from wirelessfl.study.task import Message, Task

MAX_DEATHS = 3
"""A run during which so many workers died is recorded as failed; until then another worker continues it."""

GRACE_S = 30.0
"""How long a worker may take to finish its round when the study stops; a trace survives a kill as well."""


class Workers(Protocol):
    """Takes tasks, gives messages; a context manager that stops all work on leaving."""

    def submit(self, task: Task) -> None:
        """Have a task computed when a worker is free."""

    def next_message(self, timeout: float) -> Message | None:
        """The next message, or None if there is none within ``timeout`` seconds.

        Raises:
            InfeasibleError: there is nobody left to compute anything.
        """

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop whatever still runs; traces stay intact."""
