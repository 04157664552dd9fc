"""Federated algorithms, one file each: client side and server step together."""

from wirelessfl.learning.algorithms.base import (
    Algorithm,
    AlgorithmFacts,
    ClientRows,
    LocalObjective,
    LocalOutcome,
    RoundFacts,
    ServerState,
)
from wirelessfl.learning.algorithms.fedavg import FedAvg
from wirelessfl.learning.algorithms.feddyn import FedDyn
from wirelessfl.learning.algorithms.fednova import FedNova
from wirelessfl.learning.algorithms.fedprox import FedProx
from wirelessfl.learning.algorithms.personal import Ditto, FineTune
from wirelessfl.learning.algorithms.scaffold import Scaffold
from wirelessfl.learning.algorithms.upcycled import Upcycled, upcycle

__all__ = [
    "Algorithm",
    "AlgorithmFacts",
    "ClientRows",
    "Ditto",
    "FedAvg",
    "FedDyn",
    "FedNova",
    "FedProx",
    "FineTune",
    "LocalObjective",
    "LocalOutcome",
    "RoundFacts",
    "Scaffold",
    "ServerState",
    "Upcycled",
    "upcycle",
]
