"""Durations of local computing, of the broadcast of a model, and of an uplink slot, in seconds."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.streams import Streams

BITS_PER_PARAMETER = 32
# Operations of a training step on a sample over those of its forward pass alone
_PASSES = 3.0


@dataclass(frozen=True)
class Timing:
    """The clock constants of a scenario (DESIGN.md §7).

    Attributes:
        bandwidth_hz: B, real symbols a second on the air without I/Q packing.
        downlink_bps: bit/s of the error-free model broadcast.
        cycles_per_sample: processor cycles for one sample's forward and backward pass.
        cpu_hz: lowest and highest processor speed; a client's own is drawn once, uniformly between them.
        straggler_scale: mean of the exponential slow-down, as a share of the nominal compute time.
        switched_capacitance: κ, a cycle at f Hz costs κ f² joules; 0 where computing is not counted.
    """

    bandwidth_hz: float
    downlink_bps: float
    cycles_per_sample: float
    cpu_hz: tuple[float, float]
    straggler_scale: float
    switched_capacitance: float = 0.0

    def compute_time(
        self, processed: NDArray[np.int64], clients: NDArray[np.int64], round_index: int, streams: Streams
    ) -> NDArray[np.float64]:
        """(n,) seconds: shifted exponential, cycles·samples/f_i·(1 + straggler_scale·Exp(1)).

        Args:
            processed: (n,) samples that a client passes through its model in the round, a public constant.
            clients: (n,) client numbers.
            round_index: the round, from 1.
            streams: randomness of the run.
        """
        speed = self._speed(clients, streams)
        slowdown = 1.0 + self.straggler_scale * streams.nodes("straggler", round_index, clients).exponential()[:, 0]
        return self.cycles_per_sample * processed / speed * slowdown

    def compute_energy(
        self, processed: NDArray[np.int64], clients: NDArray[np.int64], streams: Streams
    ) -> NDArray[np.float64]:
        """(n,) joules of a whole local training: κ f_i² for each of its cycles; delays cost nothing."""
        return self.switched_capacitance * self._speed(clients, streams) ** 2 * self.cycles_per_sample * processed

    def assessment_time(
        self, samples: NDArray[np.int64], clients: NDArray[np.int64], round_index: int, streams: Streams
    ) -> NDArray[np.float64]:
        """(n,) seconds in which clients pass (n,) samples forward through a model, a third of the cycles of training.

        A backward pass takes about twice the operations of a forward one. Delays are drawn as in training.
        """
        delay = streams.nodes("straggler/query", round_index, clients).exponential()[:, 0]
        slowdown = 1.0 + self.straggler_scale * delay
        return self.cycles_per_sample * samples / _PASSES / self._speed(clients, streams) * slowdown

    def assessment_energy(
        self, samples: NDArray[np.int64], clients: NDArray[np.int64], streams: Streams
    ) -> NDArray[np.float64]:
        """(n,) joules of it."""
        return self.compute_energy(samples, clients, streams) / _PASSES

    def nominal_rate(
        self, processed: NDArray[np.int64], clients: NDArray[np.int64], streams: Streams
    ) -> NDArray[np.float64]:
        """(n,) local trainings a second of clients that process (n,) samples, without random delays."""
        return self._speed(clients, streams) / (self.cycles_per_sample * processed)

    def _speed(self, clients: NDArray[np.int64], streams: Streams) -> NDArray[np.float64]:
        # (n,) cycles a second of the clients' processors
        low, high = self.cpu_hz
        return low + (high - low) * streams.nodes("cpu_speed", 0, clients).uniform()[:, 0]

    def downlink_time(self, dimension: int) -> float:
        """Seconds to broadcast a model of ``dimension`` 32-bit parameters."""
        return BITS_PER_PARAMETER * dimension / self.downlink_bps

    def airtime(self, dimension: int, *, iq_packing: bool) -> float:
        """Seconds of an over-the-air slot: d/B, with both quadratures in use ⌈d/2⌉/B."""
        return (math.ceil(dimension / 2) if iq_packing else dimension) / self.bandwidth_hz
