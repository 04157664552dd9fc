"""Recorded channels against the law that they were drawn from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import assert_never

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import special

from wirelessfl.scenario import Scenario
from wirelessfl.scenario.channel import (
    ExternalFading,
    ImportedFading,
    IndependentFading,
    NakagamiFading,
    RayleighFading,
    RecordedFading,
    RicianFading,
    StaticFading,
    TdlFading,
)
from wirelessfl.scenario.geography import Tr38901PathLoss
from wirelessfl.trace import at_slot_start

MOST_LINKS = 4_000_000
"""Links whose statistics are taken: of a longer trace those of every second, every third, ... round."""
KOLMOGOROV_1_PERCENT = 1.6276
"""Kolmogorov's distance times √n exceeds it in one of a hundred samples of the law (n large)."""
Distribution = Callable[[ArrayLike], NDArray[np.float64]]


@dataclass(frozen=True)
class PowerLaw:
    """The law of |h|²/β.

    Attributes:
        words: its name.
        density: its probability density.
        distribution: Pr(|h|²/β ≤ x).
    """

    words: str
    density: Distribution
    distribution: Distribution


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
            return PowerLaw("Exp(1), Rayleigh", partial(gamma_density, 1.0), partial(gamma_distribution, 1.0))
        case RicianFading():
            factor, words = 10 ** (fading.k_db / 10), f"Rician, K = {fading.k_db:g} dB"
            return PowerLaw(words, partial(rician_density, factor), partial(rician_distribution, factor))
        case NakagamiFading():
            words, m = f"Gamma, Nakagami m = {fading.m:g}", fading.m
            return PowerLaw(words, partial(gamma_density, m), partial(gamma_distribution, m))
        case StaticFading():
            return "|h|²/β = 1 on every link"
        case TdlFading():
            if fading.profile in ("D", "E"):
                return f"not drawn: a line of sight beside the scattering of profile {fading.profile}"
            return PowerLaw(
                "Exp(1), Rayleigh at every frequency", partial(gamma_density, 1.0), partial(gamma_distribution, 1.0)
            )
        case RecordedFading():
            return "not known: the gains are recorded ones"
        case ImportedFading():
            return "not known: the gains are imported ones"
        case ExternalFading():
            return f"not known: {fading.model} does not state its density"
        case _:
            assert_never(fading)


# Written out here: scipy.stats takes half a second and 46 MB to import.
def gamma_density(m: float, power: ArrayLike) -> NDArray[np.float64]:
    """Density of Gamma(m, 1/m) at positive powers; m = 1 is Exp(1)."""
    x = np.asarray(power, dtype=np.float64)
    return np.asarray(np.exp(m * np.log(m) - special.gammaln(m) + special.xlogy(m - 1.0, x) - m * x))


def gamma_distribution(m: float, power: ArrayLike) -> NDArray[np.float64]:
    """Distribution function of Gamma(m, 1/m)."""
    return np.asarray(special.gammainc(m, m * np.asarray(power, dtype=np.float64)))


def rician_density(factor: float, power: ArrayLike) -> NDArray[np.float64]:
    """Density of the power of a Rician channel of mean 1, with the factor K."""
    x, k = np.asarray(power, dtype=np.float64), factor
    reach = np.sqrt(k * (k + 1.0) * x)
    # i0e(z) = I₀(z) exp(−z) does not overflow; the exponent is −(√((K + 1) x) − √K)²
    return np.asarray((k + 1.0) * special.i0e(2.0 * reach) * np.exp(-((np.sqrt((k + 1.0) * x) - np.sqrt(k)) ** 2)))


def rician_distribution(factor: float, power: ArrayLike) -> NDArray[np.float64]:
    """Distribution function of the power of a Rician channel of mean 1, with the factor K."""
    x = np.asarray(power, dtype=np.float64)
    return np.asarray(special.chndtr(2.0 * (factor + 1.0) * x, 2.0, 2.0 * factor))


def kolmogorov_distance(values: NDArray[np.float64], distribution: Distribution) -> float:
    """Largest difference between the distribution function of a sample and that of a law."""
    known, count = distribution(np.sort(values)), len(values)
    ranks = np.arange(count + 1) / count
    return float(max((ranks[1:] - known).max(), (known - ranks[:-1]).max()))


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
        expected, distance = float(law.distribution(0.1)), kolmogorov_distance(power, law.distribution)
        if isinstance(scenario.channel.correlation, IndependentFading):
            critical = KOLMOGOROV_1_PERCENT / float(np.sqrt(len(power)))
    return ChannelStatistics(law, power, float(power.mean()), float((power < 0.1).mean()), expected, distance, critical)
