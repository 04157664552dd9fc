"""How many clients are trained together: candidates, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from wirelessfl.learning import Adam, FedAvg, FlatModel, PartitionedData, SyntheticPopulation, iid_partition
from wirelessfl.learning.cohort import (
    ClientDemand,
    LocalTraining,
    cpu_chunks,
    cuda_chunk,
    fastest_chunk,
    separate_blocks,
)
from wirelessfl.learning.cohort.planning import _floats_per_sample
from wirelessfl.learning.data import SharedSource, load_dataset
from wirelessfl.learning.data.synthetic import LogNormalSizes
from wirelessfl.learning.models import cnn_mnist, logistic, mlp
from wirelessfl.learning.optimizers import SGD
from wirelessfl.streams import Streams

MIB = 2**20
TRAINING = LocalTraining(SGD(), 0.1, batch_size=20, epochs=1)


def test_floats_per_sample_count_every_layer_and_the_patches_but_no_view() -> None:
    assert _floats_per_sample(FlatModel(lambda: mlp((64,), 10, hidden=(32,)), (64,), 10)) == 64 + 32 + 32 + 10
    tiny = FlatModel(lambda: nn.Sequential(nn.Conv2d(1, 3, 2), nn.Flatten(), nn.Linear(48, 5)), (1, 5, 5), 5)
    assert _floats_per_sample(tiny) == 25 + (3 * 16 + 4 * 16) + 5


def test_bytes_of_a_client() -> None:
    digits = load_dataset("digits")
    data = PartitionedData(digits, iid_partition(len(digits.train), 10, np.random.default_rng(0)))
    model = FlatModel(lambda: logistic((64,), 10), (64,), 10)
    own = 80 * int(np.quantile(data.sizes, 0.9))
    assert ClientDemand.of(model, TRAINING, data, FedAvg()).nbytes == 4 * (3 * 650 + 20 * (64 + 10)) + own
    adaptive = LocalTraining(Adam(), 0.1, batch_size=20, epochs=1)  # two moments more
    plain, with_moments = (ClientDemand.of(model, how, data, FedAvg()).nbytes for how in (TRAINING, adaptive))
    assert with_moments - plain == 4 * 2 * 650


def test_samples_that_are_made_for_a_block_count_and_their_size_is_that_of_large_clients() -> None:
    sizes = LogNormalSizes(minimum=50, maximum=500)
    population = SyntheticPopulation(Streams(1), 100, SharedSource(), sizes)
    model = FlatModel(lambda: logistic((60,), 10), (60,), 10)
    large = int(np.quantile(population.sizes, 0.9))
    assert np.median(population.sizes) < large
    expected = 4 * (3 * 610 + 20 * 70) + large * (12 * 60 + 80)
    assert ClientDemand.of(model, TRAINING, population, FedAvg()).nbytes == expected


def test_a_cohort_that_fits_is_one_block_a_thread_or_equally_many() -> None:
    assert cpu_chunks(ClientDemand(2 * MIB), 50, 2) == (25, 13, 9, 7, 5, 4)
    assert cpu_chunks(ClientDemand(2 * MIB), 50, 4) == (13, 7, 5, 4, 3, 2)
    for threads in range(1, 5):
        for clients in range(1, 200):
            for chunk in cpu_chunks(ClientDemand(2 * MIB), clients, threads):
                turns = -(-clients // (chunk * threads))
                assert chunk == 1 or (chunk - 1) * threads * turns < clients  # no smaller block would do in as many


def test_blocks_stay_below_the_ceilings_of_a_thread_and_of_all() -> None:
    for client in (10_000, MIB, 7 * MIB, 50 * MIB):
        for threads in (1, 2, 4, 16, 64):
            for chunk in cpu_chunks(ClientDemand(client), 10_000, threads):
                assert chunk == 1 or chunk * client <= max(32, 128 // threads) * MIB
    assert cpu_chunks(ClientDemand(2 * MIB), 10_000, 1)[0] == 64  # 157 of 64
    assert cpu_chunks(ClientDemand(2 * MIB), 65, 1)[0] == 33  # two of them rather than 64 and 1
    assert cpu_chunks(ClientDemand(MIB), 64 * 8, 64) == (8, 4)  # as many blocks as threads


def test_a_client_too_large_for_any_ceiling_is_trained_alone() -> None:
    assert cpu_chunks(ClientDemand(200 * MIB), 50, 2) == (1,)


def test_clients_that_share_weights_have_a_higher_ceiling() -> None:
    assert cpu_chunks(ClientDemand(50 * MIB, 5), 20, 2) == (5, 3, 2, 1)  # 256 MiB a thread
    assert cpu_chunks(ClientDemand(50 * MIB, 5), 20, 1)[0] == 5  # no more than gain from it
    assert cpu_chunks(ClientDemand(50 * MIB, 5), 20, 4)[0] == 2  # 128 MiB a thread: 2, and 3 turns
    assert cpu_chunks(ClientDemand(200 * MIB, 5), 20, 4) == (1,)
    assert cpu_chunks(ClientDemand(MIB, 5), 20, 2) == cpu_chunks(ClientDemand(MIB), 20, 2)  # the block is larger anyway


def test_blocks_below_the_floor_are_no_candidates_but_for_the_fewest() -> None:
    assert cpu_chunks(ClientDemand(44 * 1024), 50, 2) == (25,)  # a small model: nothing to choose from
    assert cpu_chunks(ClientDemand(MIB), 10, 1) == (10, 5, 4)
    assert cpu_chunks(ClientDemand(5 * MIB), 3, 1) == (3, 2, 1)
    assert cpu_chunks(ClientDemand(100), 0, 8) == (1,)


@pytest.mark.parametrize(("device", "least"), [("cpu", 250e6), ("cuda", 25e9)])
def test_separate_blocks_have_enough_to_do_in_a_local_step(device: str, least: float) -> None:
    """Operations by hand: a multiply-add is two, and there are two derivatives besides the forward pass."""
    dense = FlatModel(lambda: mlp((64,), 10, hidden=(32,)), (64,), 10)
    convolutions = FlatModel(lambda: cnn_mnist((1, 28, 28), 10), (1, 28, 28), 10)
    recurrent = FlatModel(lambda: _Recurrent(), (5, 8), 3)
    found = set()
    for model, forward in (
        (dense, 2 * (64 * 32 + 32 * 10)),
        (convolutions, _operations(convolutions)),
        (recurrent, 2 * recurrent.dimension),
    ):
        for clients in (10, 100, 3_000, 100_000, 10**7):
            blocks = separate_blocks(model, 20, clients, device)
            assert blocks == min(16, max(4, int(clients * 3 * 20 * forward / least)))
            found.add(blocks)
    assert {4, 16} <= found


class _Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 6, batch_first=True)
        self.last = nn.Linear(6, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.last(self.lstm(inputs)[0][:, -1])  # type: ignore[no-any-return]


def _operations(model: FlatModel) -> int:
    """Those of the layers' outputs, each a product with all weights that lead to it."""
    total, module = 0, model.replica(torch.device("cpu")).module

    def count(layer: nn.Module, inputs: Any, output: Tensor) -> None:
        nonlocal total
        assert isinstance(layer, nn.Conv2d | nn.Linear)
        total += 2 * output.numel() * layer.weight[0].numel()

    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(count)
    module(torch.zeros(1, *model.feature_shape))
    return total


def test_a_gpu_takes_the_whole_cohort_or_equal_parts_whose_peaks_fit() -> None:
    asked: list[int] = []

    def peak(clients: int) -> int:
        asked.append(clients)
        return (100 + clients) * MIB

    # Nine tenths of what 2 GiB for libraries, and the data, leave: 1100 MiB hold 1000 clients and what is there anyway.
    assert cuda_chunk(peak, 1000, memory=(2048 + 500 + 1223) * MIB, resident=500 * MIB) == 1000
    assert cuda_chunk(peak, 1000, memory=(2048 + 500 + 1222) * MIB, resident=500 * MIB) == 500  # 999 would fit
    for room in (101, 102, 130, 250, 333, 600, 1099):
        chunk = cuda_chunk(peak, 1000, memory=2048 * MIB + -(-10 * room * MIB // 9), resident=0)
        blocks = -(-1000 // chunk)
        assert 100 + chunk <= room
        assert 100 + -(-1000 // (blocks - 1)) > room  # fewer blocks would not fit
    assert cuda_chunk(peak, 1000, memory=MIB, resident=0) == 1
    asked.clear()
    assert cuda_chunk(peak, 0, memory=MIB, resident=0) == 1
    assert asked == []


def stopwatch(
    seconds: Callable[[int], float], calls: list[tuple[int, int]] | None = None
) -> Callable[[int, int], float]:
    """A clock that shows what a function of the chunk says, for each step."""

    def measure(chunk: int, steps: int) -> float:
        if calls is not None:
            calls.append((chunk, steps))
        return seconds(chunk) * steps

    return measure


def test_the_fastest_round_wins_where_blocks_that_do_not_fill_the_threads_are_waited_for() -> None:
    def dispatch_and_cache(chunk: int) -> float:
        return 0.001 + 0.0001 * chunk + (0.0003 * chunk if chunk > 13 else 0)

    # A round takes 11 ms; 2 · 2.3, 3 · 1.9, 4 · 1.7 and 5 · 1.5 ms.
    assert fastest_chunk((25, 13, 9, 7, 5), 50, 2, 3, stopwatch(dispatch_and_cache)) == 13
    assert fastest_chunk((25, 13, 9, 7, 5), 50, 2, 3, stopwatch(lambda chunk: 0.001 + 0.0001 * chunk)) == 25
    # Blocks of 20 are fastest by the client, but of three one thread computes two.
    uneven = {25: 25.0, 20: 17.0, 13: 14.0}
    assert fastest_chunk((25, 20, 13), 50, 2, 1, stopwatch(lambda chunk: uneven[chunk] * 1e-3)) == 25


@pytest.mark.parametrize(("gain", "chosen"), [(0.95, 20), (0.91, 20), (0.89, 10)])
def test_the_first_candidate_yields_only_to_one_that_is_clearly_faster(gain: float, chosen: int) -> None:
    seconds = {20: 0.01, 10: 0.005 * gain}
    assert fastest_chunk((20, 10), 20, 1, 1, stopwatch(lambda chunk: seconds[chunk])) == chosen


@pytest.mark.parametrize("which", [1, 2, 3])
def test_one_disturbed_measurement_decides_nothing(which: int) -> None:
    calls: list[tuple[int, int]] = []

    def disturbed(chunk: int) -> float:
        if chunk == 20:
            return 0.02 if calls.count((20, 1)) == which else 0.01
        return 0.0052

    assert fastest_chunk((20, 10), 20, 1, 1, stopwatch(disturbed, calls)) == 20
    assert calls.count((20, 1)) == 3


def test_what_is_hopeless_is_measured_once() -> None:
    calls: list[tuple[int, int]] = []
    seconds = {40: 0.02, 20: 0.008, 10: 0.009}
    assert fastest_chunk((40, 20, 10), 40, 1, 1, stopwatch(lambda chunk: seconds[chunk], calls)) == 20
    assert calls[2:].count((10, 1)) == 1
    assert calls.count((20, 1)) == calls.count((40, 1)) == 3


def test_slow_steps_are_measured_fewer_at_a_time_and_too_slow_ones_not_at_all() -> None:
    calls: list[tuple[int, int]] = []
    chunks = (8, 4, 2)
    assert fastest_chunk(chunks, 8, 1, 100, stopwatch(lambda chunk: 0.01 * chunk, calls)) == 8
    # One pass at s steps takes 0.14 s seconds; 2 steps fit into half a second and 4 do not.
    assert calls[:4] == [(2, 1), (2, 1), (2, 2), (2, 4)]
    assert {steps for _, steps in calls[4:]} == {2}
    assert sum(0.01 * chunk * steps for chunk, steps in calls) < 1.5

    calls.clear()
    assert fastest_chunk(chunks, 8, 1, 100, stopwatch(lambda chunk: float(chunk), calls)) == 8
    assert calls == [(2, 1), (2, 1)]


def test_after_a_second_what_is_known_must_do() -> None:
    calls: list[tuple[int, int]] = []
    seconds = {40: 0.9, 20: 0.4, 1: 0.001}  # the smallest block does not foretell the others
    assert fastest_chunk((40, 20, 1), 40, 1, 1, stopwatch(lambda chunk: seconds[chunk], calls)) == 1
    assert calls.count((40, 1)) == calls.count((20, 1)) == 1


def test_one_candidate_needs_no_clock() -> None:
    def never(chunk: int, steps: int) -> float:
        raise AssertionError("measured")

    assert fastest_chunk((25,), 50, 2, 10, never) == 25
