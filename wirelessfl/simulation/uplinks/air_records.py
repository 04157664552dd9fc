"""What uplinks over the air write down of a round, in one cell or in several."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning import CohortBlock
from wirelessfl.radio import AirInterface, SlotTransmission, energy_shares, limit_amplitude
from wirelessfl.radio.peak_power import row_norms
from wirelessfl.simulation.round import Round

Ranges = tuple[tuple[int, int], ...]
"""First and one past the last coordinate of each piece of a slot."""


def amplified(
    block: CohortBlock, sent: SlotTransmission, air: AirInterface, ranges: Ranges, iq_packing: bool
) -> tuple[Tensor, NDArray[np.float64]]:
    """What the transmitters of a block pass on: updates (k, d) with no symbol above the peak, and their norms (k,)."""
    if np.isinf(air.symbol_energy):
        return block.updates, block.norm
    with np.errstate(divide="ignore"):
        amplitude = np.sqrt(air.symbol_energy) / np.abs(sent.tx_gain)
    by_range = amplitude.reshape(len(amplitude), -1)
    whole = ((0, air.dimension),) if by_range.shape[1] == 1 else ranges
    parts = [
        limit_amplitude(block.updates[:, first:end], column, iq_packing)
        for (first, end), column in zip(whole, by_range.T, strict=True)
    ]
    passed: Tensor = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    norm = row_norms(passed)
    return passed, np.where(norm > 0, norm, block.norm)  # a rehearsal has a norm and no update


def note_transmission(
    this: Round,
    senders: NDArray[np.int64],
    block: CohortBlock,
    sent: SlotTransmission,
    passed: tuple[Tensor, NDArray[np.float64]],
    ranges: Ranges,
    joules_per_unit: float,
) -> None:
    """Write training, gains and energy of a block at the positions ``senders``, who pass on updates and norms."""
    this.note_training(senders, block)
    updates, norm = passed
    energy = (transmitted_amplitude(sent, updates, ranges) * norm) ** 2
    this.put("backoff", senders, sent.backoff)
    this.put("tx_gain_abs", senders, np.abs(sent.tx_gain).max(axis=(1, 2)))
    this.put("tx_energy", senders, energy)
    this.put("tx_energy_j", senders, energy * joules_per_unit)
    silent = sent.tx_gain == 0
    this.put("truncated_share", senders, silent.mean(axis=(1, 2)))


def transmitted_amplitude(sent: SlotTransmission, updates: Any, ranges: Ranges) -> NDArray[np.float64]:
    """(k,) ‖x_i‖/‖Δ_i‖: the gain, over the pieces in the mean of its square by where the update lies."""
    gain = np.abs(sent.tx_gain).reshape(len(sent.tx_gain), -1)
    if gain.shape[1] == 1:
        return np.asarray(gain[:, 0])
    return np.asarray(np.sqrt((gain**2 * energy_shares(updates, ranges)).sum(axis=1)))


def scale_transmission(this: Round, senders: NDArray[np.int64], factor: float) -> None:
    """Multiply the gains that were written by one factor, and the energies by its square."""
    for name, power in (("tx_gain_abs", 1), ("tx_energy", 2), ("tx_energy_j", 2)):
        this.put(name, senders, this.slots[name][senders] * factor**power)


def air_rule(gradient_step: int | None, samples: NDArray[np.int64]) -> dict[str, Any]:
    """What bounds the influence of one of a client's (n,) samples, in the words of ``AirRelease``.

    Args:
        gradient_step: batch size where the update is one step of per-sample-clipped gradients, else None.
        samples: (n,) n_i.
    """
    if gradient_step is None:
        return {"rule": "whole_update"}
    whole = bool(np.all(samples <= gradient_step))
    return {"rule": "gradient_step", "batch_size": None if whole else np.minimum(samples, gradient_step)}


def renormalised(received: NDArray[np.float64], ranges: Ranges, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Σ p_i Δ_i (d,) divided, in place, in each piece by the weight of those who sent in it; 0 where nobody did.

    Args:
        received: the sum, with noise.
        ranges: coordinates of the T pieces.
        weight: Σ p_i (R, F) of those who sent, R = T or 1 for all blocks alike.
    """
    blocks = len(ranges) // weight.shape[1]
    each = np.broadcast_to(weight, (blocks, weight.shape[1])).ravel()
    for (first, end), heard in zip(ranges, each.tolist(), strict=True):
        if heard > 0:
            received[first:end] /= heard
        else:
            received[first:end] = 0.0
    return received
