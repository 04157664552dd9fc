"""For whom, against whom and at which delta a privacy figure is stated, and the public facts it rests on."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition

Unit = Literal["sample", "client"]
Adjacency = Literal["add_remove", "replace"]
Adversary = Literal["observer", "server", "individual"]
Accountant = Literal["pld", "rdp", "gdp", "zcdp"]


@dataclass(frozen=True)
class Statement:
    """Statement that an epsilon belongs to.

    Attributes:
        delta: In (0, 1).
        unit: Whose contribution is protected: one training sample or one whole client.
        adjacency: ``add_remove`` is zero-out: the unit's contribution becomes nothing while every divisor,
            weight and rate stays a public constant. ``replace`` exchanges the unit for another one.
        adversary: ``observer`` sees the released global models; ``server`` also the received signal in both
            quadratures, the CSI and who took part; ``individual`` sees every client's upload.
        colluding: Number of clients (or the jammer) that hand their noise to the adversary.
        accountant: Which accountant composes subsampled releases. ``pld``, the default, is the tightest;
            ``gdp`` is an approximation by the central limit theorem and no bound.

    Raises:
        ValueError: If a value is outside its range.
    """

    delta: float
    unit: Unit = "sample"
    adjacency: Adjacency = "add_remove"
    adversary: Adversary = "server"
    colluding: int = 0
    accountant: Accountant = "pld"

    def __post_init__(self) -> None:
        precondition(0.0 < self.delta < 1.0, f"delta must lie strictly between 0 and 1, found {self.delta}")
        for name, choice in (
            ("unit", Unit),
            ("adjacency", Adjacency),
            ("adversary", Adversary),
            ("accountant", Accountant),
        ):
            value, allowed = getattr(self, name), get_args(choice)
            precondition(value in allowed, f"{name} must be one of {', '.join(allowed)}, found {value!r}")
        precondition(self.colluding >= 0, f"colluding must not be negative, found {self.colluding}")

    @property
    def exchange(self) -> bool:
        """Whether two whole updates of one client are told apart, rather than an update and nothing.

        A sample can swing an update from one side of the clipping ball to the other, so for releases that
        only bound the whole update every statement about a sample is one about an exchanged client.
        """
        return self.unit == "sample" or self.adjacency == "replace"


@dataclass(frozen=True)
class PrivacyFacts:
    """Public constants of the population, fixed before the run.

    Attributes:
        samples: (K,) number of training samples n_i of each client; a client without any releases nothing.
        weights: (K,) aggregation weight p_i of each client, non-negative.
        total_samples: |D|, the sum over all clients.

    Raises:
        ValueError: If shapes differ or a value is out of range.
    """

    samples: NDArray[np.int64]
    weights: NDArray[np.float64]
    total_samples: int

    def __post_init__(self) -> None:
        precondition(
            self.samples.ndim == 1 and self.samples.shape == self.weights.shape,
            f"samples and weights must be one-dimensional and equally long, found {self.samples.shape} "
            f"and {self.weights.shape}",
        )
        precondition(
            self.total_samples >= 1 and not np.any(self.samples < 0),
            "samples must not be negative, and there must be at least one",
        )
        precondition(np.all(self.weights >= 0), "weights must not be negative or NaN")

    @cached_property
    def largest_weight(self) -> float:
        """The largest p_i."""
        return float(self.weights.max())

    @property
    def num_clients(self) -> int:
        """K, the number of registered clients."""
        return len(self.samples)
