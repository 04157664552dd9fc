"""What uplinks over the air write down of a round, in one cell or in several."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning import CohortBlock
from wirelessfl.radio import AirInterface, Transmission, limit_amplitude
from wirelessfl.radio.peak_power import row_norms
from wirelessfl.simulation.round import Round


def amplified(
    block: CohortBlock, sent: Transmission, air: AirInterface, iq_packing: bool
) -> tuple[Tensor, NDArray[np.float64]]:
    """What the transmitters of a block pass on: updates (k, d) with no symbol above the peak, and their norms (k,)."""
    if np.isinf(air.symbol_energy):
        return block.updates, block.norm
    with np.errstate(divide="ignore"):
        amplitude = np.sqrt(air.symbol_energy) / np.abs(sent.tx_gain)
    passed: Tensor = limit_amplitude(block.updates, amplitude, iq_packing)
    norm = row_norms(passed)
    return passed, np.where(norm > 0, norm, block.norm)  # a rehearsal has a norm and no update


def note_transmission(
    this: Round,
    senders: NDArray[np.int64],
    block: CohortBlock,
    sent: Transmission,
    norm: NDArray[np.float64],
    joules_per_unit: float,
) -> None:
    """Write training, gains and energy of a block of clients at the positions ``senders``, who send norms (k,)."""
    this.note_training(senders, block)
    gain = np.abs(sent.tx_gain)
    energy = (gain * norm) ** 2
    this.put("backoff", senders, sent.backoff)
    this.put("tx_gain_abs", senders, gain)
    this.put("tx_energy", senders, energy)
    this.put("tx_energy_j", senders, energy * joules_per_unit)


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
