"""The optimizers row by row against torch.optim."""

from __future__ import annotations

import pytest
import torch

from tests.learning.plain_loop import torch_optimizer
from wirelessfl.learning.optimizers import SGD, AdaGrad, Adam, Optimizer

OPTIMIZERS: list[Optimizer] = [SGD(), SGD(0.9), Adam(), Adam(0.5, 0.9, 1e-3), AdaGrad(), AdaGrad(1e-3)]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_each_row_is_what_torch_optim_does(optimizer: Optimizer) -> None:
    generator = torch.Generator().manual_seed(1)
    rows, dimension, steps, lr = 3, 7, 25, 0.05
    parameters = torch.randn(rows, dimension, generator=generator)
    references = [torch.nn.Parameter(row.clone()) for row in parameters]
    others = [torch_optimizer(optimizer, [reference], lr) for reference in references]
    accumulated, state = torch.zeros_like(parameters), optimizer.start(parameters)
    for step in range(steps):
        gradient = torch.randn(rows, dimension, generator=generator)
        gradient[:, 0] = 0.0  # a parameter that never receives a gradient
        for reference, other, row in zip(references, others, gradient, strict=True):
            reference.grad = row.clone()
            other.step()
        accumulated.mul_(optimizer.decay).add_(gradient)
        optimizer.step(parameters, accumulated, state, lr, step)
    # A step rounds a handful of times, each relative to a value of order 1.
    torch.testing.assert_close(parameters, torch.stack([r.detach() for r in references]), rtol=0, atol=steps * 4e-7)


def test_constants_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="momentum"):
        SGD(1.0)
    with pytest.raises(ValueError, match="momentum"):
        SGD(float("nan"))
    with pytest.raises(ValueError, match="betas"):
        Adam(beta2=1.0)
    with pytest.raises(ValueError, match="eps"):
        AdaGrad(-1.0)
