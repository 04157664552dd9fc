"""Uplinks of clients: of one round, over the pieces of a slot, and to several receivers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition


@dataclass(frozen=True, eq=False)
class ClientLinks:
    """Channels of n clients, and what is known of the clients; all arrays (n, ...).

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

    def __len__(self) -> int:
        return len(self.channel)

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        """The links of some clients, by position or mask; of all, these."""
        if index.dtype == np.bool_ and index.all():
            return self
        return type(self)(**{name: values[index] for name, values in vars(self).items()})


@dataclass(frozen=True, eq=False)
class Links(ClientLinks):
    """The uplinks of one round when transmit gains are chosen: one number a client in every array (n,)."""

    def __post_init__(self) -> None:
        columns = vars(self)
        for name, values in columns.items():
            if values.shape != self.channel.shape or values.ndim != 1:  # its message is not made in vain in every slot
                raise ValueError(f"{name} has shape {values.shape}, channel has {self.channel.shape}")
        for name in ("weight", "power_budget", "path_gain", "mean_estimate_power"):
            precondition((columns[name] > 0).all(), f"{name} must be positive for every client")
        precondition(
            np.isfinite(self.channel).all() and np.isfinite(self.estimate).all(),
            "channel and estimate must be finite for every client",
        )

    def in_deep_fade(self, threshold: float) -> NDArray[np.bool_]:
        """Mask (n,) of clients with |ĥ|²/E|ĥ|² below ``threshold`` g; Rayleigh fading: Pr = 1 − e^{−g} at any β."""
        return np.abs(self.estimate) ** 2 < threshold * self.mean_estimate_power


@dataclass(frozen=True, eq=False)
class SlotLinks(ClientLinks):
    """Links of n clients over a slot of T blocks and F groups of subcarriers, received with A antennas.

    Channels are (n, T, F, A), power budgets those of the whole slot. Estimates (n, R, F, A) are R each: 1, that of the
    slot's start, or T.
    """

    def __post_init__(self) -> None:
        once = (len(self), 1, *self.channel.shape[2:])
        precondition(
            self.channel.ndim == 4 and self.estimate.shape in (self.channel.shape, once),
            f"estimates {self.estimate.shape} do not go with channels {self.channel.shape}",
        )

    @property
    def pieces(self) -> int:
        """T."""
        return int(self.channel.shape[1])

    def combined(self, weights: NDArray[np.complex128]) -> SlotLinks:
        """The links behind a combiner: fᴴh and fᴴĥ, as those of one antenna.

        Args:
            weights: f (n, R, F, A) of the receiver of each client.
        """
        gain = (np.abs(weights) ** 2).sum(axis=3).mean(axis=(1, 2))
        return replace(
            self,
            channel=(weights.conj() * self.channel).sum(axis=3, keepdims=True),
            estimate=(weights.conj() * self.estimate).sum(axis=3, keepdims=True),
            mean_estimate_power=gain * self.mean_estimate_power,
        )

    def rows(self) -> Links:
        """A link (n R F,) for each client, estimate and group of subcarriers, those of a client side by side.

        Where an estimate serves several blocks, h is that of the block in which the client arrives loudest: what bounds
        the received signal holds for all of them.

        Raises:
            ValueError: if the antennas are not combined.
        """
        estimate = self.estimate.squeeze(axis=3)
        count, estimates, subcarriers = estimate.shape
        channel = self.channel
        if self.pieces > estimates:
            served = channel.reshape(count, estimates, self.pieces // estimates, subcarriers)
            channel = np.take_along_axis(served, np.abs(served).argmax(axis=2)[:, :, None], axis=2)
        each = ("weight", "power_budget", "path_gain", "mean_estimate_power")
        return Links(
            channel=channel.ravel(),
            estimate=estimate.ravel(),
            **{name: np.repeat(getattr(self, name), estimates * subcarriers) for name in each},
        )


@dataclass(frozen=True, eq=False)
class CellLinks:
    """Links of n clients to C receivers.

    Attributes:
        serving: (n,) the receiver that serves each client.
        own: the links of the n clients to it.
        channel: (n, C, T, F, A) channels to all of them.
    """

    serving: NDArray[np.int64]
    own: SlotLinks
    channel: NDArray[np.complex128]

    def take(self, index: NDArray[np.int64]) -> CellLinks:
        """The links of some clients, by position."""
        return CellLinks(self.serving[index], self.own.take(index), self.channel[index])

    def combined(self, weights: NDArray[np.complex128]) -> CellLinks:
        """The links behind the combiners: fᴴh of each receiver, as those of one antenna.

        Args:
            weights: f (C, R, F, A) of the receivers.
        """
        channel = (weights.conj() * self.channel).sum(axis=4, keepdims=True)
        return CellLinks(self.serving, self.own.combined(weights[self.serving]), channel)
