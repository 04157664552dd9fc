"""Workers that compute runs: one interface over processes of this machine and over a cluster."""

from types import TracebackType
from typing import Protocol, Self

from wirelessfl.study.task import Message, Task

MAX_DEATHS = 3
"""A run during which so many workers died is recorded as failed; until then another worker continues it."""

GRACE_S = 30.0
"""How long a worker may take to finish its round when the study stops; a trace survives a kill as well."""


class Workers(Protocol):
    """Pool of workers; as a context manager it stops all work on leaving, and traces stay intact."""

    def submit(self, task: Task) -> None:
        """Queue a task."""

    def next_message(self, timeout: float) -> Message | None:
        """The next message, or None after ``timeout`` seconds without one.

        Raises:
            InfeasibleError: no worker is left.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...
