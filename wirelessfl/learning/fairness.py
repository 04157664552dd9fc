"""Accuracies of single clients and measures of their spread, as papers on fair federated learning report them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition

WORST_SHARE = 0.1
"""Share of the clients, those served worst, whose mean accuracy is reported (Li et al., ICLR 2020, Table 1)."""


@dataclass(frozen=True, eq=False)
class ClientAccuracies:
    """Accuracies of one model on the test samples of m clients, each client counted once.

    Attributes:
        clients: (m,) ascending numbers of the clients that have test samples.
        accuracy: (m,) share of each client's test samples that are classified rightly.
    """

    clients: NDArray[np.int64]
    accuracy: NDArray[np.float64]

    @classmethod
    def of(cls, correct: NDArray[np.bool_], owners: NDArray[np.int64]) -> ClientAccuracies:
        """The accuracies from (N,) samples that are right or not and their (N,) owners, −1 for samples of nobody.

        Raises:
            ValueError: there is no sample, or another number of owners.
        """
        precondition(len(correct) == len(owners) > 0, f"{len(correct)} samples have {len(owners)} owners")
        owned = owners >= 0
        clients, place, counts = np.unique(owners[owned], return_inverse=True, return_counts=True)
        precondition(len(clients), "no sample has an owner")
        return cls(clients, np.bincount(place, weights=correct[owned]) / counts)

    @property
    def mean(self) -> float:
        """Mean over clients, unlike that over samples also where they have unequally many."""
        return float(self.accuracy.mean())

    @cached_property
    def worst_tenth(self) -> float:
        """Mean accuracy of the ⌈m/10⌉ clients with the lowest."""
        count = math.ceil(WORST_SHARE * len(self.accuracy))
        return float(np.partition(self.accuracy, count - 1)[:count].mean())

    @property
    def jain_index(self) -> float:
        """Jain's index (Σ a)²/(m Σ a²) of the accuracies a: 1 where all are equal, 1/m where one alone is not 0.

        Of accuracies that are all 0, and so equal, it is 1. Source: Jain, Chiu and Hawe, DEC-TR-301, 1984.
        """
        squares = float((self.accuracy**2).sum())
        return float(self.accuracy.sum()) ** 2 / (len(self.accuracy) * squares) if squares else 1.0

    def at(self, clients: NDArray[np.int64]) -> NDArray[np.float64]:
        """(k,) accuracies of other clients; NaN of those without test samples."""
        place = np.minimum(np.searchsorted(self.clients, clients), len(self.clients) - 1)
        return np.where(self.clients[place] == clients, self.accuracy[place], np.nan)
