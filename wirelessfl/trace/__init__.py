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
    CLOSING,
    EMPTY_CLIENT,
    FINISHED,
    GAIN_AXES,
    JAMMER_NODE,
    SERVER_NODE,
    EventKind,
    RunStatus,
    SecAggOutcome,
    SecAggStage,
    Status,
)
from wirelessfl.trace.failures import trace_errors
from wirelessfl.trace.identity import RunIdentity, continued_identity, scenario_digest
from wirelessfl.trace.layout import Variable
from wirelessfl.trace.opening import opened_trace
from wirelessfl.trace.reader import (
    at_slot_start,
    by_client,
    gain_shape,
    has_group,
    in_memory,
    model_weights,
    open_trace,
    read_attributes,
    read_group,
    round_labels,
)
from wirelessfl.trace.records import EventBatch, RoundRecord, TraceHeader
from wirelessfl.trace.reference import reference_markdown
from wirelessfl.trace.schema import GROUPS, PRIVACY
from wirelessfl.trace.storage import axes_of, committed_rounds
from wirelessfl.trace.writer import TraceWriter

__all__ = [
    "CLOSING",
    "EMPTY_CLIENT",
    "FINISHED",
    "GAIN_AXES",
    "GROUPS",
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
    "axes_of",
    "by_client",
    "committed_rounds",
    "continued_identity",
    "gain_shape",
    "has_checkpoint",
    "has_group",
    "in_memory",
    "load_checkpoint",
    "model_weights",
    "new_checkpoint",
    "open_trace",
    "opened_trace",
    "read_attributes",
    "read_group",
    "reference_markdown",
    "round_labels",
    "save_checkpoint",
    "scenario_digest",
    "trace_errors",
]
