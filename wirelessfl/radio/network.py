"""The radio network: registered clients, and their channel realisations at a moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wirelessfl.memory import Memory
from wirelessfl.radio.channel_source import Channels, ChannelSource
from wirelessfl.radio.downlink import FadingDownlink
from wirelessfl.radio.impairments import (
    LateArrival,
    timing_offsets,
)
from wirelessfl.radio.jammer_link import JAMMER, JammerLink
from wirelessfl.radio.links import CellLinks, SlotLinks
from wirelessfl.radio.observer import Observer
from wirelessfl.radio.propagation import Moment
from wirelessfl.radio.slot_schedule import AT_ONCE, Instants
from wirelessfl.streams import Streams

# Clients whose channels are drawn together where all registered ones send pilots, which bounds memory
_AT_ONCE = 1 << 16
# Transmissions of a round that draw errors of estimates of their own come before it, see ``ChannelSource``
_PILOTS_OF_ALL = 4095


@dataclass(frozen=True)
class Registry:
    """The registered clients: public constants fixed before the run.

    Attributes:
        samples: (K,) n_i.
        total_samples: |D| = Σ n_i.
        power_budget: P_i, the transmit energy allowed in a round, ‖x_i‖² ≤ P_i or, as the power control limits the
            average, its mean; the same for every client.
    """

    samples: NDArray[np.int64]
    total_samples: int
    power_budget: float

    @property
    def count(self) -> int:
        """K, the number of registered clients."""
        return len(self.samples)

    @cached_property
    def occurring_samples(self) -> NDArray[np.int64]:
        """Ascending distinct n_i above 0."""
        return np.unique(self.samples[self.samples > 0])

    def weight(self, clients: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) p_i = n_i/|D|."""
        return self.samples[clients] / self.total_samples


@dataclass(frozen=True)
class Network:
    """Channel realisations of registered clients and jammer; every draw comes from the named streams.

    Attributes:
        registry: the registered clients.
        clients: channels of the clients.
        jammer: channels of an external jammer, of its first antenna.
        streams: randomness of the run.
        others: channels to base stations beside the one in the origin, of the same positions and independent draws.
        sites: (C, 2) positions of all base stations in metres; None for a single one, which is the server itself.
        observer: channels to an external observer; None without one.
        downlink: whom a broadcast of the model reaches; None for everybody.
        further_jammer_antennas: (N − 1,) channels of an external jammer's further antennas, from the same place, of
            independent draws.
    """

    registry: Registry
    clients: ChannelSource
    jammer: ChannelSource
    streams: Streams
    others: tuple[ChannelSource, ...] = ()
    sites: NDArray[np.float64] | None = None
    observer: Observer | None = None
    downlink: FadingDownlink | None = None
    further_jammer_antennas: tuple[ChannelSource, ...] = ()

    def slot_links(self, clients: NDArray[np.int64], moment: Moment, instants: Instants = AT_ONCE) -> SlotLinks:
        """The uplinks of ``clients`` over a slot; moments of successive calls do not go back in time."""
        return self.as_links(clients, self.clients.channels(clients, moment, instants))

    @property
    def sources(self) -> tuple[ChannelSource, ...]:
        """(C,) channels of the clients to each base station."""
        return (self.clients, *self.others)

    def cell_links(self, clients: NDArray[np.int64], moment: Moment, instants: Instants = AT_ONCE) -> CellLinks:
        """The links of ``clients`` over a slot, each served by the base station with the largest path gain."""
        found = [source.channels(clients, moment, instants) for source in self.sources]
        of_all = {name: np.stack([getattr(one, name) for one in found], axis=1) for name in vars(found[0])}
        serving, rows = of_all["path_gain"].argmax(axis=1), np.arange(len(clients))
        own = Channels(**{name: values[rows, serving] for name, values in of_all.items()})
        return CellLinks(serving, self.as_links(clients, own), of_all["channel"])

    def pilot_gains(self, moment: Moment) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """|ĥ_i|² (K,) of all registered clients at their receivers at an instant, mean over band and antennas; E|ĥ_i|².

        Where channels stay the same over a round, these are the estimates of the round's transmissions. Where they
        change, later ones have other channels and errors of their own.
        """
        if self.clients.varies:
            moment = replace(moment, transmission=_PILOTS_OF_ALL)
        gain, mean = np.empty(self.registry.count), np.empty(self.registry.count)
        for first in range(0, self.registry.count, _AT_ONCE):
            some = slice(first, min(first + _AT_ONCE, self.registry.count))
            links = self.cell_links(np.arange(some.start, some.stop, dtype=np.int64), moment).own
            gain[some] = (np.abs(links.estimate) ** 2).mean(axis=(1, 2, 3))
            mean[some] = links.mean_estimate_power
        return gain, mean

    def as_links(self, clients: NDArray[np.int64], found: Channels) -> SlotLinks:
        """Channels of ``clients`` together with what is known of the clients."""
        return SlotLinks(
            channel=found.channel,
            estimate=found.estimate,
            weight=self.registry.weight(clients),
            power_budget=np.full(len(clients), self.registry.power_budget),
            path_gain=found.path_gain,
            mean_estimate_power=found.mean_estimate_power,
        )

    def jammer_link(self, moment: Moment, instants: Instants = AT_ONCE) -> JammerLink:
        """The link of an external jammer."""
        return JammerLink.of([each.channels(JAMMER, moment, instants) for each in self.jammer_antennas])

    @property
    def jammer_antennas(self) -> tuple[ChannelSource, ...]:
        """(N,) channels of the antennas of an external jammer."""
        return (self.jammer, *self.further_jammer_antennas)

    def late_arrival(self, clients: NDArray[np.int64], round_index: int) -> LateArrival | None:
        """Late arrival of clients; None where all are synchronous."""
        impairments = self.clients.impairments
        if impairments.max_offset == 0.0:
            return None
        stream = self.streams.nodes("timing_offset", round_index, clients)
        return LateArrival(timing_offsets(impairments.max_offset, stream), impairments.subcarriers)

    def last_distances(self, clients: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) metres to the base station when a client was last heard; NaN where there are no places."""
        return self.clients.large_scale.last_distances(clients)

    def memories(self) -> dict[str, Memory]:
        """The parts that remember, by name; the places of clients are remembered once."""
        own = {**self.clients.memories(), **self.jammer.memories()}
        listening = () if self.observer is None else self.observer.sources
        downlink = {} if self.downlink is None else self.downlink.memories()
        further = (item for source in (*self.others, *listening) for item in source.memories().items())
        known = {**own, **downlink, **{name: memory for name, memory in further if not name.endswith("placement")}}
        # Antennas of one jammer share all but their fading
        of_jammer = (*self.further_jammer_antennas, *(() if self.observer is None else self.observer.jammer[1:]))
        own_fading = (item for source in of_jammer for item in source.memories().items() if "fading" in item[0])
        return known | dict(own_fading)
