"""The digital links of one round, each as it is when its client begins to transmit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wirelessfl.simulation.clock import seconds
from wirelessfl.simulation.propagation import Moment
from wirelessfl.simulation.round import Round
from wirelessfl.simulation.uplinks.digital_links import DigitalLinks, Link


class RoundLinks:
    """The links of the clients of a round.

    Where a channel stays as it is through a round all links are drawn at once; where it does not, each is drawn when
    its client begins to transmit, anew for each transmission.
    """

    def __init__(
        self, links: DigitalLinks, this: Round, positions: NDArray[np.int64], share: float | None = None
    ) -> None:
        """The links of the clients at ``positions``.

        Args:
            links: what channels carry.
            this: the round.
            positions: (n,) who may send.
            share: the part B_i/B of the band that each has; by default they divide it among themselves.
        """
        self._links = links
        self._this = this
        self._share = 1.0 / max(1, len(positions)) if share is None else share
        self._settled: dict[int, Link] | None = None
        self._latest: dict[int, tuple[int, int, Link]] = {}
        if not links.vary:
            drawn = links.draw(this, positions, self._share)
            self._settled = dict(zip(positions.tolist(), drawn, strict=True))

    def foreseen(self, position: int) -> Link | None:
        """The link of a client before it transmits; None where that is not known yet."""
        return None if self._settled is None else self._settled[position]

    def at(self, position: int, now: int) -> Link:
        """The link of a client that begins to transmit at ``now`` ticks; asked twice at one instant, the same."""
        if self._settled is not None:
            return self._settled[position]
        begun = 0
        if position in self._latest:
            last, begun, link = self._latest[position]
            if last == now:
                return link
            begun += 1
        moment = Moment(self._this.index, seconds(now), begun)
        (link,) = self._links.draw(self._this, np.array([position]), self._share, moment)
        self._latest[position] = (now, begun, link)
        return link
