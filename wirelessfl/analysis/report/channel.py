"""Recorded channels against the law that they were drawn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from wirelessfl.scenario import Scenario
from wirelessfl.scenario.channel import IndependentFading, NakagamiFading, RayleighFading, RicianFading
from wirelessfl.scenario.geography import Tr38901PathLoss
from wirelessfl.trace import at_slot_start

if TYPE_CHECKING:
    import xarray as xr

KOLMOGOROV_1_PERCENT = 1.6276
"""Kolmogorov's distance times √n exceeds it in one of a hundred samples of the law (n large)."""


@dataclass(frozen=True)
class PowerLaw:
    """The law of |h|²/β.

    Attributes:
        words: its name.
        density: its probability density.
        distribution: Pr(|h|²/β ≤ x).
    """

    words: str
    density: Callable[[ArrayLike], NDArray[np.float64]]
    distribution: Callable[[ArrayLike], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class ChannelStatistics:
    """What the recorded channels look like.

    Attributes:
        power: (n,) |h|²/β of all clients and rounds.
        mean: of the power; 1 by the law.
        below_tenth: share of links in a fade of 10 dB or more.
        below_tenth_expected: what the law says of it; None without a law.
        distance: Kolmogorov's distance from the law; None without a law.
        critical: what it stays below in 99 of 100 runs, for independent links; None where links are correlated.
    """

    power: NDArray[np.float64]
    mean: float
    below_tenth: float
    below_tenth_expected: float | None
    distance: float | None
    critical: float | None


def power_law(scenario: Scenario) -> PowerLaw | None:
    """The law of |h|²/β of every link; None where links have different laws, or one that has no density.

    Rayleigh: Exp(1). Rician: noncentral χ² with 2 degrees of freedom and λ = 2K, over 2(K + 1). Nakagami-m:
    Gamma(m, 1/m).
    """
    fading = scenario.channel.fading
    if isinstance(scenario.channel.pathloss, Tr38901PathLoss):
        return None  # with and without line of sight
    if isinstance(fading, RayleighFading):
        return _frozen("Exp(1), Rayleigh", stats.expon())
    if isinstance(fading, RicianFading):
        factor = 10 ** (fading.k_db / 10)
        law = stats.ncx2(2, 2 * factor, scale=1 / (2 * (factor + 1)))
        return _frozen(f"Rician, K = {fading.k_db:g} dB", law)
    if isinstance(fading, NakagamiFading):
        return _frozen(f"Gamma, Nakagami m = {fading.m:g}", stats.gamma(fading.m, scale=1 / fading.m))
    return None


def _frozen(words: str, law: stats.rv_continuous) -> PowerLaw:
    return PowerLaw(words, law.pdf, law.cdf)


def channel_statistics(trace: xr.Dataset, scenario: Scenario) -> ChannelStatistics | None:
    """The statistics of the recorded channels, at the beginning of slots; None where no radio channel was used."""
    gain = at_slot_start(trace["channel_re"]) ** 2 + at_slot_start(trace["channel_im"]) ** 2
    power = (gain / trace["path_gain"].values)[np.isfinite(gain)]
    if not len(power):
        return None
    law = power_law(scenario)
    distance = critical = expected = None
    if law is not None:
        distance = float(stats.kstest(power, law.distribution).statistic)
        expected = float(law.distribution(0.1))
        if isinstance(scenario.channel.correlation, IndependentFading):
            critical = KOLMOGOROV_1_PERCENT / float(np.sqrt(len(power)))
    return ChannelStatistics(power, float(power.mean()), float((power < 0.1).mean()), expected, distance, critical)
