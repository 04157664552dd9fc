"""Recorded channels against the law that they were drawn from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from wirelessfl.scenario import Scenario
from wirelessfl.scenario.channel import (
    ExternalFading,
    IndependentFading,
    NakagamiFading,
    RayleighFading,
    RecordedFading,
    RicianFading,
    StaticFading,
)
from wirelessfl.scenario.geography import Tr38901PathLoss
from wirelessfl.trace import at_slot_start

MOST_LINKS = 4_000_000
"""Links whose statistics are taken: of a longer trace those of every second, every third, ... round."""
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
    """Statistics of the recorded channels.

    Attributes:
        law: of the power; a phrase that says why there is none.
        power: (n,) |h|²/β of all clients and rounds, or of evenly spaced rounds where there are more than `MOST_LINKS`.
        mean: of the power.
        below_tenth: share of links in a fade of 10 dB or more.
        below_tenth_expected: its value by the law; None without a law.
        distance: largest difference of the distribution functions (Kolmogorov-Smirnov); None without a law.
        critical: value that chance alone exceeds in 1 % of runs; None where links are correlated.
    """

    law: PowerLaw | str
    power: NDArray[np.float64]
    mean: float
    below_tenth: float
    below_tenth_expected: float | None
    distance: float | None
    critical: float | None


def power_law(scenario: Scenario) -> PowerLaw | str:
    """The law of |h|²/β of every link, or a phrase that says why there is none to compare with.

    Rayleigh: Exp(1). Rician: noncentral χ² with 2 degrees of freedom and λ = 2K, over 2(K + 1). Nakagami-m:
    Gamma(m, 1/m).
    """
    fading = scenario.channel.fading
    if isinstance(scenario.channel.pathloss, Tr38901PathLoss):
        return "not drawn: links with and without line of sight have different laws"
    match fading:
        case RayleighFading():
            words, law = "Exp(1), Rayleigh", stats.expon()
        case RicianFading():
            factor = 10 ** (fading.k_db / 10)
            words, law = f"Rician, K = {fading.k_db:g} dB", stats.ncx2(2, 2 * factor, scale=1 / (2 * (factor + 1)))
        case NakagamiFading():
            words, law = f"Gamma, Nakagami m = {fading.m:g}", stats.gamma(fading.m, scale=1 / fading.m)
        case StaticFading():
            return "|h|²/β = 1 on every link"
        case RecordedFading():
            return "not known: the gains are recorded ones"
        case ExternalFading():
            return f"not known: {fading.model} does not state its density"
        case _:
            assert_never(fading)
    return PowerLaw(words, law.pdf, law.cdf)


def channel_statistics(trace: xr.Dataset, scenario: Scenario) -> ChannelStatistics | None:
    """The statistics of the recorded channels, at the beginning of slots; None where no radio channel was used."""
    if not {"channel_re", "channel_im", "path_gain"} <= set(trace.data_vars):
        return None
    step = max(1, -(-trace.sizes["round"] * trace.sizes["slot"] // MOST_LINKS))
    part = trace[["channel_re", "channel_im", "path_gain"]].isel(round=slice(None, None, step))
    gain = at_slot_start(part["channel_re"]) ** 2 + at_slot_start(part["channel_im"]) ** 2
    power = (gain / part["path_gain"].values)[np.isfinite(gain)]
    if not len(power):
        return None
    law = power_law(scenario)
    distance = critical = expected = None
    if isinstance(law, PowerLaw):
        expected, distance = float(law.distribution(0.1)), float(stats.kstest(power, law.distribution).statistic)
        if isinstance(scenario.channel.correlation, IndependentFading):
            critical = KOLMOGOROV_1_PERCENT / float(np.sqrt(len(power)))
    return ChannelStatistics(law, power, float(power.mean()), float((power < 0.1).mean()), expected, distance, critical)
