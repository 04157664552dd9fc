"""Several base stations in one band: every client's signal reaches all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.memory import Memory
from wirelessfl.radio.network import Channels, ChannelSource, Network
from wirelessfl.radio.propagation import Moment
from wirelessfl.radio.slot_links import SlotLinks
from wirelessfl.radio.slot_schedule import AT_ONCE, Instants


@dataclass(frozen=True, eq=False)
class CellLinks:
    """Links of n clients to C base stations.

    Attributes:
        serving: (n,) the base station that serves each client.
        own: the links of the n clients to it.
        channel: (n, C, T, F, A) channels to all of them.
    """

    serving: NDArray[np.int64]
    own: SlotLinks
    channel: NDArray[np.complex128]

    def take(self, index: NDArray[np.int64]) -> CellLinks:
        """The links of some clients, by position."""
        return CellLinks(self.serving[index], self.own.take(index), self.channel[index])


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

    def cell_links(self, clients: NDArray[np.int64], moment: Moment, instants: Instants = AT_ONCE) -> CellLinks:
        """The links of ``clients`` over a slot, each served by the base station with the largest path gain."""
        found = [source.channels(clients, moment, instants) for source in (self.clients, *self.others)]
        path_gain = np.stack([channels.path_gain for channels in found], axis=1)
        serving = path_gain.argmax(axis=1)
        rows = np.arange(len(clients))
        of_all = {name: np.stack([getattr(one, name) for one in found], axis=1) for name in vars(found[0])}
        own = Channels(**{name: values[rows, serving] for name, values in of_all.items()})
        return CellLinks(serving, self.as_links(clients, own), of_all["channel"])

    def memories(self) -> dict[str, Memory]:
        """The parts that remember, by name; the places are remembered once."""
        further = [source.memories().items() for source in self.others]
        return {
            **super().memories(),
            **{name: memory for items in further for name, memory in items if not name.endswith("placement")},
        }
