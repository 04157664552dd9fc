"""Private training with the noise of a GPU, computed on a CPU, beside training with the noise of a CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.learning.test_cohort import STREAMS, collect, make
from wirelessfl.learning.cohort import ExecutionPlan, LocalTraining, train_cohort
from wirelessfl.learning.optimizers import SGD
from wirelessfl.learning.private import PrivateGradients
from wirelessfl.normals import add_on_device, noise_key
from wirelessfl.privacy.clipping import Constant, FlatClipping
from wirelessfl.privacy.mechanisms import (
    GaussianMechanism,
    HaarMechanism,
    MeanGaussianMechanism,
    NoiseMechanism,
    haar_noise,
)
from wirelessfl.privacy.mechanisms import gaussian as gaussian_module
from wirelessfl.privacy.mechanisms.haar_noise import portable
from wirelessfl.streams import Streams


def train(mechanism: NoiseMechanism, plan: ExecutionPlan, dtype: torch.dtype, round_index: int) -> Tensor:
    """(6, d) updates of clients that take from 1 to 8 steps."""
    model, population = make("mlp")
    training = LocalTraining(SGD(0.5), 0.05, batch_size=8, epochs=2)
    transform = PrivateGradients(FlatClipping(0.5), mechanism)
    start, clients = model.initial(2).to(dtype), np.arange(6)
    blocks = train_cohort(model, start, population, clients, training, STREAMS, round_index, plan, transform)
    return collect(list(blocks), 6)[0]


@pytest.mark.parametrize(
    "mechanism", [GaussianMechanism(Constant(1.0)), MeanGaussianMechanism(0.1), HaarMechanism(Constant(1.0))], ids=repr
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_runs_on_either_draw_the_same_noise(
    mechanism: NoiseMechanism, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit, through blocks of clients that finish at different steps, rounds and threads."""
    plans = [(ExecutionPlan(chunk=4), 3), (ExecutionPlan(chunk=2, threads=2), 4), (ExecutionPlan(chunk=4), 4)]
    on_cpu = [train(mechanism, plan, dtype, round_index) for plan, round_index in plans]

    def add_as_on_a_gpu(
        out: Tensor,
        std: Tensor,
        streams: Streams,
        purpose: str,
        round_index: int,
        clients: NDArray[np.int64],
        step: int,
    ) -> Tensor:
        add_on_device(out, std, noise_key(streams, purpose, round_index), clients, step)
        return out

    for module in (gaussian_module, portable):
        monkeypatch.setattr(module, "add_normal", add_as_on_a_gpu)
    monkeypatch.setattr(haar_noise, "kernel", lambda: None)
    there = [train(mechanism, plan, dtype, round_index) for plan, round_index in plans]
    assert all(torch.equal(*pair) for pair in zip(on_cpu, there, strict=True))
    assert not torch.equal(there[0], there[2])
