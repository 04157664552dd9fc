"""The largest cohort of W3 that trains in one block."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from itertools import count

import numpy as np
import torch

from benchmarks.gpu.setting import Measure, Measured, Setting
from benchmarks.workloads import CLASSES, FEATURES, LEARNING_RATE, MOMENTUM
from wirelessfl.learning import (
    SGD,
    Dataset,
    Examples,
    ExecutionPlan,
    FlatModel,
    LocalTraining,
    PartitionedData,
    train_cohort,
)
from wirelessfl.learning.models import logistic
from wirelessfl.learning.partition import Partition
from wirelessfl.streams import Streams

_SAMPLES = 20
_STEPS_A_DECADE = 2
_HALVINGS = 4
"""After these the cohort that fits and the one that does not are less than a tenth apart."""


def largest(fits: Callable[[int], bool], first: int, last: int) -> int:
    """The largest number from ``first`` to ``last`` that was seen to fit; 0 where not even the first does.

    Numbers grow geometrically until one does not fit, then the gap is halved a few times, geometrically too.
    """
    good = bad = 0
    for step in count():
        trial = min(last, round(first * 10 ** (step / _STEPS_A_DECADE)))
        if not fits(trial):
            bad = trial
            break
        good = trial
        if good == last:
            break
    for _ in range(_HALVINGS if good and bad else 0):
        middle = round((good * bad) ** 0.5)
        if not good < middle < bad:
            break
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


def round_seconds(clients: int, setting: Setting) -> float:
    """Seconds of local training of one round with all clients in one block, the second of two rounds.

    Raises:
        torch.cuda.OutOfMemoryError: it does not fit.
    """
    device = setting.device
    inputs = torch.rand(clients * _SAMPLES, FEATURES, device=device)
    targets = torch.randint(0, CLASSES, (len(inputs),), device=device)
    train = Examples(inputs, targets)
    dataset = Dataset("random", train, Examples(inputs[:1], targets[:1]), tuple(map(str, range(CLASSES))))
    offsets = np.arange(clients + 1) * _SAMPLES
    population = PartitionedData(dataset, Partition(offsets, np.arange(len(inputs))))
    model = FlatModel(lambda: logistic((FEATURES,), CLASSES), (FEATURES,), CLASSES)
    training = LocalTraining(SGD(MOMENTUM), LEARNING_RATE, batch_size=_SAMPLES, epochs=1)
    plan, start = ExecutionPlan(device=device, chunk=clients), model.initial(0)
    seconds = 0.0
    for round_index in (1, 2):
        setting.synchronise()
        started = time.perf_counter()
        for _ in train_cohort(model, start, population, np.arange(clients), training, Streams(0), round_index, plan):
            pass
        setting.synchronise()
        seconds = time.perf_counter() - started
    return seconds


def measure_largest(setting: Setting) -> Measured:
    """The largest of 1,000 to 100,000 clients that fits, and the seconds of its round."""
    first, last = (10, 100) if setting.tiny else (1_000, 100_000)
    taken: dict[int, float] = {}

    def fits(clients: int) -> bool:
        try:
            taken[clients] = round_seconds(clients, setting)
        except torch.cuda.OutOfMemoryError:
            return False
        finally:
            gc.collect()  # what the error's frames held must not count against the next trial
            if setting.device == "cuda":
                torch.cuda.empty_cache()
        return True

    found = largest(fits, first, last)
    if not found:
        return Measured(failure=f"{first:,} clients do not fit in one block")
    detail = f"{found:,} clients fit in one block" + (", the most that were tried" if found == last else "")
    return Measured(taken[found], detail=detail)


WORKLOADS: dict[str, Measure] = {"W3, largest cohort": measure_largest}
