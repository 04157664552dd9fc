"""Small-scale block fading: one complex gain of mean power 1 for each client and round."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from wirelessfl.errors import precondition
from wirelessfl.streams import NodeStream


@runtime_checkable
class FadingModel(Protocol):
    """A law of block fading: the gain is constant over one slot and has mean power 1.

    The path gain β_i is applied outside: h_i = sqrt(β_i) times the draw. A model takes all its randomness from the
    stream, row by row, so that a client's gain does not depend on who else is active.
    `wirelessfl.radio.conformance` checks a law of your own.
    """

    def draw(self, stream: NodeStream) -> NDArray[np.complex128]:
        """The gains (n,) of the n nodes of ``stream`` in its round, E|gain|² = 1."""


@runtime_checkable
class SpecularFading(FadingModel, Protocol):
    """A law with a part that the receiver knows: what is uncertain is scattered around it."""

    def specular(self, stream: NodeStream) -> NDArray[np.complex128]:
        """The known parts μ (n,) of the gains that `draw` gives for the same stream, |μ|² <= 1."""


@dataclass(frozen=True)
class Rayleigh:
    """Rich scattering without line of sight: CN(0, 1), variance 1/2 in each real dimension."""

    def draw(self, stream: NodeStream) -> NDArray[np.complex128]:
        """Independent CN(0, 1) gains (n,)."""
        return stream.complex_normal()[:, 0]


@dataclass(frozen=True)
class Static:
    """No fading: the gain is 1 in every round."""

    def draw(self, stream: NodeStream) -> NDArray[np.complex128]:
        """Ones (n,)."""
        return np.ones(len(stream.nodes), dtype=np.complex128)

    def specular(self, stream: NodeStream) -> NDArray[np.complex128]:
        """All of the gains (n,): nothing is scattered."""
        return self.draw(stream)


@dataclass(frozen=True)
class Rician:
    """A line of sight of uniform phase beside scattering: sqrt(K/(K+1)) e^{jφ} + CN(0, 1/(K+1)).

    Attributes:
        rician_k: K, the (linear) ratio of line-of-sight to scattered power; 0 is Rayleigh, gain by gain.
    """

    rician_k: float

    def __post_init__(self) -> None:
        precondition(0 <= self.rician_k < np.inf, f"rician_k must be finite and at least 0, not {self.rician_k}")

    def draw(self, stream: NodeStream) -> NDArray[np.complex128]:
        """Independent gains (n,)."""
        drawn = stream.complex_normal(2)
        return self.around(drawn[:, 0], np.angle(drawn[:, 1]))

    def around(
        self, scatter: NDArray[np.complex128], line_of_sight_phase: NDArray[np.float64]
    ) -> NDArray[np.complex128]:
        """The gain with this scattered part of mean power 1, for instance one that is correlated in time."""
        line_of_sight = np.sqrt(self.rician_k) * np.exp(1j * line_of_sight_phase)
        return np.asarray((line_of_sight + scatter) / np.sqrt(self.rician_k + 1.0))

    def specular(self, stream: NodeStream) -> NDArray[np.complex128]:
        """The lines of sight (n,) of `draw`, √(K/(K+1)) e^{jφ}."""
        phase = np.angle(stream.complex_normal(2)[:, 1])
        return self.around(np.zeros(len(phase), dtype=np.complex128), phase)


@dataclass(frozen=True)
class Nakagami:
    """Nakagami-m: the power follows Gamma(m, 1/m), the phase is uniform.

    Attributes:
        nakagami_m: m >= 1/2; 1 is Rayleigh, larger fades less, 1/2 is the worst the law allows.
    """

    nakagami_m: float

    def __post_init__(self) -> None:
        precondition(
            0.5 <= self.nakagami_m < np.inf, f"nakagami_m must be finite and at least 0.5, not {self.nakagami_m}"
        )

    def draw(self, stream: NodeStream) -> NDArray[np.complex128]:
        """Independent gains (n,), by inversion of the power's distribution."""
        uniform = stream.uniform(2)
        power = special.gammainccinv(self.nakagami_m, uniform[:, 0]) / self.nakagami_m
        return np.asarray(np.sqrt(power) * np.exp(2j * np.pi * uniform[:, 1]))


@dataclass(frozen=True, eq=False)
class Recorded:
    """Gains measured or recorded beforehand, one row a round and one column a node.

    Attributes:
        gains: (rounds, nodes) complex; NaN where nothing was recorded.
    """

    gains: NDArray[np.complex128]

    def draw(self, stream: NodeStream) -> NDArray[np.complex128]:
        """The recorded gains (n,) of the stream's round and nodes.

        Raises:
            ValueError: if the recording holds no gain for one of them.
        """
        rounds, nodes = self.gains.shape
        precondition(
            stream.round_index < rounds and not np.any(stream.nodes >= nodes),
            f"the recording holds {rounds} rounds of {nodes} nodes; round {stream.round_index} was requested",
        )
        found: NDArray[np.complex128] = self.gains[stream.round_index, stream.nodes]
        if np.any(np.isnan(found)):
            missing = int(stream.nodes[np.isnan(found)][0])
            raise ValueError(f"the recording holds no gain for node {missing} in round {stream.round_index}")
        return found
