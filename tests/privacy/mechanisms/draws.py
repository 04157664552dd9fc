"""Many independent draws of a mechanism's noise."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from tests.statistics import shifted
from wirelessfl.privacy.clipping.conformance import ExampleStep
from wirelessfl.privacy.mechanisms import NoiseMechanism
from wirelessfl.streams import Streams


def example_step(clients: int = 1, step: int = 0, round_index: int = 1, divisor: float = 5.0) -> ExampleStep:
    divisors = torch.full((clients,), divisor, dtype=torch.float64)
    return ExampleStep(Streams(shifted(8)), round_index, step, np.arange(clients), divisors)


def draws(
    mechanism: NoiseMechanism, count: int, dimension: int, sensitivity: float, step: int = 0, round_index: int = 1
) -> NDArray[np.float64]:
    """(count, dimension) noise, a row a client."""
    total = torch.zeros(count, dimension, dtype=torch.float64)
    mechanism.add(total, torch.full((count,), sensitivity, dtype=torch.float64), example_step(count, step, round_index))
    return total.numpy()
