"""The workloads, as scenarios that run through the whole simulator: events, air, ledger, trace, evaluation at the end.

W1  FedAvg   MLP 784-196-10, 50 clients × 100 samples, batch 20, 5 local epochs, 10 rounds
W2  DP-SGD   the same MLP, 50 × 100, batch 20, 1 local epoch, 5 rounds, clip 1, noise multiplier 1
W3  many     logistic regression 784-10, 1,000 × 20 samples, batch 20, 1 local epoch, 5 rounds

All: SGD, learning rate 0.05, momentum 0.5 that starts anew in every round, plain mean of the clients. The samples lie
around one prototype a class. Local batches come in a fresh order in every round, as in any run of the simulator, where
the plain loop takes them in a fixed order: the work is the same and the losses agree closely, not to the last digit.

Uplinks: over the air with the default radio (Rayleigh fading, SNR 1 dB, clip 1, cross-layer power control), and ideal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch

from benchmarks.measurement import PLAIN_LOOP, Case, Runner, Sample, Work, steady
from benchmarks.plain_loop import PlainTask, perceptron, train_plainly
from benchmarks.recorded import RoundTimes, time_scenario
from wirelessfl.learning import Dataset, Examples
from wirelessfl.scenario import Scenario

CLASSES, FEATURES, HIDDEN = 10, 784, 196
BATCH, LEARNING_RATE, MOMENTUM = 20, 0.05, 0.5
CLIP, NOISE_MULTIPLIER = 1.0, 1.0

UplinkKind = Literal["over_the_air", "ideal"]


@dataclass(frozen=True)
class Workload:
    """One task.

    Attributes:
        name: W1, W2 or W3.
        hidden: whether the model has a hidden layer.
        clients: K, all active in every round.
        samples: of each client.
        epochs: local epochs in a round.
        rounds: of a run.
        private: whether clients train with DP-SGD.
    """

    name: str
    hidden: bool
    clients: int
    samples: int
    epochs: int
    rounds: int
    private: bool = False

    def smaller(self) -> Workload:
        """The same in tiny, to see that it works."""
        return replace(self, clients=min(self.clients, 4), samples=BATCH, epochs=1, rounds=2)

    @property
    def gflop(self) -> float:
        """GFLOP of a round: matrix products only, forward, weight gradient and input gradient where one is needed."""
        per_sample = 4 * FEATURES * CLASSES
        if self.hidden:
            per_sample = 4 * (FEATURES * HIDDEN + HIDDEN * CLASSES) + 2 * HIDDEN * CLASSES
        return 1e-9 * per_sample * self.clients * self.samples * self.epochs

    def scenario(self, uplink: UplinkKind, privacy: dict[str, Any] | None = None) -> Scenario:
        """The scenario of a run.

        Args:
            uplink: how updates reach the server.
            privacy: the section ``training.privacy``; None is that of the workload.
        """
        if privacy is None:
            privacy = dp_sgd() if self.private else {"mechanism": "none"}
        pool = {"clients": self.clients, "samples": self.samples}
        return Scenario.model_validate(
            {
                "name": self.name,
                "rounds": self.rounds,
                "data": {
                    "dataset": {"name": "benchmarks.workloads:prototypes", "options": pool},
                    "partition": {"scheme": "iid"},
                },
                "model": {"name": "mlp", "hidden": [HIDDEN]} if self.hidden else {"name": "logistic"},
                "clients": {"count": self.clients},
                "training": {
                    "algorithm": {"name": "fedavg"},
                    "optimizer": {"name": "sgd", "lr": LEARNING_RATE, "momentum": MOMENTUM},
                    "epochs": self.epochs,
                    "batch_size": BATCH,
                    "privacy": privacy,
                },
                "uplink": {"kind": uplink},
                "evaluate": {"every": self.rounds},
            }
        )

    def plain_task(self) -> PlainTask:
        """The same for the plain loop."""
        inputs, targets = draw_prototypes(self.clients, self.samples)
        return PlainTask(
            inputs,
            targets,
            network=partial(perceptron, FEATURES, *((HIDDEN,) if self.hidden else ()), CLASSES),
            batch=BATCH,
            epochs=self.epochs,
            learning_rate=LEARNING_RATE,
            momentum=MOMENTUM,
            clip=CLIP if self.private else None,
            noise_multiplier=NOISE_MULTIPLIER,
        )


WORKLOADS = (
    Workload("W1", hidden=True, clients=50, samples=100, epochs=5, rounds=10),
    Workload("W2", hidden=True, clients=50, samples=100, epochs=1, rounds=5, private=True),
    Workload("W3", hidden=False, clients=1000, samples=20, epochs=1, rounds=5),
)


def dp_sgd(**settings: Any) -> dict[str, Any]:
    """``training.privacy`` of W2, with other settings where given; batches from a shuffled order as in the peers."""
    return {
        "mechanism": "gaussian",
        "sampling": "shuffle",
        "clip": CLIP,
        "noise_multiplier": NOISE_MULTIPLIER,
        **settings,
    }


def draw_prototypes(clients: int, samples: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """(K, n, 784) inputs in [0, 1] and (K, n) labels: one prototype a class, and noise."""
    generator = torch.Generator().manual_seed(seed)
    prototypes = torch.rand(CLASSES, FEATURES, generator=generator)
    labels = torch.randint(0, CLASSES, (clients, samples), generator=generator)
    inputs = torch.randn(clients, samples, FEATURES, generator=generator).mul_(0.5)
    for rows, own in zip(inputs, labels, strict=True):  # no second array of this size: the largest memory is measured
        rows.add_(prototypes[own]).clamp_(0, 1)
    return inputs, labels


def prototypes(clients: int, samples: int) -> Dataset:
    """The pool of all clients' samples, tested on itself: the loss is then that of the plain loop."""
    inputs, targets = draw_prototypes(clients, samples)
    pool = Examples(inputs.flatten(0, 1), targets.flatten())
    return Dataset("prototypes", pool, pool, tuple(str(label) for label in range(CLASSES)))


def run_plainly(workload: Workload, threads: int) -> RoundTimes:
    """The plain loop on a workload."""
    return train_plainly(workload.plain_task(), workload.rounds, threads)


def rate(measured: tuple[RoundTimes, float]) -> Sample:
    """Rounds a second of what a runner gave."""
    times, memory_mib = measured
    return Sample(1.0 / steady(times.seconds), steady(times.cpu_seconds), times.loss, memory_mib)


def workload_cases(workloads: Sequence[Workload], threads: int, runner: Runner) -> list[Case]:
    """Every workload: the plain loop, then the simulator."""
    cases = []
    for workload in workloads:
        runs = {
            PLAIN_LOOP: partial(run_plainly, workload, threads),
            "simulator, over the air": partial(time_scenario, workload.scenario("over_the_air"), threads),
            "simulator, ideal uplink": partial(time_scenario, workload.scenario("ideal"), threads),
        }
        work = Work("gemm", workload.gflop)
        for name, run in runs.items():
            reference = PLAIN_LOOP if name == PLAIN_LOOP else None
            measure = partial(_measure, runner, run)
            cases.append(Case(workload.name, name, "rounds/s", measure, work, reference=reference))
    return cases


def _measure(runner: Runner, run: partial[RoundTimes]) -> Sample:
    return rate(runner(run))
