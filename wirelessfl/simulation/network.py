"""The radio network as the simulation sees it: who is registered, and what nature deals them in a round."""

from __future__ import annotations

import cmath
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.radio import FadingModel, Links, estimate_channel, mean_estimate_power
from wirelessfl.radio.csi import Estimator
from wirelessfl.streams import Streams

_JAMMER = np.zeros(1, dtype=np.int64)
"""The jammer has streams of its own, in which it is node 0: with or without it, clients see the same channels."""


@dataclass(frozen=True)
class Registry:
    """The registered clients: public constants fixed before the run.

    Attributes:
        samples: (K,) n_i.
        total_samples: |D| = Σ n_i.
        power_budget: P_i, the transmit energy allowed in a round, ‖x_i‖² ≤ P_i; the same for every client.
    """

    samples: NDArray[np.int64]
    total_samples: int
    power_budget: float

    @property
    def count(self) -> int:
        """K, the number of registered clients."""
        return len(self.samples)

    def weight(self, clients: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) p_i = n_i/|D|."""
        return self.samples[clients] / self.total_samples


@dataclass(frozen=True)
class JammerLink:
    """The jammer's channel in one round: h_CJ, and the estimate by which it turns its phase."""

    channel: complex
    estimate: complex

    @property
    def phase_error(self) -> float:
        """θ = ∠(h_CJ/ĥ_CJ) in radians."""
        return cmath.phase(self.channel / self.estimate)


@dataclass(frozen=True)
class Network:
    """Draws the channels of a round; stateless, every draw comes from the named streams.

    Attributes:
        registry: the registered clients.
        fading: the law of h.
        csi_error_std: standard deviation of the estimation error relative to √β.
        csi_estimator: "ls" or "mmse".
        streams: randomness of the run.
    """

    registry: Registry
    fading: FadingModel
    csi_error_std: float
    csi_estimator: Estimator
    streams: Streams

    def links(self, clients: NDArray[np.int64], round_index: int) -> Links:
        """The uplinks of ``clients`` in a round."""
        channel, estimate = self._channel("fading", clients, round_index)
        path_gain = np.ones(len(clients))
        return Links(
            channel=channel,
            estimate=estimate,
            weight=self.registry.weight(clients),
            power_budget=np.full(len(clients), self.registry.power_budget),
            path_gain=path_gain,
            mean_estimate_power=mean_estimate_power(path_gain, self.csi_error_std, self.csi_estimator),
        )

    def jammer_link(self, round_index: int) -> JammerLink:
        """The link of an external jammer."""
        channel, estimate = self._channel("jammer_fading", _JAMMER, round_index)
        return JammerLink(complex(channel[0]), complex(estimate[0]))

    def _channel(
        self, purpose: str, nodes: NDArray[np.int64], round_index: int
    ) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """(n,) channels and their estimates."""
        channel = self.fading.draw(self.streams.nodes(purpose, round_index, nodes))
        error = self.streams.nodes(f"{purpose}/csi_error", round_index, nodes)
        estimate = estimate_channel(channel, np.ones(len(nodes)), self.csi_error_std, self.csi_estimator, error)
        return channel, estimate
