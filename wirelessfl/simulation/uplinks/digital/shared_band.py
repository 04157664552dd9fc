"""The links of a round whose clients share the band at every instant, evenly among those that send."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wirelessfl.radio import DigitalLinks, Link, Moment
from wirelessfl.radio.shared_band import shared_band_ends
from wirelessfl.simulation.cell import TrainingTimes
from wirelessfl.simulation.medium import TICKS_PER_SECOND, all_seconds
from wirelessfl.simulation.records import Round
from wirelessfl.simulation.uplinks.digital.round_links import draw_links


class SharedBand:
    """Links of all clients of a round, known when it begins: training times are, and nobody waits for the channel.

    What begins after the server has stopped waiting changes nothing before that.
    """

    def __init__(
        self,
        links: DigitalLinks,
        this: Round,
        times: TrainingTimes,
        model_arrives: int,
        bits: int,
        grant_ticks: int = 0,
    ) -> None:
        """The links of the clients that train.

        Args:
            links: what channels carry.
            this: the round.
            times: of their training.
            model_arrives: when the model arrives, in ticks.
            bits: of each upload.
            grant_ticks: from the end of training to the grant of a part of the band.
        """
        waits = times.ends + grant_ticks
        share = 1.0 / max(1, len(times.nodes))
        begins = all_seconds([model_arrives + wait for wait in waits.tolist()])
        moment = Moment(this.index, begins) if links.vary else this.moment
        drawn = draw_links(links, this, times.positions, share, moment, bits)
        sends = np.flatnonzero(np.array([link.sends for link in drawn], dtype=np.bool_) & ~times.crashes)
        if len(sends):
            since = waits[sends] / TICKS_PER_SECOND
            at = Moment(this.index, begins[sends]) if links.vary else moment
            ends = shared_band_ends(since, bits, links.rates_at_share(this.clients[times.positions[sends]], at))
            for row, seconds_per_bit in zip(sends.tolist(), ((ends - since) / bits).tolist(), strict=True):
                drawn[row] = replace(drawn[row], seconds_per_bit=seconds_per_bit)
        self._links: dict[int, Link] = dict(zip(times.positions.tolist(), drawn, strict=True))

    def foreseen(self, position: int) -> Link:
        """The link of a client."""
        return self._links[position]

    def at(self, position: int, now: int, bits: int | None = None) -> Link:
        """The link of a client that begins to transmit; the instant and the size of the upload are known."""
        return self._links[position]
