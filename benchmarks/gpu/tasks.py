"""What is trained: the workloads of the CPU's benchmarks, convolutional networks, and the workloads of two papers.

No data set lies on a bare machine: images are random, one prototype a class and noise, in the shape of the real ones.
How long a round takes does not depend on what they show.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.gpu.setting import Setting
from benchmarks.workloads import BATCH, CLASSES, FEATURES, HIDDEN, LEARNING_RATE, MOMENTUM, WORKLOADS, Workload, dp_sgd
from wirelessfl.learning import Dataset, Examples
from wirelessfl.learning import models as architectures
from wirelessfl.learning.cohort import Precision
from wirelessfl.scenario import Scenario

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)
NO_PRIVACY: dict[str, Any] = {"mechanism": "none"}
POISSON = {"mechanism": "gaussian", "sampling": "poisson", "clip": 1.0, "noise_multiplier": 1.0}
_ROUNDS = 4


@dataclass(frozen=True)
class Task:
    """One round of local training, again and again.

    Attributes:
        name: As in the table.
        model: Section ``model`` of the scenario.
        build: The same module, for a count of its operations.
        shape: Of one sample.
        clients: K, all active.
        samples: n, of each client.
        epochs: Local epochs in a round.
        batch: Samples in a mini-batch.
        momentum: Of SGD.
        learning_rate: Of SGD.
        privacy: Section ``training.privacy``.
        uplink: Kind of the uplink.
        precision: Of matrix products and convolutions.
        rounds: Of a run of the whole simulator.
        dataset: Function that makes the samples, and its options.
        tiny_side: Side of the images in a rehearsal.
    """

    name: str
    model: Mapping[str, Any]
    build: Callable[[tuple[int, ...], int], nn.Module]
    shape: tuple[int, ...]
    clients: int
    samples: int
    epochs: int = 1
    batch: int = BATCH
    momentum: float = MOMENTUM
    learning_rate: float = LEARNING_RATE
    privacy: Mapping[str, Any] = field(default_factory=lambda: NO_PRIVACY)
    uplink: str = "ideal"
    precision: Precision = "fp32"
    rounds: int = _ROUNDS
    dataset: str = "benchmarks.gpu.tasks:images"
    tiny_side: int = 0

    def at(self, setting: Setting) -> Task:
        """The task in the size and on the device of ``setting``; a CPU has no TF32, which is rehearsed in fp32."""
        precision: Precision = "fp32" if (setting.device, self.precision) == ("cpu", "tf32") else self.precision
        if not setting.tiny:
            return replace(self, precision=precision)
        shape = (self.shape[0], self.tiny_side, self.tiny_side) if self.tiny_side else self.shape
        samples = 4 if len(self.shape) == 3 else 40
        return replace(
            self,
            shape=shape,
            clients=3,
            samples=samples,
            batch=samples // 2,
            epochs=min(self.epochs, 2),
            rounds=2,
            precision=precision,
        )

    def scenario(self) -> Scenario:
        """The scenario of a run of the whole simulator."""
        options: dict[str, Any] = {"clients": self.clients, "samples": self.samples}
        if self.dataset == "benchmarks.gpu.tasks:images":
            options["shape"] = list(self.shape)
        compute = {} if self.precision == "fp32" else {"compute": {"precision": self.precision}}
        return Scenario.model_validate(
            {
                "name": re.sub(r"[^A-Za-z0-9]+", "-", self.name),
                "rounds": self.rounds,
                "data": {"dataset": {"name": self.dataset, "options": options}, "partition": {"scheme": "iid"}},
                "model": dict(self.model),
                "clients": {"count": self.clients},
                "training": {
                    "algorithm": {"name": "fedavg"},
                    "optimizer": {"name": "sgd", "lr": self.learning_rate, "momentum": self.momentum},
                    "epochs": self.epochs,
                    "batch_size": self.batch,
                    "privacy": dict(self.privacy),
                },
                "uplink": {"kind": self.uplink},
                "evaluate": {"every": self.rounds},
                **compute,
            }
        )


def images(clients: int, samples: int, shape: list[int]) -> Dataset:
    """The pool of all clients' samples; a few of them are tested, since testing is not what is measured."""
    generator = torch.Generator().manual_seed(0)
    prototypes = torch.rand(CLASSES, *shape, generator=generator)
    targets = torch.randint(0, CLASSES, (clients * samples,), generator=generator)
    inputs = torch.randn(len(targets), *shape, generator=generator).mul_(0.5).add_(prototypes[targets])
    pool = Examples(inputs, targets)
    return Dataset("images", pool, pool.take(np.arange(min(len(pool), 1000))), tuple(map(str, range(CLASSES))))


def _of_workload(workload: Workload, name: str | None = None, privacy: Mapping[str, Any] | None = None) -> Task:
    """The same as in the benchmarks of the CPU, over the air."""
    hidden = (HIDDEN,)
    return Task(
        name or workload.name,
        {"name": "mlp", "hidden": [HIDDEN]} if workload.hidden else {"name": "logistic"},
        partial(architectures.mlp, hidden=hidden) if workload.hidden else architectures.logistic,
        (FEATURES,),
        workload.clients,
        workload.samples,
        workload.epochs,
        privacy=privacy or (dp_sgd() if workload.private else NO_PRIVACY),
        uplink="over_the_air",
        rounds=workload.rounds,
        dataset="benchmarks.workloads:prototypes",
    )


_, _W2, _ = WORKLOADS
W1, W2, W3 = (_of_workload(workload) for workload in WORKLOADS)
W2_WAVELET = _of_workload(_W2, "W2, wavelet noise", dp_sgd(mechanism="wavelet"))
W2_MOO = _of_workload(_W2, "W2, MOO clipping", dp_sgd(clipping={"name": "moo"}))
WORKLOAD_TASKS = (W1, W2, W2_WAVELET, W2_MOO, W3)


def _convolutional(function: str) -> dict[str, Any]:
    """A shipped architecture by its function: by its name it is allowed with the real data sets only."""
    return {"name": f"wirelessfl.learning.models.convolutional:{function}"}


_CNN_MNIST = Task("cnn_mnist", _convolutional("cnn_mnist"), architectures.cnn_mnist, MNIST, 100, 100)
CNN_CIFAR10 = Task(
    "cnn_cifar10", _convolutional("cnn_cifar10"), architectures.cnn_cifar10, CIFAR, 100, 100, tiny_side=8
)
_RESNET = Task("resnet18_gn", _convolutional("resnet18_gn"), architectures.resnet18_gn, CIFAR, 100, 100, tiny_side=8)
RESNET_TF32 = replace(_RESNET, name="resnet18_gn, tf32", precision="tf32")
CONVOLUTION_TASKS = (
    CNN_CIFAR10,
    replace(CNN_CIFAR10, name="cnn_cifar10, tf32", precision="tf32"),
    _CNN_MNIST,
    replace(_CNN_MNIST, name="cnn_mnist, DP-SGD", privacy=dp_sgd()),
    RESNET_TF32,
    _RESNET,
)

_PAPER = replace(_CNN_MNIST, samples=600, momentum=0.0, learning_rate=0.5, privacy=POISSON)
_ONE_EPOCH = replace(_PAPER, batch=60)
_FIFTY_EPOCHS = replace(_PAPER, epochs=50, rounds=2)
PAPER_TASKS = (
    replace(_ONE_EPOCH, name="100 × 600, 1 epoch, DP-SGD"),
    replace(
        _ONE_EPOCH,
        name="100 × 600, 1 epoch, MOO clipping",
        privacy={**POISSON, "clipping": {"name": "moo", "kappa": 0.01, "lr": 0.01}},
    ),
    replace(_FIFTY_EPOCHS, name="100 × 600, 50 epochs, DP-SGD"),
    replace(_FIFTY_EPOCHS, name="100 × 600, 50 epochs, wavelet noise", privacy={**POISSON, "mechanism": "wavelet"}),
)
"""``cnn_mnist`` with batch, learning rate and norm of ``scenarios/papers``; images in place of MNIST, equal shares."""

TRAINED = (*WORKLOAD_TASKS, *CONVOLUTION_TASKS, *PAPER_TASKS)
