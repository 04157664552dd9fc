"""Costs of a round of secure aggregation, by stage."""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.trace import SecAggStage

COLUMNS = ("messages_up", "bits_up", "messages_down", "bits_down", "seconds", "energy", "dropouts", "refused")


class StageCosts:
    """Sums per stage: messages and bits sent in either direction, seconds, joules, and who was not heard.

    A message counts when it begins to be sent, also where it is cut short or refused.

    Attributes:
        table: (stages,) float64 of each column.
    """

    def __init__(self) -> None:
        self.table: dict[str, NDArray[np.float64]] = {name: np.zeros(len(SecAggStage)) for name in COLUMNS}

    def uplink(self, stage: SecAggStage, bits: float) -> None:
        """A client begins to send."""
        self.add(stage, messages_up=1.0, bits_up=bits)

    def downlink(self, stage: SecAggStage, bits: float) -> None:
        """The server begins to send."""
        self.add(stage, messages_down=1.0, bits_down=bits)

    @property
    def energy(self) -> float:
        """Joules of all stages; NaN where watts are unknown."""
        return float(self.table["energy"].sum())

    def add(self, stage: SecAggStage, **amounts: float) -> None:
        """Addition to some columns."""
        for name, amount in amounts.items():
            self.table[name][stage] += amount
