"""Local training on the ``meta`` device: between upload and report nothing passes between host and device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.learning.device_recorder import META, HostTraffic, host_traffic
from tests.learning.plain_loop import RandomPopulation
from tests.learning.test_cohort import MODELS, OPTIMIZERS, SIZES, STREAMS
from tests.speed import rest_slow
from wirelessfl import normals
from wirelessfl.learning.batches import Sampling, local_steps, plan_batches
from wirelessfl.learning.cohort import GradientTransform, LocalTraining, StepContext
from wirelessfl.learning.cohort.block import BlockData
from wirelessfl.learning.cohort.engine import train_plainly, train_privately
from wirelessfl.learning.cohort.run import Trained
from wirelessfl.learning.cohort.stacked import compile_program
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import mlp, resnet18_gn
from wirelessfl.learning.optimizers import SGD, Adam, Optimizer
from wirelessfl.learning.private import PrivateGradients, layer_of_parameters
from wirelessfl.normals.operations import add_by_operations
from wirelessfl.privacy.clipping import (
    ClippingRule,
    Constant,
    DynamicClipping,
    FlatClipping,
    Geometric,
    PrivateMooClipping,
    PublishedMooClipping,
    per_layer_clipping,
)
from wirelessfl.privacy.mechanisms import (
    GaussianMechanism,
    HaarMechanism,
    MeanGaussianMechanism,
    NoiseMechanism,
    gaussian,
)
from wirelessfl.privacy.mechanisms.haar_noise import portable
from wirelessfl.radio import Superposition


class Residual(nn.Module):
    """A plug-in: known layers in an order of its own, with a buffer."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(12, 12), nn.Linear(12, 3)
        self.register_buffer("scale", torch.full((12,), 0.5))

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.outer(inputs + self.scale * torch.tanh(self.inner(inputs)))
        return logits


BUILDS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = MODELS | {
    "plug-in": (Residual, (12,)),
    "resnet18_gn": (lambda: resnet18_gn((3, 8, 8), 3), (3, 8, 8)),
}


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No noise is drawn: how it is drawn on a device has tests of its own, and takes thousands of operations here."""
    for mechanism in (gaussian, portable):
        monkeypatch.setattr(mechanism, "add_normal", lambda out, *_: out)


def make(name: str) -> FlatModel:
    build, shape = BUILDS[name]
    return FlatModel(build, shape, 3)


def block_on_meta(
    model: FlatModel, training: LocalTraining, sizes: NDArray[np.int64], population: RandomPopulation | None = None
) -> tuple[BlockData, Tensor, NDArray[np.int64]]:
    """The data of a block of clients after their upload, the global model there, and the clients."""
    steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
    clients = np.lexsort((-sizes, -steps))
    stream = STREAMS.nodes("batch_order", 3, clients)
    batches = plan_batches(training.sampling, stream, sizes[clients], steps[clients], training.batch_size)
    start = torch.zeros(model.dimension, device=META)
    shards = (population or RandomPopulation(sizes, model.feature_shape)).shards(clients)
    return BlockData.of(shards, batches, start), start, clients


def traffic(
    name: str, training: LocalTraining, transform: GradientTransform | None = None, sizes: NDArray[np.int64] = SIZES
) -> list[str]:
    """What passes between host and device while a block trains; its result has the right shapes."""
    model = make(name)
    compile_program(model)  # on the host, once a model
    data, start, clients = block_on_meta(model, training, sizes)
    found: list[Trained] = []

    def work() -> None:
        with torch.no_grad():
            if transform is None:
                found.append(train_plainly(model, start, training, data))
            else:
                state = transform.start(clients, start)
                context = StepContext(STREAMS, 3, 0, clients, start, training.learning_rate, reads_values=False)
                found.append(train_privately(model, start, training, data, transform, state, context))

    model.on(META)  # a module that is no sequence of known layers, once a run
    offences = host_traffic(work)
    assert found[0].updates.shape == (len(sizes), model.dimension)
    assert found[0].updates.device == META
    assert found[0].norm.shape == found[0].train_loss.shape == (len(sizes),)
    return offences


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
def test_every_model(name: str, sampling: Sampling) -> None:
    sizes = SIZES if name != "resnet18_gn" else np.array([3, 2])
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=2, sampling=sampling, prox_mu=0.1, clip=0.5)
    assert traffic(name, training, sizes=sizes) == []


@pytest.mark.parametrize(("optimizer", "lr"), rest_slow(OPTIMIZERS, fast=2), ids=repr)
@pytest.mark.parametrize("prox_mu", [0.0, 0.3])
@pytest.mark.parametrize("clip", [None, 0.05])
@pytest.mark.parametrize("name", ["mlp", "plug-in"])
def test_every_optimizer(optimizer: Optimizer, lr: float, prox_mu: float, clip: float | None, name: str) -> None:
    training = LocalTraining(optimizer, lr, batch_size=5, steps=9, prox_mu=prox_mu, clip=clip)
    assert traffic(name, training) == []


def test_sample_space_in_views_and_in_copies() -> None:
    """Of clients of one size the samples are a view; which of the two it is was decided before the upload."""
    for sizes, lie_in_order in ((np.full(4, 12), True), (np.array([12, 12, 11]), False)):
        training = LocalTraining(SGD(0.5), 0.05, batch_size=4, epochs=5)
        model = FlatModel(lambda: mlp((400,), 3, hidden=(300,)), (400,), 3)
        compile_program(model)
        data, start, _ = block_on_meta(model, training, sizes)
        assert (data.consecutive is not None) == lie_in_order
        with torch.no_grad(), HostTraffic() as recorder:
            train_plainly(model, start, training, data)
        assert recorder.offences == []


GAUSSIAN = GaussianMechanism(Constant(1.0))
PRIVATE: dict[str, tuple[ClippingRule, NoiseMechanism]] = {
    "flat": (FlatClipping(0.5), GAUSSIAN),
    "flat, no noise": (FlatClipping(0.5), GaussianMechanism(Constant(0.0))),
    "on the mean": (FlatClipping(0.5), MeanGaussianMechanism(0.1)),
    "dynamic": (DynamicClipping(Geometric(1.0, 0.5, 10)), GAUSSIAN),
    "published MOO": (PublishedMooClipping(0.5, 0.1, 0.1), GAUSSIAN),
    "private MOO": (PrivateMooClipping(0.5, 0.1, 0.1), GAUSSIAN),
    "wavelet coefficients": (FlatClipping(0.5), HaarMechanism(Constant(1.0), "coefficients")),
    "wavelet weighted": (FlatClipping(0.5), HaarMechanism(Constant(1.0), "weighted")),
    "wavelet gradient": (FlatClipping(0.5), HaarMechanism(Constant(1.0), "gradient")),
    "wavelet MOO": (PrivateMooClipping(0.5, 0.1, 0.1), HaarMechanism(Constant(1.0))),
}


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("how", rest_slow(PRIVATE, fast=3))
@pytest.mark.parametrize("name", ["mlp", "cnn_mnist", "plug-in"])
def test_every_private_transform(how: str, name: str) -> None:
    training = LocalTraining(Adam(), 0.01, batch_size=6, steps=3, sampling="poisson", prox_mu=0.1, clip=0.3)
    transform = PrivateGradients(*PRIVATE[how])
    assert traffic(name, training, transform) == []


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("name", ["mlp", "cnn_mnist", "cnn_cifar10", "plug-in"])
@pytest.mark.parametrize("sampling", ["shuffle", "poisson"])
def test_clipping_by_layer(name: str, sampling: Sampling) -> None:
    rule = per_layer_clipping(0.5, layer_of_parameters(make(name)))
    training = LocalTraining(SGD(0.5), 0.01, batch_size=6, epochs=1, sampling=sampling)
    assert traffic(name, training, PrivateGradients(rule, GAUSSIAN)) == []


def test_noise_needs_no_more_than_the_numbers_of_its_clients() -> None:
    """They go once a block, with the first step that is noised, and are there for the others."""
    transform = PrivateGradients(FlatClipping(0.5), GAUSSIAN)
    training = LocalTraining(SGD(), 0.01, batch_size=6, steps=3)
    sizes = np.array([12, 12])
    offences = traffic("logistic", training, transform, sizes)
    assert len([offence for offence in offences if "_to_copy" in offence]) == 1
    assert traffic("logistic", training, transform, sizes) == []


def launches(
    model: FlatModel, training: LocalTraining, clients: int, transform: GradientTransform | None = None
) -> HostTraffic:
    """What is recorded while a block of clients of one size trains."""
    compile_program(model)
    model.on(META)
    data, start, members = block_on_meta(model, training, np.full(clients, 12))
    with HostTraffic() as recorder, torch.no_grad():
        if transform is None:
            train_plainly(model, start, training, data)
        else:
            context = StepContext(STREAMS, 3, 0, members, start, 0.01, reads_values=False)
            train_privately(model, start, training, data, transform, transform.start(members, start), context)
    return recorder


@pytest.mark.parametrize("name", [name for name in BUILDS if name != "resnet18_gn"])  # as the plug-in, and slow
@pytest.mark.parametrize("optimizer", [SGD(0.5), Adam()], ids=["sgd", "adam"])
def test_launches_do_not_grow_with_the_clients(name: str, optimizer: Optimizer) -> None:
    """Layers and steps are loops, clients are not."""
    training = LocalTraining(optimizer, 0.01, batch_size=6, steps=2, prox_mu=0.1, clip=0.3)
    assert launches(make(name), training, 2).operations == launches(make(name), training, 40).operations


def test_launches_in_sample_space_do_not_grow_with_the_clients() -> None:
    training = LocalTraining(SGD(0.5), 0.05, batch_size=4, epochs=5)
    few, many = (
        launches(FlatModel(lambda: mlp((400,), 3, hidden=(300,)), (400,), 3), training, clients) for clients in (2, 40)
    )
    assert few.operations == many.operations


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("how", rest_slow(PRIVATE, fast=3))
@pytest.mark.parametrize("name", ["mlp", "cnn_mnist", "plug-in"])
def test_launches_of_private_training_do_not_grow_with_the_clients(how: str, name: str) -> None:
    training = LocalTraining(Adam(), 0.01, batch_size=6, steps=2, clip=0.3)
    transform = PrivateGradients(*PRIVATE[how])
    _, few, many = (launches(make(name), training, clients, transform) for clients in (2, 2, 20))
    assert few.operations == many.operations  # the first made weights of the transform, which are kept


def test_launches_of_noise_do_not_grow_with_the_clients() -> None:
    counted = []
    for clients in (2, 40):
        with HostTraffic() as recorder:
            head, members = (torch.zeros(shape, dtype=torch.int32, device=META) for shape in ((12,), (clients, 2)))
            out, std = torch.zeros(clients, 700, device=META), torch.zeros(clients, device=META)
            add_by_operations(out, std, head, members, 0)
        assert recorder.offences == []
        counted.append(recorder.operations)
    assert counted[0] == counted[1]


def test_noise_in_pieces_needs_the_numbers_of_its_clients_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wavelet noise of a large block is drawn for some clients at a time: their numbers go in the first step alone."""
    monkeypatch.setattr(portable, "_DRAWN_BYTES_ON_DEVICE", 1)  # a client at a time
    transform = PrivateGradients(FlatClipping(0.5), HaarMechanism(Constant(1.0)))
    for steps in (1, 3):
        training = LocalTraining(SGD(), 0.01, batch_size=6, steps=steps)
        monkeypatch.setattr(normals, "_words_of_blocks", normals._WordsOfBlocks())
        found = launches(make("logistic"), training, 2, transform).offences
        assert len([offence for offence in found if "_to_copy" in offence]) == 2


def test_launches_of_a_superposition_do_not_grow_with_the_clients() -> None:
    counted = []
    for clients in (2, 40):
        air = Superposition(4000, iq_packing=True, pieces=3)
        with HostTraffic() as recorder:
            air.add(torch.zeros(clients, 4000, device=META), np.ones((clients, 3), dtype=np.complex128))
        counted.append(recorder.operations)
    assert counted[0] == counted[1]


@pytest.mark.parametrize(
    "planted",
    [
        lambda there: there * torch.tensor(2.0),
        lambda there: there[torch.tensor([0, 1])],
        lambda there: torch.ones(3).to(META),
        lambda there: there[:3].copy_(torch.ones(3)),
        lambda there: torch.ones(3).sum(),
        lambda there: there[list(range(2))],
        lambda there: there[np.arange(2)],
        lambda there: torch.tensor([1.0, 2.0], device=there.device),
        lambda there: torch.stack([row.mul(2.0) for row in there]),
    ],
    ids=[
        *("scalar of the host", "index of the host", "upload", "copy", "work on the host", "index by a list"),
        *("index by an array", "numbers", "loop over rows"),
    ],
)
def test_the_recorder_sees_what_is_planted(planted: Callable[[Tensor], Tensor]) -> None:
    there = torch.zeros(4, device=META)
    assert host_traffic(lambda: planted(there)) != []


@pytest.mark.parametrize(
    "planted",
    [
        lambda there: there.cpu(),
        lambda there: there.sum().item(),
        lambda there: bool((there > 0).any()),
        lambda there: there.tolist(),
        lambda there: there[there > 0],
        lambda there: there.repeat_interleave(torch.ones(4, dtype=torch.int64, device=META)),
    ],
    ids=["cpu", "item", "bool", "tolist", "mask", "unknown length"],
)
def test_values_cannot_be_read(planted: Callable[[Tensor], object]) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        planted(torch.zeros(4, device=META))
