"""Local training of many clients at once."""

from wirelessfl.learning.cohort.engine import BlockMap, Cohort, CohortPart, TrainingElsewhere, train_cohort
from wirelessfl.learning.cohort.execution import ExecutionPlan, Precision, one_torch_thread
from wirelessfl.learning.cohort.gradients import SampleGradients
from wirelessfl.learning.cohort.peak import BlockMemory
from wirelessfl.learning.cohort.planning import (
    ClientDemand,
    cpu_chunks,
    cuda_chunk,
    fastest_chunk,
    separate_blocks,
)
from wirelessfl.learning.cohort.sums import BlockSum, SummedBlock
from wirelessfl.learning.cohort.training import (
    CohortBlock,
    GradientTransform,
    LocalTraining,
    PrivateStep,
    StepContext,
    TransformState,
)

__all__ = [
    "BlockMap",
    "BlockMemory",
    "BlockSum",
    "ClientDemand",
    "Cohort",
    "CohortBlock",
    "CohortPart",
    "ExecutionPlan",
    "GradientTransform",
    "LocalTraining",
    "Precision",
    "PrivateStep",
    "SampleGradients",
    "StepContext",
    "SummedBlock",
    "TrainingElsewhere",
    "TransformState",
    "cpu_chunks",
    "cuda_chunk",
    "fastest_chunk",
    "one_torch_thread",
    "separate_blocks",
    "train_cohort",
]
