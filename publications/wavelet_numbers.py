"""The numbers that the wavelet paper gives, and the ε that its setting really has."""

from __future__ import annotations

from collections.abc import Mapping

from wirelessfl.privacy import SampledGaussian, composed_epsilon

SIGMAS = ("1", "1.5", "3")
DATA = ("mnist", "fashion_mnist", "cifar10")


def _by_level(*points: tuple[float, float, float]) -> dict[str, dict[str, float]]:
    return {data: dict(zip(SIGMAS, three, strict=True)) for data, three in zip(DATA, points, strict=True)}


GAINS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "DP-SGD": _by_level((4.9, 7.03, 9.16), (9.93, 12.7, 14.6), (6.38, 7.2, 9.1)),
    "Dyn-DP-SGD": _by_level((2.87, 4.2, 4.82), (5.64, 5.53, 5.35), (1.871, 1.88, 2.05)),
    "DP-Adam": _by_level((3.56, 4.9, 6.12), (8.22, 10.23, 12.97), (6.01, 6.83, 7.93)),
    "DP-AdaGrad": _by_level((2.31, 3.29, 4.97), (6.61, 8.19, 10.88), (4.25, 5.53, 7.03)),
    "DP-FedAvg": _by_level((3.64, 6.14, 12.97), (13.2, 14.82, 27.3), (5.96, 6.67, 16.33)),
    "Dyn-DP-FedAvg": _by_level((1.21, 1.82, 4.93), (2.4, 3.08, 4.39), (1.987, 4.02, 5.94)),
}
"""Gain of the wavelet form in points of accuracy, by method, data set and σ: sections 6.3 and 6.4, and Table 3."""

EPSILONS = _by_level((6.38, 3.61, 1.64), (6.38, 3.61, 1.64), (24.5, 7.94, 4.75))
"""ε of Table 3 by data set and σ."""


def least_epsilon(noise_multiplier: float, samples: int = 600, epochs: int = 300 * 50, delta: float = 1e-5) -> float:
    """The least ε, by the RDP accountant, of DP-SGD with so many passes over a client's samples.

    ε grows with the batch at a fixed number of passes, so it is least for batches of one sample.
    """
    event = SampledGaussian(noise_multiplier, 1 / samples)
    return composed_epsilon(0.0, ((event, epochs * samples),), delta, "rdp")
