"""Local training of many clients at once."""

from wirelessfl.learning.cohort.engine import train_cohort
from wirelessfl.learning.cohort.peak import BlockMemory
from wirelessfl.learning.cohort.planning import client_bytes, cpu_chunks, cuda_chunk, fastest_chunk
from wirelessfl.learning.cohort.training import CohortBlock, ExecutionPlan, LocalTraining, Precision
from wirelessfl.learning.cohort.transform import (
    GradientTransform,
    PrivateStep,
    SampleGradients,
    StepContext,
    TransformState,
)
from wirelessfl.learning.cohort.workers import one_torch_thread

__all__ = [
    "BlockMemory",
    "CohortBlock",
    "ExecutionPlan",
    "GradientTransform",
    "LocalTraining",
    "Precision",
    "PrivateStep",
    "SampleGradients",
    "StepContext",
    "TransformState",
    "client_bytes",
    "cpu_chunks",
    "cuda_chunk",
    "fastest_chunk",
    "one_torch_thread",
    "train_cohort",
]
