"""The base of schemes over the air that read the received signal themselves, and what they are told of a slot."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio.links import SlotLinks
from wirelessfl.radio.modulation.base import Array
from wirelessfl.radio.power_control import TransmitPlan


@dataclass(frozen=True, eq=False)
class Outgoing:
    """A block of updates before it is sent.

    Attributes:
        updates: Δ (k, d), NumPy or torch.
        norms: ‖Δ_i‖ (k,).
        clip: τ.
        clients: (k,) numbers of the clients in the slot.
        round_index: from 1.
    """

    updates: Array
    norms: NDArray[np.float64]
    clip: float
    clients: NDArray[np.int64]
    round_index: int


@dataclass(frozen=True, eq=False)
class Heard:
    """What a receiver knows of a slot besides the signal.

    Attributes:
        plan: what the server announced.
        links: of the k senders to all antennas, with estimates (k, R, F, A); a scheme without CSI leaves them alone.
        sends: (k, R, F) who sends in which block and group of subcarriers.
        ranges: first and one past the last symbol of each of the T·F blocks and groups.
        dimension: d, coordinates of an update.
        noise_std: σ_c of each real dimension at each antenna.
        round_index: from 1.
    """

    plan: TransmitPlan
    links: SlotLinks
    sends: NDArray[np.bool_]
    ranges: tuple[tuple[int, int], ...]
    dimension: int
    noise_std: float
    round_index: int


class Waveform(ABC):
    """Base of the schemes that choose their own symbols and make the update from the received signal by themselves.

    What `decode` returns is the step as it is: the server does not divide it by the weight of the senders. The
    received signal is that behind the combiner, n real numbers, or with ``at_antennas`` the complex one of every
    antenna. One sample may change all symbols of a client, and the ledger counts the whole signal for it.
    """

    at_antennas: ClassVar[bool] = False
    """Whether `decode` reads y (A, n), complex, at all antennas, and not Re fᴴy (n,) behind the combiner."""

    signals: ClassVar[Literal["opposite", "non_negative"]] = "opposite"
    """Whether two signals of a client can be opposite, at a distance of 2τ, or have no negative product: √2 τ."""

    spreads: ClassVar[bool] = False
    """Whether a coordinate is in all symbols, and not in those of its own place."""

    private_scale: ClassVar[bool] = False
    """Whether a common scale of the symbols of one client follows from its data, so that no ε is accounted."""

    def coordinates_sent(self, dimension: int) -> int:
        """The number of largest coordinates of an update that are sent, where the rest waits for later rounds; or d."""
        return dimension

    @abstractmethod
    def symbol_count(self, dimension: int) -> int:
        """n, the real symbols of an update of d coordinates; with I/Q packing two share a channel use."""

    @abstractmethod
    def encode(self, outgoing: Outgoing) -> tuple[Array, NDArray[np.float64]]:
        """The symbols (k, n) of a block of clients, in the kind of the updates, and their norms (k,), at most τ."""

    @abstractmethod
    def decode(self, received: NDArray[Any], heard: Heard) -> NDArray[np.float64]:
        """The step g (d,) of the model from the received signal with its noise, which may be changed in place."""
