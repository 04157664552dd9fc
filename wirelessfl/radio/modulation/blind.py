"""Blind over-the-air computation: clients without channel knowledge, and a receiver that knows the sum of the channels.

Amiri, Duman, Gündüz, Kulkarni, Poor: "Blind Federated Edge Learning", IEEE TWC 2021 (arXiv 2010.10030).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.radio.modulation.base import Array
from wirelessfl.radio.modulation.waveform import Heard, Outgoing, Waveform


@dataclass(frozen=True)
class Blind(Waveform):
    """Coordinates as amplitudes, and g = Re(f^H y)/Σ_i β_i a_i with the combiner f = Σ_j h_j/M of M antennas.

    The weight of client i is a_i f^H h_i, with a_i its amplitude and the mean a_i β_i over channels: the step is a mean
    of the updates by a_i β_i. Other clients' channels add an error that falls with the antennas.
    """

    at_antennas: ClassVar[bool] = True

    @override
    def symbol_count(self, dimension: int) -> int:
        return dimension

    @override
    def encode(self, outgoing: Outgoing) -> tuple[Array, NDArray[np.float64]]:
        """The updates as they are."""
        return outgoing.updates, outgoing.norms

    @override
    def decode(self, received: NDArray[Any], heard: Heard) -> NDArray[np.float64]:
        """The mean of the updates, range by range; 0 where nobody sends."""
        combiner = summed_channels(heard.links.estimate, heard.sends)
        amplitude = np.sqrt(heard.links.power_budget) / heard.plan.clip
        each = heard.links.path_gain * amplitude
        total = np.einsum("krf,k->rf", heard.sends, each)
        blocks = len(heard.ranges) // combiner.shape[1]
        shape = (blocks, *combiner.shape[1:])
        combiners = np.broadcast_to(combiner, shape).reshape(-1, combiner.shape[2])
        totals = np.broadcast_to(total, shape[:2]).ravel()
        step = np.zeros(heard.dimension)
        packed = received.shape[1] != heard.dimension  # two symbols a channel use
        for (first, end), weights, scale in zip(heard.ranges, combiners, totals.tolist(), strict=True):
            if scale == 0:
                continue
            uses = slice(first // 2, -(-end // 2)) if packed else slice(first, end)
            mean = weights.conj() @ received[:, uses] / scale
            step[first:end] = mean.view(np.float64)[: end - first] if packed else mean.real
        return step


def summed_channels(channels: NDArray[np.complex128], sends: NDArray[np.bool_]) -> NDArray[np.complex128]:
    """The combiner Σ_j h_j/M (R, F, M) of those who send.

    Args:
        channels: h (k, R, F, M).
        sends: (k, R, F).
    """
    return np.asarray((channels * sends[..., None]).sum(axis=0) / channels.shape[3])
