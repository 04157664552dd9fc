"""Conversions between the watts of a radio and the normalised signal model, and the numerology of OFDM.

The receiver divides by sqrt(N0/2), so that the noise has variance 1 per real symbol; a transmit budget P_i then bounds
the energy of a whole round, ``‖x_i‖² <= P_i``, and one unit of it is N0/2 joules. With one real symbol per channel use
d coordinates take d/B seconds; with I/Q packing two coordinates share one complex symbol. Conversions work element by
element on floats and arrays.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition

BOLTZMANN = 1.380649e-23
"""Boltzmann's constant in J/K (exact in the SI of 2019)."""
REFERENCE_TEMPERATURE = 290.0
"""T0 of the noise figure, in kelvin (IEEE)."""
SPEED_OF_LIGHT = 299_792_458.0
"""In vacuum, in m/s."""

Real = TypeVar("Real", float, NDArray[np.float64])


def db_to_linear(db: Real) -> Real:
    """A power ratio from decibels: 10^(db/10)."""
    ratio: Real = 10.0 ** (db / 10.0)
    return ratio


def linear_to_db(ratio: Real) -> Real:
    """A power ratio in decibels: 10 log10(ratio)."""
    db: Real = 10.0 * np.log10(ratio)
    return db


def dbm_to_watts(dbm: Real) -> Real:
    """Power in watts from decibels over one milliwatt."""
    return 1e-3 * db_to_linear(dbm)


def thermal_noise_density(noise_figure_db: float) -> float:
    """N0 = k T0 10^(NF/10) in W/Hz of a receiver with this noise figure in dB."""
    return BOLTZMANN * REFERENCE_TEMPERATURE * db_to_linear(noise_figure_db)


def num_symbols(dimension: int, iq_packing: bool) -> int:
    """Channel uses of one over-the-air slot: d, or half of it (rounded up) with two coordinates on each symbol."""
    return (dimension + 1) // 2 if iq_packing else dimension


def slot_duration(dimension: int, bandwidth_hz: float, iq_packing: bool) -> float:
    """Seconds of one over-the-air slot at one symbol per hertz and second: d/B, or d/(2B) with I/Q packing."""
    return num_symbols(dimension, iq_packing) / bandwidth_hz


def power_budget_from_watts(watts: Real, slot_s: float, noise_density: float) -> Real:
    """The normalised energy budget P_i = 2 p T / N0 of transmit power p over a slot of T seconds."""
    return 2.0 * watts * slot_s / noise_density


def power_budget_from_snr(snr: Real, dimension: int, channel_noise_std: float = 1.0) -> Real:
    """The energy budget P_i = SNR_i d σ_c² of a (linear) signal-to-noise ratio per real coordinate."""
    return snr * dimension * channel_noise_std**2


def joules(energy: Real, noise_density: float) -> Real:
    """Joules of a transmission of normalised energy ‖x‖²: ‖x‖² N0/2."""
    return energy * noise_density / 2.0


@dataclass(frozen=True)
class OfdmNumerology:
    """A grid of subcarriers.

    Attributes:
        subcarriers: how many carry data.
        subcarrier_spacing_hz: Δf; a symbol without prefix lasts 1/Δf.
        cyclic_prefix_s: guard time before every symbol.
    """

    subcarriers: int
    subcarrier_spacing_hz: float
    cyclic_prefix_s: float

    def __post_init__(self) -> None:
        precondition(
            self.subcarriers >= 1 and 0 < self.subcarrier_spacing_hz < np.inf,
            f"no grid of {self.subcarriers} subcarriers {self.subcarrier_spacing_hz} Hz apart",
        )
        precondition(
            0 <= self.cyclic_prefix_s < np.inf,
            f"cyclic_prefix_s must be finite and at least 0, not {self.cyclic_prefix_s}",
        )

    @property
    def symbol_duration(self) -> float:
        """Seconds of one OFDM symbol, prefix included."""
        return 1.0 / self.subcarrier_spacing_hz + self.cyclic_prefix_s

    @property
    def bandwidth_hz(self) -> float:
        """Occupied bandwidth."""
        return self.subcarriers * self.subcarrier_spacing_hz

    def slot_duration(self, num_symbols: int) -> float:
        """Seconds for ``num_symbols`` channel uses (`units.num_symbols`), in whole OFDM symbols."""
        return -(-num_symbols // self.subcarriers) * self.symbol_duration
