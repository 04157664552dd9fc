"""Random changes of the images of a mini-batch."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from tests.learning.plain_loop import RandomPopulation, batch_gradient, train_client
from tests.learning.test_cohort import MODELS, SIZES, STREAMS, collect
from tests.simulation.scenarios import run, small
from wirelessfl import api
from wirelessfl.errors import RunInterrupted, ScenarioError
from wirelessfl.learning import ExecutionPlan, FlatModel, LocalTraining, train_cohort
from wirelessfl.learning.adapters import TrainedPart
from wirelessfl.learning.algorithms import FedAvg
from wirelessfl.learning.augmentation import Augmentation
from wirelessfl.learning.batches import Batches, Sampling, local_steps, plan_batches
from wirelessfl.learning.cohort.peak import BlockMemory
from wirelessfl.learning.optimizers import SGD, Optimizer
from wirelessfl.learning.private import PrivateGradients
from wirelessfl.learning.vision import torchvision_module
from wirelessfl.privacy.clipping import Constant, FlatClipping
from wirelessfl.privacy.mechanisms import GaussianMechanism
from wirelessfl.streams import Streams

BOTH = Augmentation(flip=0.5, crop=3)
FALSE_ALARM = 1e-9
ROUND = 3


def slowly(images: Tensor, changes: NDArray[np.float32]) -> Tensor:
    """Shift and mirror of (B, C, H, W), image by image, by padding and slicing as torchvision's crop does."""
    pad, (_, _, height, width) = 8, images.shape
    done = []
    for image, (mirrored, down, right, _) in zip(images, changes.tolist(), strict=True):
        top, left = pad + int(down), pad + int(right)
        cut = functional.pad(image, [pad] * 4)[:, top : top + height, left : left + width]
        done.append(cut.flip(-1) if mirrored else cut)
    return torch.stack(done)


def test_shift_and_mirror_copy_pixels() -> None:
    images = torch.rand(4, 50, 3, 9, 7)
    changes = BOTH.drawn(
        STREAMS.nodes("augmentation", 1, np.arange(50)), np.full(50, 4), np.tile(np.arange(4), (1, 50, 1))
    )
    assert changes.shape == (1, 50, 4, 4)
    stacked = images.transpose(0, 1)
    found = BOTH(stacked, torch.from_numpy(changes[0]))
    expected = slowly(stacked.flatten(0, 1), changes[0].reshape(-1, 4)).view_as(stacked)
    assert torch.equal(found, expected)
    assert len(np.unique(changes[..., :3].reshape(-1, 3), axis=0)) > 60, "of 98 kinds"


@pytest.mark.parametrize("quarter", [1, 2, 3])
def test_rotations_by_right_angles_are_those_of_torch(quarter: int) -> None:
    images = torch.rand(2, 3, 3, 6, 6, dtype=torch.float64)
    changes = torch.zeros(2, 3, 4, dtype=torch.float64)
    changes[..., 3] = quarter * math.pi / 2
    found = Augmentation(flip=0, rotation=180)(images, changes)
    torch.testing.assert_close(found, torch.rot90(images, quarter, (-2, -1)), rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 12, 12), (1, 9, 14)])
def test_they_are_those_of_torchvision(shape: tuple[int, ...]) -> None:
    """Rotation, padded crop and mirror of ``torchvision.transforms.functional``, image by image."""
    theirs = torchvision_module("transforms").functional
    augmentation = Augmentation(0.5, 2, 30)
    changes = augmentation.drawn(
        STREAMS.nodes("augmentation", 1, np.arange(3)), np.full(3, 5), np.tile(np.arange(5), (1, 3, 1))
    )
    images = torch.rand(3, 5, *shape)
    found = augmentation(images, torch.from_numpy(changes[0]))
    for client, place in np.ndindex(3, 5):
        mirrored, down, right, angle = changes[0, client, place].tolist()
        turned = theirs.rotate(images[client, place], math.degrees(angle), theirs.InterpolationMode.BILINEAR)
        expected = theirs.crop(theirs.pad(turned, 2), 2 + int(down), 2 + int(right), *shape[1:])
        expected = theirs.hflip(expected) if mirrored else expected
        torch.testing.assert_close(found[client, place], expected, rtol=1e-4, atol=1e-5)


def test_the_laws_of_what_is_drawn() -> None:
    """Counts by Hoeffding's bound, at a false-alarm rate shared among them."""
    augmentation, samples = Augmentation(flip=0.3, crop=2, rotation=20), 40_000
    stream = STREAMS.nodes("augmentation", 1, np.arange(4))
    changes = augmentation.drawn(stream, np.full(4, 100), np.tile(np.arange(100), (100, 4, 1))).reshape(samples, 4)
    allowed = math.sqrt(math.log(2 * 15 / FALSE_ALARM) / (2 * samples))
    assert abs(changes[:, 0].mean() - 0.3) < allowed
    for column in (1, 2):
        assert set(changes[:, column]) == {-2, -1, 0, 1, 2}
        for shift in range(-2, 3):
            assert abs((changes[:, column] == shift).mean() - 0.2) < allowed
    quarters = np.quantile(changes[:, 3], [0.25, 0.5, 0.75])
    assert np.abs(np.degrees(changes[:, 3])).max() <= 20 + 1e-5
    np.testing.assert_allclose(np.degrees(quarters), [-10, 0, 10], atol=40 * allowed)
    assert abs(np.asarray(np.corrcoef(changes.T))[np.triu_indices(4, 1)]).max() < 0.05, "independent of each other"
    steps = changes[:, 0].reshape(100, 4, 100)
    assert 0.3 < (steps[0] != steps[1]).mean() < 0.54, "drawn anew in each step: 2 · 0.3 · 0.7 differ"


def test_a_samples_changes_depend_on_client_step_and_sample_alone() -> None:
    whole = BOTH.drawn(
        STREAMS.nodes("augmentation", 2, np.arange(6)), SIZES, np.zeros((3, 6, 5), np.int64) + np.arange(5)
    )
    clients = np.array([4, 1])
    some = BOTH.drawn(STREAMS.nodes("augmentation", 2, clients), SIZES[clients], np.tile([3, 1], (3, 2, 1)))
    np.testing.assert_array_equal(some, whole[:, clients][:, :, [3, 1]])
    other = BOTH.drawn(
        STREAMS.nodes("augmentation", 3, np.arange(6)), SIZES, np.zeros((3, 6, 5), np.int64) + np.arange(5)
    )
    assert not np.array_equal(other, whole)


def test_nothing_is_drawn_for_nobody() -> None:
    """Clients without samples take no step."""
    nobody = np.array([0])
    drawn = BOTH.drawn(STREAMS.nodes("augmentation", 2, nobody), nobody, np.zeros((0, 1, 1), np.int64))
    assert drawn.shape == (0, 1, 1, 4)


class Augmented:
    """The batch gradient of a client at its samples as the changes of each leave them, one client at a time."""

    def __init__(self, training: LocalTraining, population: RandomPopulation) -> None:
        self.training, self.population = training, population

    def __call__(
        self, module: nn.Module, inputs: Tensor, targets: Tensor, divisor: float, client: int, step: int
    ) -> list[Tensor]:
        assert self.training.augmentation is not None
        batches = batches_of(self.training, client)
        rows = batches.index[:, :, : batches.counts[step, 0]]
        stream = STREAMS.nodes("augmentation", ROUND, np.array([client]))
        changes = self.training.augmentation.drawn(stream, SIZES[[client]], rows)[step, 0]
        return batch_gradient(module, slowly(inputs, changes), targets, divisor, client, step)


def batches_of(training: LocalTraining, client: int) -> Batches:
    sizes = SIZES[[client]]
    steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
    stream = STREAMS.nodes("batch_order", ROUND, np.array([client]))
    return plan_batches(training.sampling, stream, sizes, steps, training.batch_size)


@pytest.mark.parametrize(
    ("part", "sampling", "chunk"),
    [
        (TrainedPart(), "shuffle", 4),
        (TrainedPart(), "poisson", 1),
        (TrainedPart(), "poisson", 4),
        (TrainedPart(".*bias"), "poisson", 4),
    ],
)
def test_training_on_augmented_samples_equals_the_plain_loop(part: TrainedPart, sampling: Sampling, chunk: int) -> None:
    """In closed forms and by torch.func, in blocks of any size, with batches of any width."""
    build, shape = MODELS["cnn_cifar10"]
    model, population = FlatModel(build, shape, 3, part), RandomPopulation(SIZES, shape)
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=1, sampling=sampling, augmentation=BOTH)
    start, clients = model.initial(2).double(), [4, 1, 3, 0]
    blocks = train_cohort(
        model, start, population, np.array(clients), training, STREAMS, ROUND, ExecutionPlan(chunk=chunk)
    )
    updates, _ = collect(list(blocks), 4)
    for client, update in zip(clients, updates, strict=True):
        rule = Augmented(training, population)
        expected = train_client(model, start, population, client, training, STREAMS, ROUND, rule)
        torch.testing.assert_close(update, expected.update, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("optimizer", [SGD(), SGD(0.5)])
def test_models_in_the_span_of_their_samples_are_not_used(optimizer: Optimizer) -> None:
    model = FlatModel(lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 3)), (3, 8, 8), 3)
    population = RandomPopulation(SIZES, (3, 8, 8))
    training = LocalTraining(optimizer, 0.05, batch_size=20, epochs=4, augmentation=BOTH)
    start = model.initial(2).double()
    (block,) = train_cohort(model, start, population, np.array([1]), training, STREAMS, ROUND, ExecutionPlan())
    rule = Augmented(training, population)
    expected = train_client(model, start, population, 1, training, STREAMS, ROUND, rule)
    torch.testing.assert_close(block.updates[0], expected.update, rtol=1e-9, atol=1e-11)


def test_clipping_sees_the_augmented_samples() -> None:
    """One step on every sample: the sum of the clipped gradients of the changed images, by autograd one by one."""
    model = FlatModel(lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 3)), (3, 8, 8), 3)
    population = RandomPopulation(SIZES, (3, 8, 8))
    training = LocalTraining(SGD(), 1.0, batch_size=30, steps=1, augmentation=BOTH)
    start, transform = (
        model.initial(2).double(),
        PrivateGradients(FlatClipping(0.5), GaussianMechanism(Constant(1e-12))),
    )
    blocks = train_cohort(model, start, population, np.array([1]), training, STREAMS, ROUND, ExecutionPlan(), transform)
    (block,) = blocks
    data = population.of_client(1)
    stream = STREAMS.nodes("augmentation", ROUND, np.array([1]))
    changes = BOTH.drawn(stream, SIZES[[1]], batches_of(training, 1).index)[0, 0]
    images, total = (
        slowly(data.inputs[batches_of(training, 1).index[0, 0]].double(), changes),
        torch.zeros(579).double(),
    )
    for image, target in zip(images, data.targets[batches_of(training, 1).index[0, 0]], strict=True):
        flat = start.clone().requires_grad_()
        loss = functional.cross_entropy(model.logits(flat, image[None]), target[None])
        (gradient,) = torch.autograd.grad(loss, flat)
        total += gradient * min(1.0, 0.5 / float(gradient.norm()))
    torch.testing.assert_close(block.updates[0], -total / 30, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_a_run_resumes_to_the_same_bits(tmp_path: Path) -> None:
    scenario = small(data__augment={"crop": 1, "rotation": 10.0}, rounds=3, uplink={"kind": "ideal"})
    options: dict[str, Any] = {"pictures": False, "device": "cpu", "threads": 1}

    def stop(this: Any) -> None:
        if this.index == 2:
            raise RunInterrupted("enough")

    whole = api.simulate(scenario, tmp_path / "whole", **options)
    with pytest.raises(RunInterrupted):
        api.simulate(scenario, tmp_path / "parts", on_round=stop, **options)
    resumed = api.simulate(scenario, tmp_path / "parts", resume=True, pictures=False)
    assert whole.summary["test_loss"] == resumed.summary["test_loss"]
    plain = api.simulate(small(rounds=3, uplink={"kind": "ideal"}), tmp_path / "plain", **options)
    assert plain.summary["test_loss"] != whole.summary["test_loss"]


def test_threads_and_blocks_change_rounding_alone() -> None:
    scenario = small(data__augment={"crop": 1}, rounds=2, uplink={"kind": "ideal"})
    first, other = (
        run(scenario, ExecutionPlan("cpu", threads, chunk))[0].state.parameters for threads, chunk in ((1, 6), (2, 1))
    )
    np.testing.assert_allclose(first, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"data__dataset": {"name": "synthetic"}}, r"data\.augment: found a value with inputs of shape \(60,\)"),
        ({"data__augment": {"crop": 8}}, r"data\.augment\.crop: found 8 with images of \(1, 8, 8\); allowed: below 8"),
        ({"data__augment": {"flip": 1.5}}, r"data\.augment\.flip: found 1\.5; allowed: "),
        ({"data__augment": {"rotation": 200}}, r"data\.augment\.rotation: found 200; allowed: "),
    ],
)
def test_what_is_no_image_is_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        run(small(**{"data__augment": {}, **overrides}))


def test_planned_memory_holds_the_changes() -> None:
    build, shape = MODELS["cnn_cifar10"]
    plain, augmented = (
        BlockMemory(
            FlatModel(build, shape, 3),
            LocalTraining(SGD(), 0.05, batch_size=8, epochs=1, augmentation=augmentation),
            RandomPopulation(SIZES, shape),
            FedAvg(),
        ).peak(4)
        for augmentation in (None, Augmentation(0.5, 2, 10.0))
    )
    assert plain < augmented < 1.5 * plain


def test_streams_of_batches_and_changes_are_their_own() -> None:
    streams = Streams(1)
    assert streams.nodes("augmentation", 1, np.arange(1)).key != streams.nodes("batch_order", 1, np.arange(1)).key
