"""The automatic chunk."""

from __future__ import annotations

from torch import nn

from wirelessfl.learning.cohort import LocalTraining, automatic_chunk
from wirelessfl.learning.cohort.planning import _floats_per_sample
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import cnn_mnist, logistic, mlp, resnet18_gn
from wirelessfl.learning.optimizers import SGD

TRAINING = LocalTraining(SGD(), 0.1, batch_size=20, epochs=1)


def test_floats_per_sample_count_every_layer_and_the_patches() -> None:
    assert _floats_per_sample(FlatModel(lambda: mlp((64,), 10, hidden=(32,)), (64,), 10)) == 64 + 64 + 32 + 32 + 10
    tiny = FlatModel(lambda: nn.Sequential(nn.Conv2d(1, 3, 2), nn.Flatten(), nn.Linear(48, 5)), (1, 5, 5), 5)
    assert _floats_per_sample(tiny) == 25 + (3 * 16 + 4 * 16) + 48 + 5


def test_larger_models_get_smaller_chunks() -> None:
    image = (1, 28, 28)
    small = FlatModel(lambda: logistic(image, 10), image, 10)
    middle = FlatModel(lambda: mlp(image, 10, hidden=(196,)), image, 10)
    convolutional = FlatModel(lambda: cnn_mnist(image, 10), image, 10)
    large = FlatModel(lambda: resnet18_gn((3, 32, 32), 10), (3, 32, 32), 10)
    chunks = [automatic_chunk(model, TRAINING, 10_000) for model in (small, middle, convolutional, large)]
    assert chunks[0] > chunks[1] > chunks[3] == 1
    assert chunks[0] > chunks[2] > 1
    # 32 MiB of 4-byte numbers.
    per_client = 3 * middle.dimension + 20 * _floats_per_sample(middle)
    assert chunks[1] * per_client * 4 <= 32 * 2**20 < (chunks[1] + 1) * per_client * 4


def test_every_thread_has_work_and_no_chunk_exceeds_the_cohort() -> None:
    model = FlatModel(lambda: logistic((60,), 10), (60,), 10)
    assert automatic_chunk(model, TRAINING, 50) == 50
    assert automatic_chunk(model, TRAINING, 50, threads=4) == 13
    assert automatic_chunk(model, TRAINING, 3, threads=8) == 1
    assert automatic_chunk(model, TRAINING, 10**6) == 256
    assert automatic_chunk(model, TRAINING, 1000, device="cuda") == 1000


def test_threads_get_equally_many_blocks_of_equal_size() -> None:
    model = FlatModel(lambda: mlp((784,), 10, hidden=(196,)), (784,), 10)
    assert automatic_chunk(model, TRAINING, 10_000) == 16  # as many as fit
    assert automatic_chunk(model, TRAINING, 50, threads=2) == 13  # four blocks rather than 16 + 16 + 16 + 2
    for clients in range(1, 200):
        blocks = -(-clients // automatic_chunk(model, TRAINING, clients, threads=2))
        assert blocks % 2 == 0 or clients == 1 or blocks == clients
