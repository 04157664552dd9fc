"""Dynamic DP-SGD (Du et al. 2021): its schedules, both of its columns, and noise for a target of either."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant as pld
from scipy import optimize, stats

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.rehearsal import rehearse

DELTA, ROUNDS, RATE, STEPS = 1e-5, 4, 0.25, 4  # 20 samples a client in batches of 5: four Poisson steps a pass
RHO_C, RHO_MU = 4.0, 2.0


def du(**noise: Any) -> Scenario:
    """C_t = C_0 ρ_C^(−t/T) and μ_t = μ_0 ρ_μ^(t/T), the latter by its default."""
    clipping = {"name": "dynamic", "clip_ratio": 1 / RHO_C}
    privacy = {"mechanism": "gaussian", "sampling": "poisson", "clip": 0.8, "clipping": clipping, **noise}
    return small(rounds=ROUNDS, training__batch_size=5, training__privacy=privacy, uplink={"kind": "ideal"})


def multipliers(first: float) -> list[float]:
    mu = [RHO_MU ** (t / ROUNDS) / first for t in range(ROUNDS)]
    return [1 / one for one in mu]


def central_limit(first: float) -> float:
    """ε of μ-GDP with μ = q √(Σ_t (e^{μ_t²} − 1)) over all steps, by the duality of Dong et al."""
    mu = RATE * math.sqrt(STEPS * sum(math.exp(sigma**-2) - 1 for sigma in multipliers(first)))

    def excess(epsilon: float) -> float:
        ahead, behind = stats.norm.cdf(-epsilon / mu + mu / 2), stats.norm.cdf(-epsilon / mu - mu / 2)
        return float(ahead - math.exp(epsilon) * behind - DELTA)

    return float(optimize.brentq(excess, 0, 60))


def composed(first: float) -> float:
    """ε of one Poisson-subsampled Gaussian event for each multiplier."""
    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    for sigma in multipliers(first):
        accountant.compose(dp_event.PoissonSampledDpEvent(RATE, dp_event.GaussianDpEvent(sigma)), STEPS)
    return float(accountant.get_epsilon(DELTA))


def test_norm_and_multiplier_shrink_by_equal_factors() -> None:
    rounds = run(du(noise_multiplier=1.6))[1]
    for t, finished in enumerate(rounds):
        np.testing.assert_allclose(finished.slots["clip_norm"], 0.8 * RHO_C ** (-t / ROUNDS), rtol=1e-6)
        np.testing.assert_allclose(finished.slots["noise_multiplier"], multipliers(1.6)[t], rtol=1e-6)


def test_both_columns_compose_every_multiplier() -> None:
    end = run(du(noise_multiplier=1.6))[1][-1].values
    assert end["epsilon_published"] == pytest.approx(central_limit(1.6), rel=1e-6)
    assert end["epsilon_accounted"] == pytest.approx(composed(1.6), rel=1e-3)
    constant = run(du(noise_multiplier=1.6, clipping={"name": "flat"}))[1][-1].values
    assert end["epsilon_accounted"] > 1.2 * constant["epsilon_accounted"]  # the last rounds cost most


@pytest.mark.slow
@pytest.mark.parametrize("target", ["published", "accounted"])
def test_noise_meets_a_target_of_either_column(target: str) -> None:
    forecast = rehearse(build_simulation(du(epsilon=3.0, target=target), PLAN))
    first, last = forecast.noise_multiplier, forecast.noise_multiplier_last
    assert last == pytest.approx(multipliers(first)[-1])
    reached = {"published": central_limit, "accounted": composed}[target]
    assert reached(first) <= 3.0 * (1 + 1e-3) and reached(0.998 * first) > 3.0


def test_validate_names_the_first_and_the_last_multiplier() -> None:
    from wirelessfl.cli.console import plan_rows
    from wirelessfl.result import make_plan

    words = dict(plan_rows(make_plan(du(noise_multiplier=1.6))))["noise multiplier"]
    assert words == f"1.6 in the first round, {multipliers(1.6)[-1]:.4g} in the last"
