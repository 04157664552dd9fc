"""The trace: what a run leaves on disk, round by round, and how it is read back."""

from wirelessfl.trace.records import EventBatch, RoundRecord, TraceHeader
from wirelessfl.trace.reference import reference_markdown
from wirelessfl.trace.schema import JAMMER_NODE, SERVER_NODE, EventKind, Status, Variable
from wirelessfl.trace.writer import TraceWriter

__all__ = [
    "JAMMER_NODE",
    "SERVER_NODE",
    "EventBatch",
    "EventKind",
    "RoundRecord",
    "Status",
    "TraceHeader",
    "TraceWriter",
    "Variable",
    "reference_markdown",
]
