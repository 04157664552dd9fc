"""The normals of a GPU beside those of a CPU, on a GPU; skipped where torch sees none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity, profile

from wirelessfl.normals import (
    add_normal,
    fused,
    fused_works,
    nonces,
    operations,
    portable,
    state_words,
)
from wirelessfl.privacy.clipping import Constant
from wirelessfl.privacy.clipping.conformance import ExampleStep
from wirelessfl.privacy.mechanisms import GaussianMechanism, HaarMechanism, MeanGaussianMechanism, NoiseMechanism
from wirelessfl.streams import Streams

pytestmark = pytest.mark.cuda

KEY = bytes(range(32))
CLIENTS = np.array([7, 2**40 + 1, 2**62 + 2**31, 3])
WAYS: dict[str, Callable[..., None]] = {"operations": operations.add_by_operations, "Triton": fused.add_fused}
MECHANISMS = [GaussianMechanism(Constant(1.0)), MeanGaussianMechanism(0.5), HaarMechanism(Constant(1.0))]


def sent() -> tuple[Tensor, Tensor]:
    head, members = state_words(KEY, CLIENTS)
    return torch.from_numpy(head).cuda(), torch.from_numpy(members).cuda()


def device_events(body: Callable[[], object]) -> list[str]:
    """The names of kernels and copies that ``body`` starts."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
        body()
        torch.cuda.synchronize()
    return [event.name for event in recorded.events() if event.device_type == DeviceType.CUDA]


def test_triton_came_with_torch_and_its_kernel_works() -> None:
    assert fused.THERE
    assert fused_works(torch.device("cuda", torch.cuda.current_device()))


@pytest.mark.parametrize("first", [0, 2**31 - 3, 2**32 - 7])
def test_words_are_those_of_a_cpu_bit_for_bit(first: int) -> None:
    head, members = sent()
    there = operations.key_stream(head, members, 5, first, 7)
    assert torch.equal(there.cpu(), operations.key_stream(head.cpu(), members.cpu(), 5, first, 7))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("columns", [1, 2, 257, 2049, 300_001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_are_those_of_a_cpu(way: str, columns: int, dtype: torch.dtype) -> None:
    """As all operations round to nearest there, the bits should be equal; a few roundings are let pass."""
    base = np.random.default_rng(6).standard_normal((4, columns), dtype=np.float32)
    std = np.array([0.7, 0.0, 3.0, 1e-3], dtype=np.float32)
    expected = base.copy()
    portable.add_portably(expected, std, KEY, nonces(CLIENTS, 77))
    found = torch.from_numpy(base).to("cuda", dtype)
    WAYS[way](found, torch.from_numpy(std).to("cuda", dtype), *sent(), 77)
    torch.testing.assert_close(found.cpu().float(), torch.from_numpy(expected), rtol=1e-6, atol=1e-6)
    assert torch.equal(found[1].cpu().float(), torch.from_numpy(base[1]))


def draw(device: str, clients: NDArray[np.int64], step: int = 1) -> Tensor:
    out = torch.zeros(len(clients), 100_000, device=device)
    return add_normal(out, torch.ones(len(clients), device=device), Streams(4), "noise", 5, clients, step)


def test_a_run_draws_the_same_noise_on_either() -> None:
    together = draw("cuda", CLIENTS)
    assert torch.equal(together[1], draw("cuda", CLIENTS[1:2])[0])
    assert not torch.equal(together[1], draw("cuda", CLIENTS[1:2], step=2)[0])
    torch.testing.assert_close(together.cpu(), draw("cpu", CLIENTS), rtol=1e-6, atol=1e-6)


def test_a_block_of_clients_takes_one_copy_and_each_step_one_launch() -> None:
    clients, std = np.arange(500), torch.ones(500, device="cuda")
    out = torch.zeros(500, 20_000, device="cuda")

    def steps(seed: int) -> None:
        for step in (1, 2, 16):
            add_normal(out, std, Streams(seed), "noise", 1, clients, step)

    steps(1)  # compiles
    names = device_events(lambda: steps(2))
    assert sum("Memcpy" in name for name in names) == 1
    assert sum("add_normals" in name for name in names) == 3 == len(names) - 1


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_the_host_never_waits(mechanism: NoiseMechanism) -> None:
    total, rows = torch.zeros(4, 5000, device="cuda"), torch.ones(4, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step in range(3):
            mechanism.add(total, rows, ExampleStep(Streams(8), 1, step, CLIENTS, rows))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert total.isfinite().all()


@pytest.mark.parametrize(("way", "allowed"), [("Triton", 0), ("operations", 32 * operations.NUMBERS)])
def test_memory_beside_the_sum_is_bounded(way: str, allowed: int) -> None:
    out, std = torch.zeros(4, 3 * 2**20, device="cuda"), torch.ones(4, device="cuda")
    words = sent()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    WAYS[way](out, std, *words, 1)
    assert torch.cuda.max_memory_allocated() - before <= allowed
