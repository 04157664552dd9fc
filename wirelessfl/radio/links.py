"""The uplinks of one round, one row a client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Links:
    """What is known of the clients' uplinks when a round's transmit gains are chosen; all arrays (n,).

    Attributes:
        channel: h_i, path gain included.
        estimate: ĥ_i, what clients and server believe h_i to be.
        weight: p_i = n_i/|D|.
        power_budget: P_i, the normalised energy one round may cost: ‖x_i‖² <= P_i, or its mean under a power control
            that limits the average. May be infinite.
        path_gain: β_i = E|h_i|².
        mean_estimate_power: E|ĥ_i|², the reference of the deep-fade threshold.
    """

    channel: NDArray[np.complex128]
    estimate: NDArray[np.complex128]
    weight: NDArray[np.float64]
    power_budget: NDArray[np.float64]
    path_gain: NDArray[np.float64]
    mean_estimate_power: NDArray[np.float64]

    def __post_init__(self) -> None:
        columns = vars(self)
        for name, values in columns.items():
            if values.shape != self.channel.shape or values.ndim != 1:
                raise ValueError(f"{name} has shape {values.shape}, channel has {self.channel.shape}")
        for name in ("weight", "power_budget", "path_gain", "mean_estimate_power"):
            if not (columns[name] > 0).all():
                raise ValueError(f"{name} must be positive for every client")
        if not (np.isfinite(self.channel).all() and np.isfinite(self.estimate).all()):
            raise ValueError("channel and estimate must be finite for every client")

    def __len__(self) -> int:
        return len(self.channel)

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Links:
        """The links of some clients, by position or mask; of all, these."""
        if index.dtype == np.bool_ and index.all():
            return self
        return Links(**{name: values[index] for name, values in vars(self).items()})

    def in_deep_fade(self, threshold: float) -> NDArray[np.bool_]:
        """Which clients (n,) see |ĥ|²/E|ĥ|² below ``threshold`` g; for Rayleigh fading Pr = 1 − e^{−g} at any β."""
        return np.abs(self.estimate) ** 2 < threshold * self.mean_estimate_power
