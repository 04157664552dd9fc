"""The check for a receiver of your own: what the uplink over the air relies on."""

import numpy as np

from wirelessfl.conformance import ROUNDING, check_array
from wirelessfl.errors import require
from wirelessfl.radio.links import SlotLinks
from wirelessfl.radio.power_control import AirInterface
from wirelessfl.radio.reception.base import Receiver


def check_receiver(receiver: Receiver, seed: int = 0, trials: int = 12) -> None:
    """Checks combiners and their noise over slots of 1 to 12 clients, 1 to 3 estimates and groups of subcarriers.

    A combiner is a pure function, does not depend on the order of the clients and is zero nowhere; the noise behind it
    grows in proportion to it.

    Args:
        receiver: the receiver to check.
        seed: seed of the example slots.
        trials: how many slots.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    require(isinstance(receiver, Receiver), "lacks antennas, combine or noise_std")
    require(receiver.antennas >= 1, f"has {receiver.antennas} antennas")
    generator, air = np.random.default_rng(seed), AirInterface(clip=0.7, channel_noise_std=1.3, dimension=50)
    for trial in range(trials):
        shape = (1 + trial, 1 + trial % 3, 1 + trial // 2 % 3, receiver.antennas)
        gains = generator.standard_normal((2, *shape, 2)) @ np.array([1.0, 1j]) / np.sqrt(2)
        ones = np.ones(shape[0])
        links = SlotLinks(gains[0], gains[0] + 0.2 * gains[1], ones / shape[0], 50.0 * ones, ones, 1.04 * ones)
        weights = receiver.combine(links, 1 + trial, air)
        check_array("the (R, F, A) that combine returns", weights, shape[1:], np.complexfloating)
        require(bool(np.all(np.any(weights != 0, axis=2))), "a combiner is zero: nothing is received")
        again = receiver.combine(links, 1 + trial, air)
        require(np.array_equal(weights, again), "combining twice gives two combiners: is there hidden state?")
        other = receiver.combine(links.take(np.arange(shape[0])[::-1]), 1 + trial, air)
        require(np.allclose(weights, other, rtol=ROUNDING), "the combiner depends on the order of the clients")
        noise_std = receiver.noise_std(weights, air)
        check_array("the (R, F) that noise_std returns", noise_std, shape[1:3])
        require(bool(np.all(noise_std >= 0)), "noise_std is negative")
        require(
            np.allclose(receiver.noise_std(2 * weights, air), 2 * noise_std, rtol=ROUNDING),
            "the noise does not grow in proportion to the combiner",
        )
