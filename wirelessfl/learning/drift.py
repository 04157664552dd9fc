"""Client drift: the spread of local updates about their mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class ClientDrift:
    """Root mean square distance of n updates from their mean, √(1/n Σ ‖Δ_i − Δ̄‖²), from blocks of them.

    Sums of squares about the mean are merged block by block (Chan, Golub and LeVeque 1979), which loses no digits where
    the drift is small beside the updates. One vector (d,) is kept, whatever the number of clients.

    Attributes:
        count: n so far.
        mean: (d,) Δ̄ in double precision, on the device of the updates; None before the first block.
        squares: Σ ‖Δ_i − Δ̄‖².
    """

    count: int = 0
    mean: Tensor | None = None
    squares: float = 0.0

    def add(self, updates: Tensor) -> None:
        """Count the updates (k, d) of a block; they are only read."""
        block = len(updates)
        if block == 0:
            return
        own = updates.mean(dim=0, dtype=torch.float64)
        squares = sum(float((update.double() - own).square_().sum()) for update in updates)
        if self.mean is None:
            self.count, self.mean, self.squares = block, own, squares
            return
        total, apart = self.count + block, own - self.mean
        self.squares += squares + float(apart.square().sum()) * self.count * block / total
        self.mean += apart * (block / total)
        self.count = total

    @property
    def rms(self) -> float:
        """The root mean square distance; NaN without updates."""
        return math.sqrt(self.squares / self.count) if self.count else math.nan
