"""Several base stations in one band: every client's signal reaches all of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.memory import Memory
from wirelessfl.radio.network import ChannelSource, Network


@dataclass(frozen=True)
class CellularNetwork(Network):
    """A network with base stations beside the one in the origin.

    Shadowing and fading of a client's links to different base stations are independent.

    Attributes:
        others: channels to the further base stations; positions are shared with those to the first.
        sites: (C, 2) positions of all base stations in metres.
    """

    others: tuple[ChannelSource, ...]
    sites: NDArray[np.float64]

    @property
    @override
    def sources(self) -> tuple[ChannelSource, ...]:
        return (self.clients, *self.others)

    @override
    def memories(self) -> dict[str, Memory]:
        """The parts that remember, by name; the places are remembered once."""
        further = [source.memories().items() for source in self.others]
        return {
            **super().memories(),
            **{name: memory for items in further for name, memory in items if not name.endswith("placement")},
        }
