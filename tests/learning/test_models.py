"""The shipped models against the papers' tables, and the check of a user's own."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from wirelessfl.learning.models import (
    TemperedSigmoid,
    check_module,
    cnn_cifar10,
    cnn_mnist,
    logistic,
    mlp,
    resnet18_gn,
)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_dimensions_follow_from_the_layers() -> None:
    assert count(logistic((784,), 10)) == 784 * 10 + 10
    assert count(mlp((1, 28, 28), 10, hidden=(196,))) == 784 * 196 + 196 + 196 * 10 + 10
    assert count(mlp((64,), 10, hidden=(32, 16))) == 64 * 32 + 32 + 32 * 16 + 16 + 16 * 10 + 10
    mnist = (64 * 16 + 16) + (16 * 16 * 32 + 32) + (32 * 3 * 3 * 32 + 32) + (32 * 10 + 10)
    assert count(cnn_mnist((1, 28, 28), 10)) == mnist == 18_842
    cifar = (27 * 32 + 32) + (9 * 32 * 64 + 64) + (9 * 64 * 64 + 64) + (9 * 64 * 128 + 128) + (128 * 10 + 10)
    assert count(cnn_cifar10((3, 32, 32), 10)) == cifar == 131_466


def test_resnet18_has_the_published_number_of_parameters() -> None:
    # Eight basic blocks: 3 × 3 kernels, 1 × 1 kernels where the width changes, two numbers a normalised channel.
    widths = [64, 64, 64, 64, 64, 128, 128, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512]
    kernels = 3 * 64 * 9 + sum(9 * a * b for a, b in pairwise(widths))
    skips = sum(a * b for a, b in ((64, 128), (128, 256), (256, 512)))
    norms = 2 * (sum(widths) + 128 + 256 + 512)
    assert count(resnet18_gn((3, 32, 32), 10)) == kernels + skips + norms + 512 * 10 + 10 == 11_173_962


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (logistic((4, 5), 3), (4, 5)),
        (mlp((7,), 3, hidden=(5, 4), activation=nn.Tanh), (7,)),
        (mlp((7,), 3, activation=partial(TemperedSigmoid, 1.5, 3.0, 0.5)), (7,)),
        (cnn_mnist((1, 28, 28), 3), (1, 28, 28)),
        (cnn_mnist((2, 20, 21), 3), (2, 20, 21)),
        (cnn_cifar10((3, 32, 32), 3), (3, 32, 32)),
        (resnet18_gn((3, 16, 16), 3), (3, 16, 16)),
    ],
)
def test_shipped_models_can_be_trained_sample_by_sample(module: nn.Module, shape: tuple[int, ...]) -> None:
    check_module(module, shape, 3)


def test_tempered_sigmoid_is_tanh_at_its_defaults() -> None:
    x = torch.linspace(-4, 4, 101, dtype=torch.float64)
    torch.testing.assert_close(TemperedSigmoid()(x), torch.tanh(x))
    expected = 1.5 / (1 + torch.exp(-3.0 * x)) - 0.5
    torch.testing.assert_close(TemperedSigmoid(1.5, 3.0, 0.5)(x), expected)


@pytest.mark.parametrize(("scale", "temperature"), [(0.0, 1.0), (1.0, -1.0), (float("nan"), 1.0)])
def test_tempered_sigmoid_refuses_bad_constants(scale: float, temperature: float) -> None:
    with pytest.raises(ValueError, match="tempered sigmoid"):
        TemperedSigmoid(scale, temperature)


class MeanOfBatch(nn.Module):
    """Subtracts the batch mean: no layer type gives it away."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.linear(inputs - inputs.mean(dim=0))
        return output


def frozen() -> nn.Module:
    module = nn.Linear(4, 3)
    module.bias.requires_grad_(False)
    return module


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)), "'1' .BatchNorm1d. mixes the samples"),
        (nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)), "'1' .Dropout. is random"),
        (nn.Sequential(nn.Unflatten(1, (2, 2)), nn.InstanceNorm1d(2, track_running_stats=True)), "running statistics"),
        (MeanOfBatch(), "depends on the other samples"),
        (nn.Linear(4, 5), r"gives shape \(3, 5\), not \(3, 3\)"),
        (nn.Identity(), "no parameters"),
        (frozen(), "'bias' is frozen"),
        (nn.Linear(4, 3).double(), "float32"),
    ],
)
def test_modules_that_do_not_fit_are_refused(module: nn.Module, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_module(module, (4,), 3)


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="hidden"):
        mlp((4,), 3, hidden=())
    with pytest.raises(ValueError, match="hidden"):
        mlp((4,), 3, hidden=(5, 0))
    with pytest.raises(ValueError, match="cnn_mnist needs samples of shape"):
        cnn_mnist((1, 19, 28), 10)
    with pytest.raises(ValueError, match="cnn_cifar10 needs samples of shape"):
        cnn_cifar10((784,), 10)
    with pytest.raises(ValueError, match="groups must divide 64"):
        resnet18_gn((3, 32, 32), 10, groups=5)
    with pytest.raises(ValueError, match="resnet18_gn needs"):
        resnet18_gn((784,), 10)
