"""The trace: what a run leaves on disk, round by round, and how it is read back."""

from wirelessfl.trace.checkpoint import (
    CheckpointWriter,
    State,
    has_checkpoint,
    load_checkpoint,
    new_checkpoint,
    save_checkpoint,
)
from wirelessfl.trace.codes import (
    FINISHED,
    JAMMER_NODE,
    SERVER_NODE,
    EventKind,
    RunStatus,
    SecAggOutcome,
    SecAggStage,
    Status,
)
from wirelessfl.trace.identity import RunIdentity, continued_identity, scenario_digest
from wirelessfl.trace.layout import Variable
from wirelessfl.trace.reader import (
    at_slot_start,
    by_client,
    gain_shape,
    has_group,
    model_weights,
    open_trace,
    read_attributes,
    read_group,
    round_labels,
)
from wirelessfl.trace.records import EventBatch, RoundRecord, TraceHeader
from wirelessfl.trace.reference import reference_markdown
from wirelessfl.trace.schema import PRIVACY
from wirelessfl.trace.writer import TraceWriter

__all__ = [
    "FINISHED",
    "JAMMER_NODE",
    "PRIVACY",
    "SERVER_NODE",
    "CheckpointWriter",
    "EventBatch",
    "EventKind",
    "RoundRecord",
    "RunIdentity",
    "RunStatus",
    "SecAggOutcome",
    "SecAggStage",
    "State",
    "Status",
    "TraceHeader",
    "TraceWriter",
    "Variable",
    "at_slot_start",
    "by_client",
    "continued_identity",
    "gain_shape",
    "has_checkpoint",
    "has_group",
    "load_checkpoint",
    "model_weights",
    "new_checkpoint",
    "open_trace",
    "read_attributes",
    "read_group",
    "reference_markdown",
    "round_labels",
    "save_checkpoint",
    "scenario_digest",
]
