"""Tapped delay lines: multipath by delay, and the frequency response at groups of subcarriers.

The profiles are those of 3GPP TR 38.901, Tables 7.7.2-1 to 7.7.2-5, whose delays are in units of the delay spread.
TDL-A to -C have no line of sight, the first tap of TDL-D and -E is Rician. The power of an exponential profile falls
with the delay as e^{−τ/σ}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import precondition

Profile = Literal["A", "B", "C", "D", "E", "exponential"]

# Delay in delay spreads and power in dB of each tap; of D and E the line of sight stands first, with the delay of the
# scattering after it
# fmt: off
_TABLES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "A": (
        (0.0, 0.3819, 0.4025, 0.5868, 0.461, 0.5375, 0.6708, 0.575, 0.7618, 1.5375, 1.8978, 2.2242, 2.1718,
         2.4942, 2.5119, 3.0582, 4.081, 4.4579, 4.5695, 4.7966, 5.0066, 5.3043, 9.6586,),
        (-13.4, 0.0, -2.2, -4.0, -6.0, -8.2, -9.9, -10.5, -7.5, -15.9, -6.6, -16.7, -12.4, -15.2, -10.8,
         -11.3, -12.7, -16.2, -18.3, -18.9, -16.6, -19.9, -29.7,),
    ),
    "B": (
        (0.0, 0.1072, 0.2155, 0.2095, 0.287, 0.2986, 0.3752, 0.5055, 0.3681, 0.3697, 0.57, 0.5283, 1.1021,
         1.2756, 1.5474, 1.7842, 2.0169, 2.8294, 3.0219, 3.6187, 4.1067, 4.279, 4.7834,),
        (0.0, -2.2, -4.0, -3.2, -9.8, -1.2, -3.4, -5.2, -7.6, -3.0, -8.9, -9.0, -4.8, -5.7, -7.5, -1.9,
         -7.6, -12.2, -9.8, -11.4, -14.9, -9.2, -11.3,),
    ),
    "C": (
        (0.0, 0.2099, 0.2219, 0.2329, 0.2176, 0.6366, 0.6448, 0.656, 0.6584, 0.7935, 0.8213, 0.9336, 1.2285,
         1.3083, 2.1704, 2.7105, 4.2589, 4.6003, 5.4902, 5.6077, 6.3065, 6.6374, 7.0427, 8.6523,),
        (-4.4, -1.2, -3.5, -5.2, -2.5, 0.0, -2.2, -3.9, -7.4, -7.1, -10.7, -11.1, -5.1, -6.8, -8.7, -13.2,
         -13.9, -13.9, -15.8, -17.1, -16.0, -15.7, -21.6, -22.8,),
    ),
    "D": (
        (0.0, 0.0, 0.035, 0.612, 1.363, 1.405, 1.804, 2.596, 1.775, 4.042, 7.937, 9.424, 9.708, 12.525,),
        (-0.2, -13.5, -18.8, -21.0, -22.8, -17.9, -20.1, -21.9, -22.9, -27.8, -23.6, -24.8, -30.0, -27.7,),
    ),
    "E": (
        (0.0, 0.0, 0.5133, 0.544, 0.563, 0.544, 0.7112, 1.9092, 1.9293, 1.9589, 2.6426, 3.7136, 5.4524,
         12.0034, 20.6519,),
        (-0.03, -22.03, -15.8, -18.1, -19.8, -22.9, -22.4, -18.6, -20.8, -22.6, -22.3, -25.6, -20.2, -29.8,
         -29.2,),
    ),
}
# fmt: on
_LINE_OF_SIGHT = ("D", "E")

# Taps of an exponential profile, evenly over so many delay spreads; the last one has all that comes later. The
# frequency correlation is then right to 0.01 up to 1/σ
_EXPONENTIAL_TAPS, _EXPONENTIAL_SPREADS = 50, 8.0


@dataclass(frozen=True, eq=False)
class TappedDelayLine:
    """L taps that fade independently.

    Attributes:
        delay_s: (L,) seconds.
        power: (L,) mean powers, together 1.
        rician_k: K of the first tap, linear; 0 without a line of sight. The other taps are scattered.
    """

    delay_s: NDArray[np.float64]
    power: NDArray[np.float64]
    rician_k: float = 0.0

    def __post_init__(self) -> None:
        precondition(
            self.delay_s.shape == self.power.shape and self.delay_s.ndim == 1, "delays and powers are (L,) both"
        )
        precondition(
            bool(np.all(self.delay_s >= 0) and np.all(self.power > 0)), "delays are at least 0, powers positive"
        )

    @property
    def total_rician_k(self) -> float:
        """K of a gain at one frequency: the power of the line of sight over all that is scattered."""
        ray = self.power[0] * self.rician_k / (self.rician_k + 1.0)
        return float(ray / (1.0 - ray))

    @property
    def delay_spread(self) -> float:
        """Root mean square delay spread in seconds."""
        mean = self.power @ self.delay_s
        return float(np.sqrt(self.power @ (self.delay_s - mean) ** 2))

    def response(self, frequency_hz: NDArray[np.float64]) -> NDArray[np.complex128]:
        """√p_l e^{−j2πfτ_l} (L, F): times the gains of the taps it is the frequency response."""
        phase = np.exp(-2j * np.pi * self.delay_s[:, None] * frequency_hz)
        return np.asarray(np.sqrt(self.power)[:, None] * phase)

    def frequency_correlation(self, spacing_hz: NDArray[np.float64] | float) -> NDArray[np.complex128]:
        """R(Δf) = Σ_l p_l e^{−j2πΔfτ_l}, in the shape of the spacing, of gains that far apart."""
        spacing = np.asarray(spacing_hz, dtype=np.float64)
        return np.asarray(np.exp(-2j * np.pi * spacing[..., None] * self.delay_s) @ self.power)


def tapped_delay_line(profile: Profile, delay_spread_s: float) -> TappedDelayLine:
    """A profile of TR 38.901, or the exponential one, with a delay spread.

    The tables are normalised to a delay spread of 1 but for rounding, and are scaled as the standard says, by the
    wanted delay spread.

    Args:
        profile: "A" to "E", or "exponential".
        delay_spread_s: seconds, at least 0.

    Raises:
        ValueError: if the delay spread is negative or not finite.
    """
    precondition(0 <= delay_spread_s < np.inf, f"delay_spread_s must be finite and at least 0, not {delay_spread_s}")
    if profile == "exponential":
        edges = np.linspace(0.0, _EXPONENTIAL_SPREADS, _EXPONENTIAL_TAPS)
        power = -np.diff(np.append(np.exp(-edges), 0.0))
        # Each tap stands where the power between its edges has its mean
        mean = -np.diff(np.append(np.exp(-edges) * (edges + 1.0), 0.0)) / power
        return TappedDelayLine(delay_spread_s * mean, power)
    delays, decibels = (np.array(column) for column in _TABLES[profile])
    power = 10.0 ** (decibels / 10.0)
    power /= power.sum()
    if profile not in _LINE_OF_SIGHT:
        return TappedDelayLine(delay_spread_s * delays, power)
    first = float(power[0] + power[1])
    return TappedDelayLine(
        delay_spread_s * delays[1:], np.concatenate([[first], power[2:]]), rician_k=float(power[0] / power[1])
    )


def group_frequencies(groups: int, bandwidth_hz: float) -> NDArray[np.float64]:
    """Centres (F,) of equal groups of subcarriers in hertz from the middle of the band."""
    return np.asarray(bandwidth_hz / groups * (np.arange(groups) - (groups - 1) / 2.0))
