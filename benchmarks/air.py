"""The air alone: the superposition of 1,000 updates of a million coordinates, and the receiver noise.

Updates arrive in blocks, as from local training; each number is read once, so that nothing is faster than reading
K · d floats from memory. Norms and clipping belong to local training and are measured with it.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import torch

from benchmarks.machine import best_seconds
from benchmarks.measurement import Case, Sample, Work
from wirelessfl.learning import ExecutionPlan
from wirelessfl.radio import Superposition
from wirelessfl.streams import Streams

GROUP = "air"
DIFFERENT_BLOCKS = 4  # taken in turn, together larger than the caches


def superposition_rate(clients: int, dimension: int, threads: int, iq_packing: bool) -> Sample:
    """Slots a second."""
    torch.set_num_threads(threads)
    chunk = min(ExecutionPlan().chunk, clients)
    blocks = torch.randn(DIFFERENT_BLOCKS, chunk, dimension)
    coefficients = np.full(chunk, 0.7 + 0.1j)
    started = time.perf_counter()
    slot = Superposition(dimension, iq_packing)
    for first in range(0, clients, chunk):
        k = min(chunk, clients - first)
        slot.add(blocks[first // chunk % DIFFERENT_BLOCKS, :k], coefficients[:k])
    slot.received()
    return Sample(1.0 / (time.perf_counter() - started))


def noise_rate(dimension: int, lasting_s: float) -> Sample:
    """Slots a second of receiver noise."""
    streams = Streams(0)
    return Sample(
        1.0 / best_seconds(lambda: streams.generator("receiver_noise", 1).standard_normal(dimension), lasting_s)
    )


def air_cases(threads: int, *, quick: bool) -> list[Case]:
    """Superposition with and without two coordinates a symbol, and noise."""
    clients, dimension, lasting_s = (32, 10_000, 0.01) if quick else (1_000, 1_000_000, 0.3)
    read_once, written_once = Work("copy", 4e-9 * clients * dimension), Work("copy", 8e-9 * dimension)
    size = f"{clients:,} × {dimension:,}"
    one_real, two_real = (partial(superposition_rate, clients, dimension, threads, packed) for packed in (False, True))
    noise = partial(noise_rate, dimension, lasting_s)
    return [
        Case(GROUP, f"superposition, {size}", "slots/s", one_real, read_once),
        Case(GROUP, f"superposition, {size}, I/Q packing", "slots/s", two_real, read_once),
        Case(GROUP, f"receiver noise, {dimension:,}", "slots/s", noise, written_once),
    ]
