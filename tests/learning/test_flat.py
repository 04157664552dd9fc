"""The flat view of a model."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.models import mlp


@pytest.fixture
def model() -> FlatModel:
    return FlatModel(lambda: mlp((5,), 3, hidden=(4,)), (5,), 3)


def test_logits_are_those_of_the_module(model: FlatModel) -> None:
    module = mlp((5,), 3, hidden=(4,))
    flat = torch.cat([parameter.detach().flatten() for parameter in module.parameters()])
    inputs = torch.randn(6, 5)
    torch.testing.assert_close(model.logits(flat, inputs), module(inputs), rtol=0, atol=0)


def test_unflatten_gives_views_in_the_modules_order(model: FlatModel) -> None:
    flat = torch.arange(2.0 * model.dimension).reshape(2, -1)
    named = model.unflatten(flat)
    assert list(named) == ["1.weight", "1.bias", "3.weight", "3.bias"]
    assert named["1.weight"].shape == (2, 4, 5)
    torch.testing.assert_close(torch.cat([part.flatten(1) for part in named.values()], dim=1), flat)
    named["3.bias"][1, 2] = -1.0
    assert flat[1, -1] == -1.0
    with pytest.raises(ValueError, match=f"expected {model.dimension} parameters, got 3"):
        model.unflatten(torch.zeros(3))


def test_a_single_number_is_a_parameter_too() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return self.scale * inputs

    model = FlatModel(Scaled, (3,), 3)
    torch.testing.assert_close(model.logits(torch.tensor([4.0]), torch.ones(1, 3)), torch.full((1, 3), 4.0))


def test_the_initial_model_follows_from_its_seed_and_leaves_torch_alone(model: FlatModel) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, second = model.initial(11), model.initial(12)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(first, second)
    torch.manual_seed(6)
    assert torch.equal(model.initial(11), first)
    torch.manual_seed(11)
    expected = torch.cat([parameter.detach().flatten() for parameter in mlp((5,), 3, hidden=(4,)).parameters()])
    assert torch.equal(first, expected)


def test_initial_models_of_several_threads_are_those_of_one() -> None:
    """Each sets the generator of the whole process to its seed."""

    def build() -> nn.Module:
        layers = []
        for _ in range(20):
            layers.append(nn.Linear(5, 5))
            time.sleep(1e-4)  # the other threads' turn
        return nn.Sequential(*layers, nn.Linear(5, 3))

    slow = FlatModel(build, (5,), 3)
    expected = [slow.initial(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(slow.initial, range(4)))
    assert all(map(torch.equal, found, expected))


def test_initial_models_differ_by_the_low_32_bits_of_the_seed(model: FlatModel) -> None:
    seed = 0x1234_5678_9ABC_DEF0
    assert torch.equal(model.initial(seed), model.initial(seed % 2**32))
    assert not torch.equal(model.initial(seed), model.initial(seed + 1))


def test_a_module_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="mixes the samples"):
        FlatModel(lambda: nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 3)), (5,), 3)
