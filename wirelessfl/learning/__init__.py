"""The learning core: data, models, local training of a whole cohort, federated algorithms; without a clock."""

from wirelessfl.learning.algorithms import (
    Algorithm,
    AlgorithmFacts,
    ClientRows,
    FedAvg,
    FedProx,
    LocalObjective,
    LocalOutcome,
    RoundFacts,
    ServerState,
    Upcycled,
    upcycle,
)
from wirelessfl.learning.cohort import (
    CohortBlock,
    ExecutionPlan,
    GradientTransform,
    LocalTraining,
    PrivateStep,
    SampleGradients,
    StepContext,
    TransformState,
    train_cohort,
)
from wirelessfl.learning.data import Dataset, Examples, load_dataset
from wirelessfl.learning.evaluation import Evaluation, evaluate
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import (
    TemperedSigmoid,
    check_module,
    cnn_cifar10,
    cnn_mnist,
    logistic,
    mlp,
    resnet18_gn,
)
from wirelessfl.learning.optimizers import SGD, AdaGrad, Adam, Optimizer, ServerOptimizer, ServerSgd
from wirelessfl.learning.partition import (
    Partition,
    classes_partition,
    dirichlet_partition,
    iid_partition,
    natural_partition,
    power_law_partition,
)
from wirelessfl.learning.population import PartitionedData, Population, Shards, SyntheticPopulation

AggregationRule = Algorithm  # the name of the protocol before version 0.2

__all__ = [
    "SGD",
    "AdaGrad",
    "Adam",
    "AggregationRule",
    "Algorithm",
    "AlgorithmFacts",
    "ClientRows",
    "CohortBlock",
    "Dataset",
    "Evaluation",
    "Examples",
    "ExecutionPlan",
    "FedAvg",
    "FedProx",
    "FlatModel",
    "GradientTransform",
    "LocalObjective",
    "LocalOutcome",
    "LocalTraining",
    "Optimizer",
    "Partition",
    "PartitionedData",
    "Population",
    "PrivateStep",
    "RoundFacts",
    "SampleGradients",
    "ServerOptimizer",
    "ServerSgd",
    "ServerState",
    "Shards",
    "StepContext",
    "SyntheticPopulation",
    "TemperedSigmoid",
    "TransformState",
    "Upcycled",
    "check_module",
    "classes_partition",
    "cnn_cifar10",
    "cnn_mnist",
    "dirichlet_partition",
    "evaluate",
    "iid_partition",
    "load_dataset",
    "logistic",
    "mlp",
    "natural_partition",
    "power_law_partition",
    "resnet18_gn",
    "train_cohort",
    "upcycle",
]
