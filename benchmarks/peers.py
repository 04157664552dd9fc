"""Other simulators and hand-written references on the same workloads, in environments that the user made.

The scripts of a folder given by ``--peers`` are run as they are: one process each, one JSON line out. A script whose
environment is missing is left out; those that need torch alone run in this one.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.measurement import Case, Reference, Sample, Work
from benchmarks.workloads import WORKLOADS

LONGEST_S = 120


@dataclass(frozen=True)
class Peer:
    """One way to run one workload.

    Attributes:
        workload: W1, W2 or W3.
        name: in the table.
        environment: folder of its virtual environment; empty if torch alone will do.
        arguments: of the interpreter.
        reference: what others are compared with, if it stands for that; where several do, with the best of them.
        most: runs that are enough.
    """

    workload: str
    name: str
    environment: str
    arguments: str
    reference: Reference | None = None
    most: int = 1000


_TWO_PROCESSES = "-m torch.distributed.run --standalone --nproc_per_node 2"

PEERS = (
    Peer("W1", "peer: near-limit, 2 workers", "", "vectorised_torch.py --mode procs", "near-limit"),
    Peer("W1", "peer: near-limit, chunks of 10", "", "vectorised_torch.py --mode stack --chunk 10", "near-limit"),
    Peer("W1", "peer: torch.func vmap", "", "vectorised_torch.py --mode vmap", most=1),
    Peer("W1", "peer: pfl, 2 processes", "pfl", f"{_TWO_PROCESSES} pfl_fedavg.py --threads 1"),
    Peer("W1", "peer: Flower + Ray", "flwr", "flower_fedavg.py"),
    Peer("W2", "peer: near-limit, ghost norms", "", "dpsgd.py --mode ghost --chunk 5", "near-limit"),
    Peer("W2", "peer: torch.func vmap", "", "dpsgd.py --mode vmap", most=1),
    Peer("W2", "peer: Opacus, ghost clipping", "base", "dpsgd.py --mode opacus-ghost", "Opacus"),
    Peer("W2", "peer: Opacus, module reused", "base", "dpsgd.py --mode opacus-shared", "Opacus", most=1),
    Peer("W2", "peer: Opacus, made per client", "base", "dpsgd.py --mode opacus", "Opacus", most=1),
    Peer(
        "W3",
        "peer: near-limit, chunks of 100",
        "",
        "vectorised_torch.py --workload w3 --mode stack --chunk 100",
        "near-limit",
    ),
    Peer("W3", "peer: torch.func vmap", "", "vectorised_torch.py --workload w3 --mode vmap", most=1),
    Peer("W3", "peer: pfl, 1 process", "pfl", "pfl_fedavg.py --workload w3"),
    Peer("W3", "peer: Flower + Ray", "flwr", "flower_fedavg.py --workload w3", most=1),
)


def attempt(case: Case) -> Case:
    """The case, which says so and gives NaN where its program fails: the others are measured all the same."""

    def measure() -> Sample:
        try:
            return case.measure()
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{case.group}, {case.name}: {error}", file=sys.stderr)
            return Sample(math.nan)

    return replace(case, measure=measure)


def run_peer(folder: Path, interpreter: Path, arguments: str, threads: int) -> Sample:
    """Run one script.

    Raises:
        RuntimeError: it fails, or says nothing.
    """
    distributed = arguments.startswith(_TWO_PROCESSES)
    if not distributed:
        arguments += f" --threads {threads}"
    done = subprocess.run(
        [str(interpreter), *arguments.split()],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1" if distributed else str(threads)},
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith('{"peer"')]
    if not found:
        raise RuntimeError(f"{folder / arguments.split()[0]} gave no result: {done.stderr.strip()[-500:]}")
    result = json.loads(found[0])
    # Not its memory: what the system reports counts that of the process which started it.
    return Sample(result["steady_rounds_per_s"], loss=result["loss"])


def peer_cases(folder: Path, environments: Path, threads: int) -> Iterator[Case]:
    """The peers that can run here.

    Args:
        folder: where the scripts lie.
        environments: where the virtual environments of those that need one lie.
        threads: of the host.
    """
    work = {each.name: Work("gemm", each.gflop) for each in WORKLOADS}
    for peer in PEERS:
        interpreter = environments / peer.environment / "bin" / "python" if peer.environment else Path(sys.executable)
        if interpreter.exists():
            measure = partial(run_peer, folder, interpreter, peer.arguments, threads)
            yield Case(peer.workload, peer.name, "rounds/s", measure, work[peer.workload], peer.most, peer.reference)
