"""The check for a modulation of your own: what the uplink over the air relies on."""

import numpy as np
import torch

from wirelessfl.conformance import check_array
from wirelessfl.errors import require
from wirelessfl.radio.modulation.base import Modulation
from wirelessfl.radio.power_control import AirInterface, TransmitPlan

ROUNDING = 1e-5
"""Relative error that single precision may leave."""


def check_modulation(modulation: Modulation, seed: int = 0, trials: int = 12) -> None:
    """Checks symbols and estimates of slots of 1 to 12 clients with updates of odd and even lengths.

    Symbols are as many as coordinates, of norm τ at most, and do not depend on which others are in a block; neither
    encoding nor decoding has a hidden state.

    Args:
        modulation: the modulation to check.
        seed: seed of the example updates.
        trials: how many slots.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(modulation, Modulation), "lacks encode or decode")
    generator, clip = np.random.default_rng(seed), 0.7
    for trial in range(trials):
        count, dimension = 1 + trial, 20 + trial
        directions = generator.standard_normal((count, dimension))
        norms = clip * generator.uniform(0.01, 1.0, count)
        rows = directions * (norms / np.linalg.norm(directions, axis=1))[:, None]
        updates = torch.from_numpy(rows.astype(np.float32))
        symbols, lengths = modulation.encode(updates, norms, clip)
        shape = tuple(symbols.shape)
        require(shape == (count, dimension), f"encode returns shape {shape}, not (k, d) = {(count, dimension)}")
        require(isinstance(symbols, torch.Tensor), f"encode of a tensor returns a {type(symbols).__name__}")
        found = np.linalg.norm(symbols.double().numpy(), axis=1)
        require(np.allclose(found, lengths, rtol=ROUNDING), "encode misstates the norms of its symbols")
        require(bool(np.all(found <= clip * (1 + ROUNDING))), f"symbols of norm {found.max():.6g} exceed τ = {clip}")
        alone = modulation.encode(updates[:1], norms[:1], clip)[0]
        require(
            np.allclose(alone.numpy(), symbols[:1].numpy(), rtol=ROUNDING),
            "a client's symbols depend on which others are in its block: is there hidden state?",
        )
        air = AirInterface(clip=clip, channel_noise_std=1.0, dimension=dimension)
        plan = TransmitPlan.undoing_the_clip(3.0, air, np.zeros(count, dtype=np.bool_))
        received = generator.standard_normal(dimension)
        estimate = modulation.decode(received.copy(), plan)
        check_array("the (d,) that decode returns", estimate, (dimension,))
        again = modulation.decode(received.copy(), plan)
        require(np.array_equal(estimate, again), "decoding twice gives two estimates: is there hidden state?")
