"""The link of a jammer with one or several antennas to the antennas of a receiver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.channel_source import Channels
from wirelessfl.radio.links import SlotLinks

JAMMER = np.zeros(1, dtype=np.int64)
"""The jammer in the streams of its links, which are its own: with or without it, clients see the same channels."""


@dataclass(frozen=True, eq=False)
class JammerLink:
    """The channels of a jammer over a slot, each of whose N antennas sends noise of its own with 1/N of the power.

    Attributes:
        channel: h_CJ (T, F, A, N).
        estimate: ĥ_CJ (R, F, A, N), by which it turns its phase: of the slot's start, or of each block.
        path_gain: β_CJ.
    """

    channel: NDArray[np.complex128]
    estimate: NDArray[np.complex128]
    path_gain: float

    @classmethod
    def of(cls, antennas: Sequence[Channels | SlotLinks]) -> JammerLink:
        """The link of antennas at the same place, each the first node of its channels."""
        channel, estimate = (
            np.stack([found[0] for found in each], axis=3)
            for each in ([one.channel for one in antennas], [one.estimate for one in antennas])
        )
        return cls(channel, estimate, float(antennas[0].path_gain[0]))

    @property
    def count(self) -> int:
        """N."""
        return int(self.channel.shape[3])

    @cached_property
    def parts(self) -> NDArray[np.complex128]:
        """h_CJ/√N (T, F, A, N): what arrives of each antenna where all of them together send with α_CJ = 1."""
        return self.channel / math.sqrt(self.count)

    @cached_property
    def estimated_parts(self) -> NDArray[np.complex128]:
        """ĥ_CJ/√N (R, F, A, N)."""
        return self.estimate / math.sqrt(self.count)

    def combined(self, weights: NDArray[np.complex128]) -> JammerLink:
        """The link behind a combiner f (R, F, A): fᴴh and fᴴĥ, as those to one antenna."""
        conjugate = weights.conj()[..., None]
        channel = (conjugate * self.channel).sum(axis=2, keepdims=True)
        return JammerLink(channel, (conjugate * self.estimate).sum(axis=2, keepdims=True), self.path_gain)

    @cached_property
    def equivalent(self) -> JammerLink:
        """The link (T, F, A, 1) of one antenna that is heard as loudly at each antenna: |h|² = Σ_n |h_n|²/N."""
        if self.count == 1:
            return self
        heard = (np.linalg.norm(parts, axis=3, keepdims=True) for parts in (self.parts, self.estimated_parts))
        channel, estimate = (each.astype(np.complex128) for each in heard)
        return JammerLink(channel, estimate, self.path_gain)

    @property
    def phase_error(self) -> NDArray[np.float64]:
        """θ = ∠(h_CJ/ĥ_CJ) (T, F, A, N) in radians."""
        return np.angle(self.channel / self.estimate)

    @property
    def weakest_estimate(self) -> complex:
        """The estimate of least magnitude: noise that is enough with it is enough in all pieces."""
        return complex(self.estimate.flat[np.abs(self.estimate).argmin()])
