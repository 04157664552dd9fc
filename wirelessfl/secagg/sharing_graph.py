"""Who shares secrets with whom in a round of n clients, and how many colluding clients that withstands."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from wirelessfl.secagg.graph import (
    Neighbourhood,
    choose_neighbourhood,
    complete_neighbourhood,
    majority,
    security_failure,
)

SECURITY_BITS = 40
CORRECTNESS_BITS = 30


class SharingGraph(Protocol):
    """Degree and threshold by the number of clients."""

    def neighbourhood(self, num_clients: int) -> Neighbourhood:
        """For a round of so many clients.

        Raises:
            ValueError: nothing suits so few, or so many.
        """

    def opened_by(self, num_clients: int) -> int:
        """The least number of colluding clients for which it is not certain that single inputs stay hidden."""


@dataclass(frozen=True)
class CompleteGraph:
    """Everybody with everybody (Bonawitz et al. 2017).

    Attributes:
        threshold: shares that recover a secret; None for two thirds.
    """

    threshold: int | None

    def neighbourhood(self, num_clients: int) -> Neighbourhood:
        """Degree n − 1."""
        return complete_neighbourhood(num_clients, self.threshold)

    def opened_by(self, num_clients: int) -> int:
        """The threshold."""
        return self.neighbourhood(num_clients).threshold


@dataclass(frozen=True)
class SparseGraph:
    """A random regular graph (Bell et al. 2020).

    Attributes:
        neighbours: degree; None for the least that tolerates the two shares below.
        threshold: shares that recover a secret; None for the majority, or as the degree is chosen.
        max_colluding: share of the clients that may collude.
        max_dropouts: share of the clients that may drop out.
    """

    neighbours: int | None
    threshold: int | None
    max_colluding: float
    max_dropouts: float

    def neighbourhood(self, num_clients: int) -> Neighbourhood:
        """As given, or chosen at 40 bits of security and 30 of correctness."""
        if self.neighbours is not None:
            return Neighbourhood(self.neighbours, self.threshold or majority(self.neighbours))
        return _chosen(num_clients, int(self.max_colluding * num_clients), int(self.max_dropouts * num_clients))

    def opened_by(self, num_clients: int) -> int:
        """The first number at which the bound on the probability passes 2^-40, at most the threshold."""
        chosen = self.neighbourhood(num_clients)
        return _opened_by(num_clients, int(self.max_dropouts * num_clients), chosen)


@lru_cache
def _chosen(num_clients: int, num_colluding: int, num_dropouts: int) -> Neighbourhood:
    return choose_neighbourhood(num_clients, num_colluding, num_dropouts, SECURITY_BITS, CORRECTNESS_BITS)


@lru_cache
def _opened_by(num_clients: int, num_dropouts: int, chosen: Neighbourhood) -> int:
    allowed = Fraction(1, 2**SECURITY_BITS)

    def is_open(num_colluding: int) -> bool:
        failure = security_failure(num_clients, num_colluding, num_dropouts, chosen.num_neighbours, chosen.threshold)
        return failure > allowed

    return bisect_left(range(chosen.threshold), True, key=is_open)
