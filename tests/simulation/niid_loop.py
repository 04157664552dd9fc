"""Rounds of the study niid-bench on all samples beside a loop over clients in plain torch, in double precision.

``python -m tests.simulation.niid_loop DATA DATASET ALGORITHM ROUNDS OUT.csv`` adds a row a round: the accuracy of both,
and the distance of the two models beside the one from the initial model. Ten rounds of Fashion-MNIST take half an hour
to an hour on one core.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.simulation.test_federated_algorithms import Loop
from tests.simulation.test_niid_bench import ROUND, scenario_of
from wirelessfl.assembly import build_simulation
from wirelessfl.learning import ExecutionPlan
from wirelessfl.simulation import FinishedRound
from wirelessfl.trace import EventBatch


def main(data: Path, dataset: str, algorithm: str, rounds: int, out: Path) -> None:
    """Write the rows."""
    scenario = scenario_of(dataset, algorithm, [f"base.rounds={rounds}"], data)
    simulation = build_simulation(scenario, ExecutionPlan(device="cpu", threads=1, chunk=10))
    learner = simulation.deployment.learner
    loop, begin = Loop(learner), learner.initial_state(0).parameters

    def follow(this: FinishedRound, _: EventBatch) -> None:
        ROUND[algorithm](loop, this.clients.tolist(), this.index)
        ours, theirs = simulation.state.parameters, loop.model.float().numpy()
        row: dict[str, Any] = {
            "dataset": dataset,
            "algorithm": algorithm,
            "round": this.index,
            "test_accuracy": this.values["test_accuracy"],
            "test_accuracy_loop": learner.evaluate(theirs, this.index, last=True).test.accuracy,
            "distance": float(np.linalg.norm(ours - theirs)),
            "moved": float(np.linalg.norm(theirs - begin)),
        }
        new = not out.exists()
        with out.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)

    simulation.run(follow)


if __name__ == "__main__":
    folder, dataset, algorithm, rounds, out = sys.argv[1:]
    main(Path(folder), dataset, algorithm, int(rounds), Path(out))
