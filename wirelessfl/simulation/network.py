"""The radio network as the simulation sees it: who is registered, and what nature deals them in a round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import Csi, FadingModel, Links
from wirelessfl.streams import Streams

JAMMER_NODE = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class Registry:
    """The registered clients, as arrays over K; public constants fixed before the run.

    Attributes:
        samples: (K,) n_i.
        power_budget: (K,) P_i, the transmit energy allowed in a round, ‖x_i‖² ≤ P_i.
    """

    samples: NDArray[np.int64]
    power_budget: NDArray[np.float64]

    @property
    def count(self) -> int:
        """K, the number of registered clients."""
        return len(self.samples)

    @property
    def total_samples(self) -> int:
        """|D|, the samples of all clients."""
        return int(self.samples.sum())

    @property
    def weight(self) -> NDArray[np.float64]:
        """(K,) p_i = n_i/|D|."""
        return self.samples / self.samples.sum()


@dataclass(frozen=True)
class JammerLink:
    """The jammer's channel in one round: h_CJ and the estimate it turns its phase by."""

    channel: complex
    estimate: complex
    path_gain: float = 1.0


@dataclass(frozen=True)
class Network:
    """Draws the channels of a round; stateless, every draw comes from the named streams."""

    registry: Registry
    fading: FadingModel
    csi: Csi
    streams: Streams

    def links(self, clients: NDArray[np.int64], round_index: int) -> Links:
        """The uplinks of ``clients`` in a round."""
        path_gain = np.ones(len(clients))
        channel = self.fading.draw(self.streams.nodes("fading", round_index, clients)) * np.sqrt(path_gain)
        samples = self.registry.samples[clients]
        return Links(
            channel=channel,
            estimate=self.csi.estimate(channel, path_gain, self.streams.nodes("csi_error", round_index, clients)),
            weight=samples / self.registry.total_samples,
            power_budget=self.registry.power_budget[clients],
            path_gain=path_gain,
        )

    def jammer_link(self, round_index: int) -> JammerLink:
        """The link of an external jammer, a node of its own with streams of its own."""
        channel = self.fading.draw(self.streams.nodes("jammer_fading", round_index, JAMMER_NODE))
        error = self.streams.nodes("jammer_csi_error", round_index, JAMMER_NODE)
        estimate = self.csi.estimate(channel, np.ones(1), error)
        return JammerLink(complex(channel[0]), complex(estimate[0]))
