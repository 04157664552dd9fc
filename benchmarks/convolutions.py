"""Networks of convolutions: local training beside the plain loop on the same module, and evaluation beside the peak.

C1  `cnn_cifar10`   20 clients × 100 samples; also with DP-SGD
C2  LEAF's network for FEMNIST with ten classes, as a module of one's own, 20 × 100
C3  `cnn_mnist`     50 × 100; with DP-SGD 20 × 100
C4  `resnet18_gn`   4 × 20

All: batch 20, one local epoch, SGD with learning rate 0.05 and momentum 0.5, ideal uplink, evaluation once at the end.
The images are random: one prototype a class, and noise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.measurement import PLAIN_LOOP, Case, Reference, Runner, Sample, Work
from benchmarks.opacus_loop import WAYS, Way, is_installed, train_with_opacus
from benchmarks.plain_loop import PlainTask, train_plainly
from benchmarks.recorded import RoundTimes, time_scenario
from benchmarks.workloads import (
    BATCH,
    CLASSES,
    CLIP,
    LEARNING_RATE,
    MOMENTUM,
    NOISE_MULTIPLIER,
    dp_sgd,
    rate,
)
from wirelessfl.learning import Dataset, Examples, models
from wirelessfl.learning.cohort import Precision
from wirelessfl.learning.evaluation import evaluate
from wirelessfl.learning.flat import FlatModel
from wirelessfl.processor import processor_name
from wirelessfl.scenario import Scenario

EVALUATION = "evaluation"
PEER = "peer: Opacus, "
BF16 = "simulator, ideal uplink, bf16"
_MULTIPLIES_BF16 = "amx_tile" in processor_name()  # matrix instructions, several times as fast as in single precision
_EVALUATED = 2000
_MNIST, _CIFAR = (1, 28, 28), (3, 32, 32)


def femnist(feature_shape: Sequence[int], num_classes: int) -> nn.Module:
    """LEAF's network for FEMNIST (Caldas et al. 2018), as a user writes it."""
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64 * 49, 2048), nn.ReLU(), nn.Linear(2048, num_classes)),
    )


@dataclass(frozen=True)
class ImageWorkload:
    """One task.

    Attributes:
        name: of its group.
        model: name in a scenario.
        build: from the shape of a sample and the number of classes to the same module.
        shape: of an image.
        clients: K, all active in every round.
        samples: of each client.
        private: whether clients train with DP-SGD.
        rounds: of a run.
        precision: of products and convolutions.
    """

    name: str
    model: str
    build: Callable[[Sequence[int], int], nn.Module]
    shape: tuple[int, int, int]
    clients: int
    samples: int = 100
    private: bool = False
    rounds: int = 4
    precision: Precision = "fp32"

    def smaller(self) -> ImageWorkload:
        """The same in tiny, to see that it works."""
        return replace(self, clients=2, samples=2, rounds=2)

    @property
    def gflop(self) -> float:
        """GFLOP of a round without per-sample gradients: products and convolutions, forward and both derivatives."""
        first, *others = forward_flops(self.build(self.shape, CLASSES), self.shape)
        return 1e-9 * (2 * first + 3 * sum(others)) * self.clients * self.samples

    def scenario(self) -> Scenario:
        """The scenario of a run."""
        pool = {"clients": self.clients, "samples": self.samples, "shape": list(self.shape)}
        return Scenario.model_validate(
            {
                "name": self.name.lower().replace(" ", "-"),
                "rounds": self.rounds,
                "data": {
                    "dataset": {"name": "benchmarks.convolutions:images", "options": pool},
                    "partition": {"scheme": "iid"},
                },
                "model": {"name": self.model},
                "clients": {"count": self.clients},
                "training": {
                    "algorithm": {"name": "fedavg"},
                    "optimizer": {"name": "sgd", "lr": LEARNING_RATE, "momentum": MOMENTUM},
                    "epochs": 1,
                    "batch_size": BATCH,
                    "privacy": dp_sgd() if self.private else {"mechanism": "none"},
                },
                "uplink": {"kind": "ideal"},
                "evaluate": {"every": self.rounds},
                "compute": {"precision": self.precision},
            }
        )

    def plain_task(self) -> PlainTask:
        """The same for the plain loop."""
        inputs, targets = draw_images(self.clients, self.samples, self.shape)
        return PlainTask(
            inputs,
            targets,
            network=partial(self.build, self.shape, CLASSES),
            batch=BATCH,
            epochs=1,
            learning_rate=LEARNING_RATE,
            momentum=MOMENTUM,
            clip=CLIP if self.private else None,
            noise_multiplier=NOISE_MULTIPLIER,
        )


IMAGE_WORKLOADS = (
    ImageWorkload("C1", "cnn_cifar10", models.cnn_cifar10, _CIFAR, clients=20),
    ImageWorkload("C1 DP", "cnn_cifar10", models.cnn_cifar10, _CIFAR, clients=20, private=True),
    ImageWorkload("C2", "benchmarks.convolutions:femnist", femnist, _MNIST, clients=20),
    ImageWorkload("C3", "cnn_mnist", models.cnn_mnist, _MNIST, clients=50),
    ImageWorkload("C3 DP", "cnn_mnist", models.cnn_mnist, _MNIST, clients=20, private=True),
    ImageWorkload("C4", "resnet18_gn", models.resnet18_gn, _CIFAR, clients=4, samples=20),
)
GROUPS = (*(each.name for each in IMAGE_WORKLOADS), EVALUATION)


def draw_images(clients: int, samples: int, shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """(K, n, *shape) images and (K, n) labels: one prototype a class, and noise."""
    generator = torch.Generator().manual_seed(0)
    prototypes = torch.rand(CLASSES, *shape, generator=generator)
    labels = torch.randint(0, CLASSES, (clients, samples), generator=generator)
    noise = torch.randn(clients, samples, *shape, generator=generator).mul_(0.5)
    return (prototypes[labels] + noise).clamp_(0, 1), labels


def images(clients: int, samples: int, shape: Sequence[int]) -> Dataset:
    """The pool of all clients' images, tested on itself: the loss is then that of the plain loop."""
    inputs, targets = draw_images(clients, samples, shape)
    pool = Examples(inputs.flatten(0, 1), targets.flatten())
    return Dataset("images", pool, pool, tuple(str(label) for label in range(CLASSES)))


def forward_flops(module: nn.Module, shape: Sequence[int]) -> list[float]:
    """Operations of the convolutions and linear layers on one sample, in the order of their calls."""
    found: list[float] = []

    def count(layer: nn.Module, inputs: Any, outputs: Tensor) -> None:
        assert isinstance(layer, nn.Conv2d | nn.Linear)
        found.append(2.0 * layer.weight[0].numel() * outputs[0].numel())

    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(count)
    with torch.no_grad():
        module(torch.zeros(1, *shape))
    return found


def convolution_cases(threads: int, runner: Runner, *, quick: bool) -> list[Case]:
    """Every workload, the plain loop and then the simulator, also in bf16 where it is made for; and an evaluation."""
    cases = []
    for workload in (each.smaller() if quick else each for each in IMAGE_WORKLOADS):
        runs: dict[str, partial[RoundTimes]] = {
            PLAIN_LOOP: partial(_run_plainly, workload, threads),
            "simulator, ideal uplink": partial(_run, workload, threads),
        }
        if _MULTIPLIES_BF16 and not workload.private:
            runs[BF16] = partial(_run, replace(workload, precision="bf16"), threads)
        if workload.private and is_installed():
            runs |= {f"{PEER}{way}": partial(_run_with_opacus, workload, threads, way) for way in WAYS}
        for name, run in runs.items():
            reference: Reference | None = PLAIN_LOOP if name == PLAIN_LOOP else None
            if name.startswith(PEER):
                reference = "Opacus"
            measure = partial(_measure, runner, run)
            has_peak = name != BF16 and not workload.private  # that of products in single precision
            work = Work("gemm", workload.gflop) if has_peak else None
            cases.append(Case(workload.name, name, "rounds/s", measure, work, most=3, reference=reference))
    count = 20 if quick else _EVALUATED
    work = Work("gemm", 1e-9 * sum(forward_flops(models.resnet18_gn(_CIFAR, CLASSES), _CIFAR)))
    name = f"resnet18_gn, {count:,} images"
    cases.append(Case(EVALUATION, name, "images/s", partial(_evaluated, count, threads), work, most=3))
    return cases


def _run_plainly(workload: ImageWorkload, threads: int) -> RoundTimes:
    return train_plainly(workload.plain_task(), workload.rounds, threads)


def _run_with_opacus(workload: ImageWorkload, threads: int, way: Way) -> RoundTimes:
    return train_with_opacus(workload.plain_task(), workload.rounds, threads, way)


def _run(workload: ImageWorkload, threads: int) -> RoundTimes:
    return time_scenario(workload.scenario(), threads)


def _measure(runner: Runner, run: partial[RoundTimes]) -> Sample:
    return rate(runner(run))


def _evaluated(count: int, threads: int) -> Sample:
    inputs, targets = draw_images(1, count, _CIFAR)
    model = FlatModel(partial(models.resnet18_gn, _CIFAR, CLASSES), _CIFAR, CLASSES)
    begun, before = time.perf_counter(), time.process_time()
    evaluate(model, model.initial(0), Examples(inputs[0], targets[0]), threads)
    return Sample(count / (time.perf_counter() - begun), time.process_time() - before)
