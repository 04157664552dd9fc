"""All that lives from one round to the next: one explicit value, and exactly what the checkpoint holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass
class SimulationState:
    """The state between two rounds.

    Attributes:
        parameters: (d,) float32, the global model.
        round_index: rounds finished.
        clock: simulated time in ticks.
        wall_time: seconds of real time spent so far.
        energy_j: joules spent so far (NaN where watts are unknown).
        ledger: the privacy spent so far, as the ledger serialises itself.
        batteries: joules drawn from the battery of each client that has drawn any: ``clients`` and ``used_j``.
    """

    parameters: NDArray[np.float32]
    round_index: int = 0
    clock: int = 0
    wall_time: float = 0.0
    energy_j: float = 0.0
    ledger: dict[str, NDArray[Any]] = field(default_factory=dict)
    batteries: dict[str, NDArray[Any]] = field(default_factory=dict)

    def as_mapping(self) -> dict[str, Any]:
        """The state as nested mappings of arrays and numbers, for the checkpoint."""
        return dict(vars(self))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> SimulationState:
        """The inverse of ``as_mapping``."""
        return cls(**values)
