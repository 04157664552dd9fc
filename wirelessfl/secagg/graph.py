"""Graphs of the clients that share secrets: complete or random Harary, degree and threshold for a stated level.

Bell, Bonawitz, Gascón, Lepoint, Raykova, "Secure Single-Server Aggregation with (Poly)Logarithmic Overhead",
CCS 2020, §3: it is enough that every client has masks and shares with k = O(log n) others, if the graph is
drawn at random after the set of colluding clients is fixed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, perm
from typing import TYPE_CHECKING, Protocol

import numpy as np
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.secagg.protocol import Neighbourhood, RandomBytes, majority

if TYPE_CHECKING:
    import networkx as nx

SECURITY_BITS = 40
CORRECTNESS_BITS = 30


def complete_neighbourhood(num_clients: int, threshold: int | None = None) -> Neighbourhood:
    """Complete graph (Bonawitz et al. 2017); by default t = ⌊2n/3⌋ + 1, their choice for n/3 colluders."""
    precondition(num_clients >= 2, f"secure aggregation needs at least two clients, not {num_clients}")
    chosen = min(2 * num_clients // 3 + 1, num_clients) if threshold is None else threshold
    return Neighbourhood(num_clients - 1, chosen)


@lru_cache
def choose_neighbourhood(
    num_clients: int,
    num_colluding: int,
    num_dropouts: int,
    security_bits: int = SECURITY_BITS,
    correctness_bits: int = CORRECTNESS_BITS,
) -> Neighbourhood:
    """The smallest degree, and the smallest threshold for it, that meet both levels.

    Except with probability 2**-security_bits no honest client has ``threshold`` colluding neighbours, and the honest
    clients that stay are connected; except with probability 2**-correctness_bits the shares of every client
    that are needed come back. Both hold for every set of at most that many colluders and dropouts fixed before the
    graph is drawn. See `security_failure` and `correctness_failure` for the bounds.

    Raises:
        ValueError: even the complete graph does not meet the levels.
    """
    precondition(
        num_colluding >= 0 and num_dropouts >= 0 and num_clients - num_colluding - num_dropouts >= 2,
        f"{num_colluding} colluding clients and {num_dropouts} dropouts among {num_clients} clients must leave two "
        "honest ones, and neither number may be negative",
    )
    # An odd degree is regular only on an even number of clients, and gives no more connectivity than the next lower.
    for degree in [*range(2, num_clients - 1, 2), num_clients - 1]:
        thresholds = range(majority(degree), degree + 2)

        def is_secure(threshold: int, degree: int = degree) -> bool:
            failure = security_failure(num_clients, num_colluding, num_dropouts, degree, threshold)
            return failure <= Fraction(1, 2**security_bits)

        first = bisect_left(thresholds, True, key=is_secure)  # a higher threshold is never less secure
        if first < len(thresholds) and correctness_failure(
            num_clients, num_dropouts, degree, thresholds[first]
        ) <= Fraction(1, 2**correctness_bits):
            return Neighbourhood(degree, thresholds[first])
    raise ValueError(
        f"no graph on {num_clients} clients tolerates {num_colluding} colluders and {num_dropouts} dropouts "
        f"at {security_bits} bits of security and {correctness_bits} of correctness"
    )


def security_failure(
    num_clients: int, num_colluding: int, num_dropouts: int, num_neighbours: int, threshold: int
) -> Fraction:
    """Upper bound on the probability that colluders learn more than the sum of all honest survivors.

    Union of (a) some client has ≥ t colluding neighbours: n Pr[X ≥ t], X hypergeometric, drawn from the clients that
    are left if every dropout happens before the graph is drawn; (b) the graph without colluders and dropouts falls
    apart. On a ring in which each client knows the next k/2 on both sides, (b) takes two disjoint runs of k/2 removed
    clients: at most C(n, 2) pairs of places, each all removed with probability Π_{j<k} (m−j)/(n−j), m removed.
    """
    others = num_clients - num_dropouts - 1
    if others < max(num_colluding, 1):
        return Fraction(1)
    degree = min(num_neighbours, others)
    surrounded = num_clients * _hypergeometric_tail(others, num_colluding, degree, threshold)
    removed = num_colluding + num_dropouts
    span = 2 * (num_neighbours // 2)
    apart = Fraction(0)
    if num_neighbours < num_clients - 1 and removed >= span:
        apart = Fraction(comb(num_clients, 2) * perm(removed, span), perm(num_clients, span))
    return min(Fraction(1), surrounded + apart)


def correctness_failure(num_clients: int, num_dropouts: int, num_neighbours: int, threshold: int) -> Fraction:
    """Upper bound on the probability that a round with that many dropouts aborts, by the union over the clients.

    A client that stays is one of its own share holders and needs t − 1 of its k neighbours; the mask key of one that
    drops out needs t of them.
    """
    staying = num_clients - num_dropouts
    if staying < 1:
        return Fraction(1)
    others, spare = num_clients - 1, num_neighbours - threshold
    failure = staying * _hypergeometric_tail(others, num_dropouts, num_neighbours, spare + 2)
    if num_dropouts:
        failure += num_dropouts * _hypergeometric_tail(others, num_dropouts - 1, num_neighbours, spare + 1)
    return min(Fraction(1), failure)


def harary_graph(clients: Sequence[int], num_neighbours: int, random_bytes: RandomBytes) -> nx.Graph:
    """A Harary graph of the given degree whose places the clients take in uniformly random order.

    With no more than ``num_neighbours`` + 1 clients the graph is complete.
    """
    import networkx as nx  # where it is used: runs without secure aggregation start without it

    degree = min(num_neighbours, len(clients) - 1)
    places = nx.hkn_harary_graph(degree, len(clients))
    order = np.argsort(np.frombuffer(random_bytes(8 * len(clients)), dtype="<u8"), kind="stable")
    return nx.relabel_nodes(places, {place: clients[int(index)] for place, index in enumerate(order)})


def _hypergeometric_tail(population: int, marked: int, draws: int, least: int) -> Fraction:
    # Pr[at least ``least`` marked among ``draws`` of ``population`` without replacement], exactly
    favourable = sum(
        comb(marked, count) * comb(population - marked, draws - count)
        for count in range(max(least, 0), min(marked, draws) + 1)
    )
    return Fraction(favourable, comb(population, draws))


class SharingGraph(Protocol):
    """Degree and threshold by the number of clients."""

    def neighbourhood(self, num_clients: int) -> Neighbourhood:
        """Degree and threshold of a round of so many clients.

        Raises:
            ValueError: nothing suits so few, or so many.
        """

    def opened_by(self, num_clients: int) -> int:
        """The least number of colluding clients for which it is not certain that single inputs stay hidden."""


@dataclass(frozen=True)
class CompleteGraph(SharingGraph):
    """The complete graph, of degree n − 1 (Bonawitz et al. 2017); the threshold opens single inputs.

    Attributes:
        threshold: shares that recover a secret; None for two thirds.
    """

    threshold: int | None

    @override
    def neighbourhood(self, num_clients: int) -> Neighbourhood:
        return complete_neighbourhood(num_clients, self.threshold)

    @override
    def opened_by(self, num_clients: int) -> int:
        return self.neighbourhood(num_clients).threshold


@dataclass(frozen=True)
class SparseGraph(SharingGraph):
    """A random regular graph (Bell et al. 2020), as given, or chosen at 40 bits of security and 30 of correctness.

    Single inputs are taken as open from the first number of colluding clients at which the bound on the probability
    passes 2^-40, at most the threshold.

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

    @override
    def neighbourhood(self, num_clients: int) -> Neighbourhood:
        if self.neighbours is not None:
            return Neighbourhood(self.neighbours, self.threshold or majority(self.neighbours))
        colluding, dropouts = int(self.max_colluding * num_clients), int(self.max_dropouts * num_clients)
        return choose_neighbourhood(num_clients, colluding, dropouts)

    @override
    def opened_by(self, num_clients: int) -> int:
        return _opened_by(num_clients, int(self.max_dropouts * num_clients), self.neighbourhood(num_clients))


@lru_cache
def _opened_by(num_clients: int, num_dropouts: int, chosen: Neighbourhood) -> int:
    def is_open(num_colluding: int) -> bool:
        failure = security_failure(num_clients, num_colluding, num_dropouts, chosen.num_neighbours, chosen.threshold)
        return failure > Fraction(1, 2**SECURITY_BITS)

    return bisect_left(range(chosen.threshold), True, key=is_open)
