"""One round of `secagg_plus` against the cryptography that it cannot avoid, on this machine, in this run.

    python -m benchmarks.secagg [--repeats 2]

The floor is the X25519 agreements and the ChaCha20 key stream of all masks alone, in a tight loop, counted as the
round needs them: each client agrees on two keys with each neighbour (share encryption, masks) and expands one mask for
each neighbour that sent shares and one for itself; the server expands the self mask of each survivor and, for each
client that dropped out after sharing keys, agrees on and expands the mask towards each surviving neighbour.
Round and floor alternate and the fastest of each counts. CPU time is what the ratio is taken of: on a shared machine
wall time measures the neighbours too. Every expected sum is checked bit for bit.

Measured on two cores of an Intel Xeon with AVX-512 under a load of 7, one thread, 2 % of the clients lost after
sharing keys; k and t for 40 bits of security and 30 of correctness with 10 % (20 %) colluders and as many dropouts:

      n        d    k    t  floor/s  round/s  ratio  GiB peak
    100  100 000   20   11     0.25     0.43   1.75      0.10
   1000   10 000   52   29     3.32     5.12   1.54      0.16
    100  100 000   40   21     0.49     0.77   1.55      0.16
   1000   10 000  128   71     8.02    12.25   1.53      0.22
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from wirelessfl.secagg import (
    KeyPair,
    Ring,
    RingVector,
    RoundParameters,
    RoundResult,
    SeededBytes,
    Stage,
    choose_neighbourhood,
    harary_graph,
    rehearse,
)

SEED = 20
RING = Ring(32)
DROPOUT_SHARE = 0.02  # of the clients vanish after sharing keys: the dearest moment, their masks are recovered


@dataclass(frozen=True)
class Case:
    """A cohort, its vectors, and the numbers of colluders and dropouts that graph and threshold must tolerate."""

    num_clients: int
    dimension: int
    colluding: int
    dropouts: int

    def parameters(self) -> RoundParameters:
        """The round's public facts: 40 bits of security, 30 of correctness."""
        neighbourhood = choose_neighbourhood(self.num_clients, self.colluding, self.dropouts)
        return RoundParameters(bytes(16), self.dimension, RING, neighbourhood)

    def silent_from(self) -> dict[int, Stage]:
        """The clients that vanish before their masked input."""
        return dict.fromkeys(range(int(DROPOUT_SHARE * self.num_clients)), Stage.MASKED_INPUT)


CASES = (
    Case(100, 100_000, 10, 10),
    Case(1000, 10_000, 100, 100),
    Case(100, 100_000, 20, 20),
    Case(1000, 10_000, 200, 200),
)


def operations(case: Case) -> tuple[int, int]:
    """How many agreements and how many mask expansions the round needs."""
    graph = harary_graph(
        range(case.num_clients), case.parameters().neighbourhood.num_neighbours, SeededBytes(SEED, "server")
    )
    dropped = set(case.silent_from())
    survivors = set(graph) - dropped
    recovered = sum(len(survivors & set(graph.adj[client])) for client in dropped)
    expanded = sum(1 + graph.degree[client] for client in survivors)
    agreements = 2 * sum(graph.degree[client] for client in graph) - sum(graph.degree[client] for client in dropped)
    return agreements + recovered, expanded + len(survivors) + recovered


def floor(agreements: int, expansions: int, stream_bytes: int) -> None:
    """The unavoidable cryptography, and nothing else."""
    own, peer = KeyPair.of(bytes(range(32))), KeyPair.of(bytes(range(1, 33)))
    public = X25519PublicKey.from_public_bytes(peer.public)
    for _ in range(agreements):
        own.private.exchange(public)
    zeros, stream = bytes(stream_bytes), bytearray(stream_bytes)
    for _ in range(expansions):
        Cipher(ChaCha20(own.secret, bytes(16)), mode=None).encryptor().update_into(zeros, stream)


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of one call."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


@dataclass(frozen=True)
class Comparison:
    """The floor and the round of one case, the fastest of each.

    Attributes:
        agreements: how many the round needs.
        expansions: how many masks.
        floor: CPU and wall seconds of the cryptography alone.
        round: of the whole round.
    """

    agreements: int
    expansions: int
    floor: tuple[float, float]
    round: tuple[float, float]

    @property
    def cpu_ratio(self) -> float:
        """CPU time of the round over that of the floor."""
        return self.round[0] / self.floor[0]


def compare(case: Case, repeats: int) -> Comparison:
    """Measure floor and round in turn."""
    generator = np.random.default_rng(SEED)
    inputs: dict[int, RingVector] = {
        client: generator.integers(0, 2**32, case.dimension, dtype=np.uint32) for client in range(case.num_clients)
    }
    parameters, silent = case.parameters(), case.silent_from()
    agreements, expansions = operations(case)
    expected = sum((inputs[client] for client in inputs if client not in silent), RING.zeros(case.dimension))

    def one_round() -> None:
        result = rehearse(parameters, inputs, silent, SEED)
        assert isinstance(result, RoundResult)
        assert np.array_equal(result.total, expected)

    floors, rounds = [], []
    for _ in range(repeats):
        floors.append(seconds(lambda: floor(agreements, expansions, case.dimension * RING.dtype.itemsize)))
        rounds.append(seconds(one_round))
    (floor_cpu, floor_wall), (round_cpu, round_wall) = (tuple(map(min, zip(*x, strict=True))) for x in (floors, rounds))
    return Comparison(agreements, expansions, (floor_cpu, floor_wall), (round_cpu, round_wall))


def measure(case: Case, repeats: int) -> str:
    """One line of the table."""
    found = compare(case, repeats)
    (floor_cpu, floor_wall), (round_cpu, round_wall) = found.floor, found.round
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    neighbourhood = case.parameters().neighbourhood
    return (
        f"{case.num_clients:6d} {case.dimension:8d} {neighbourhood.num_neighbours:4d} {neighbourhood.threshold:4d} "
        f"{found.agreements:8d} {found.expansions:8d} {floor_cpu:8.2f} {round_cpu:8.2f} {found.cpu_ratio:6.2f} "
        f"{floor_wall:9.2f} {round_wall:9.2f} {round_wall / floor_wall:6.2f} {memory:8.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="secagg_plus against the floor of its cryptography")
    parser.add_argument("--repeats", type=int, default=2)
    repeats = parser.parse_args().repeats
    print(
        "     n        d    k    t agreemts expansns  floor/s  round/s  ratio floor(wall) round(wall) ratio  GiB peak"
    )
    for case in CASES:
        print(measure(case, repeats), flush=True)


if __name__ == "__main__":
    main()
