"""State of one run of a study."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RunRecord:
    """State of one run.

    Attributes:
        run: The hash of its scenario; its trace lies in runs/<run>/.
        levels: The level of each factor.
        seed: Its seed.
        status: waiting, interrupted, failed or complete.
        error: Reason of a failure.
        summary: Content of its summary.json, if it is complete; infinity is the text inf there, NaN is None.
    """

    run: str
    levels: tuple[int, ...]
    seed: int
    status: str
    error: str | None = None
    summary: dict[str, Any] | None = None
