"""Numbers of all registered clients, of whom few have one of their own."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class SparseVector:
    """A vector (K,) of numbers in which all but few have the same value.

    Attributes:
        size: K.
        clients: (n,) ascending numbers of the clients with a value of their own.
        values: (n,) these values.
        rest: the value of all others.
    """

    size: int
    clients: NDArray[np.int64]
    values: NDArray[np.float64]
    rest: float = np.nan

    @classmethod
    def whole(cls, vector: NDArray[np.float64]) -> "SparseVector":
        """The same as (K,) numbers, of which no two need be equal."""
        return cls(len(vector), np.arange(len(vector), dtype=np.int64), vector)

    @classmethod
    def known(cls, vector: NDArray[np.float64]) -> "SparseVector":
        """The same as (K,) numbers, of which those that are NaN are the rest."""
        clients = np.flatnonzero(~np.isnan(vector)).astype(np.int64)
        return cls(len(vector), clients, vector[clients])

    def dense(self) -> NDArray[np.float64]:
        """(K,) all numbers."""
        vector = np.full(self.size, self.rest)
        vector[self.clients] = self.values
        return vector

    def at(self, clients: NDArray[np.int64]) -> NDArray[np.float64]:
        """(m,) numbers of clients in ascending order."""
        found = np.full(len(clients), self.rest)
        if len(clients) < len(self.clients):
            place = np.searchsorted(self.clients, clients).clip(max=len(self.clients) - 1)
            there = self.clients[place] == clients
            found[there] = self.values[place[there]]
        elif len(clients):
            place = np.searchsorted(clients, self.clients).clip(max=len(clients) - 1)
            there = clients[place] == self.clients
            found[place[there]] = self.values[there]
        return found


def others(clients: NDArray[np.int64], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """(m,) the clients of given ranks, from 0, among those that are not named.

    Args:
        clients: (n,) ascending numbers that are left out.
        ranks: (m,) ranks in ascending order of the others.
    """
    # Of the clients below the i-th that is left out, clients[i] − i are not
    return ranks + np.searchsorted(clients - np.arange(len(clients)), ranks, side="right")
