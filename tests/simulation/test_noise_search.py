"""The search for the least noise: it meets the target, is no larger than stated, and looks at the ledger seldom."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation, noise_search
from wirelessfl.assembly.noise_search import Guess, least_log_noise
from wirelessfl.errors import InfeasibleError
from wirelessfl.privacy import Ledger, gaussian_epsilon

LOWEST, HIGHEST = math.log(1e-9), math.log(1e7)
PRECISION = 1e-3
MOST_LOOKS = 10 + math.ceil(math.log2((HIGHEST - LOWEST) / PRECISION))
"""Ten steps along the curve, then a bisection of all there is."""

CURVES: dict[str, Callable[[float], float]] = {
    "one Gaussian": lambda x: float(gaussian_epsilon(3 / math.exp(x), 1e-5)),
    "quadratic": lambda x: 2 * math.exp(-2 * x),
    "two regimes": lambda x: math.exp(-x) + 50 * math.exp(-4 * x),
    "amplified": lambda x: 40 * math.log1p(0.01 * math.expm1(min(5 / math.exp(x), 700.0))),
    "in steps of 2 %": lambda x: math.exp(-0.02 * math.floor(x / 0.02)),
    "a jump": lambda x: math.inf if x < 2.34567 else 0.0,
    "a jump between plateaus": lambda x: 3.0 if x < -4.321 else 0.5,
    "infinite, then smooth": lambda x: math.inf if x < 1.0 else math.exp(1.5 - x),
    "never below nine tenths": lambda x: 0.9 + math.exp(-x),
    "met by any noise": lambda x: 0.25,
    "nothing is spent": lambda x: 0.0,
    "met at the very end": lambda x: 1.0 if x >= HIGHEST else 2.0,
}


def search(curve: Callable[[float], float], epsilon: float, guess: Guess) -> tuple[float, list[float]]:
    """The answer, and where it looked."""
    looks: list[float] = []

    def reached(at: float) -> float:
        looks.append(at)
        return curve(at)

    return least_log_noise(reached, epsilon, guess, PRECISION).log_noise, looks


@pytest.mark.parametrize("start", [LOWEST, -2.0, 0.0, 1.0, 2.345, 9.0, HIGHEST])
@pytest.mark.parametrize("slope", [-1.0, -0.05, -30.0])
@pytest.mark.parametrize("name", CURVES)
def test_the_target_is_met_by_no_more_noise_than_stated(name: str, slope: float, start: float) -> None:
    curve = CURVES[name]
    found, looks = search(curve, 1.0, Guess(start, slope))
    assert curve(found) <= 1.0
    assert found in looks or found == HIGHEST
    below = found - PRECISION * (1 + 1e-9)
    assert below <= LOWEST or curve(below) > 1.0
    assert len(looks) <= MOST_LOOKS


@given(power=st.floats(0.5, 3.0), root=st.floats(-5.0, 12.0), bend=st.floats(0.0, 0.3), off=st.floats(-0.05, 0.05))
def test_a_smooth_curve_takes_few_looks(power: float, root: float, bend: float, off: float) -> None:
    def curve(x: float) -> float:
        away = max(-3.0, min(3.0, x - root))
        return math.exp(-power * (x - root) + bend * away**2)

    found, looks = search(curve, 1.0, Guess(root + off, -power))
    assert curve(found) <= 1.0 < curve(found - PRECISION * (1 + 1e-9))
    assert len(looks) <= 4


@pytest.fixture
def calibrated(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The noise that a scenario is given."""
    found: list[float] = []
    original = noise_search.calibrate

    def noted(*arguments: Any) -> float:
        found.append(original(*arguments))
        return found[-1]

    monkeypatch.setattr("wirelessfl.assembly.mechanism.calibrate", noted)
    return found


@pytest.mark.parametrize("sampling", ["poisson", "shuffle"])
def test_dynamic_noise_meets_its_target_in_few_looks(
    calibrated: list[float], monkeypatch: pytest.MonkeyPatch, sampling: str
) -> None:
    looks = []

    class Counting(Ledger):
        def epsilon_accounted(self) -> float:
            looks.append(self.statement.accountant)
            return super().epsilon_accounted()

    monkeypatch.setattr(noise_search, "Ledger", Counting)
    dynamic = {"mechanism": "gaussian", "sampling": sampling, "clipping": {"name": "dynamic", "multiplier_ratio": 1.5}}

    def scenario(**noise: float) -> Any:
        return small(rounds=4, training__privacy={**dynamic, **noise}, uplink={"kind": "ideal"})

    build_simulation(scenario(epsilon=2.0), PLAN)
    assert looks.count("pld") <= 5  # the most noise there is, then three or four about the target
    (noise,) = calibrated

    def accounted(multiplier: float) -> float:
        return float(run(scenario(noise_multiplier=multiplier))[1][-1].values["epsilon_accounted"])

    assert accounted(noise) <= 2.0 < accounted(noise * math.exp(-PRECISION))


@pytest.mark.parametrize("clip", [1.0, 1e-2, 1e-5])
def test_noise_far_below_one_is_found(calibrated: list[float], clip: float) -> None:
    zcdp = {"mechanism": "zcdp", "clip": clip, "epsilon": 2e3}
    build_simulation(small(rounds=2, training__privacy=zcdp, uplink={"kind": "ideal"}), PLAN)
    (noise,) = calibrated
    assert noise / clip < 0.01  # σ on the mean of a batch is in proportion to the norm

    def accounted(std: float) -> float:
        given = {"mechanism": "zcdp", "clip": clip, "noise_std": std}
        last = run(small(rounds=2, training__privacy=given, uplink={"kind": "ideal"}))[1][-1]
        return float(last.values["epsilon_accounted"])

    assert accounted(noise) <= 2e3 < accounted(noise * math.exp(-PRECISION))


def test_a_target_that_the_least_noise_already_meets_is_refused() -> None:
    zcdp = {"mechanism": "zcdp", "clip": 1e-4, "epsilon": 1e9, "target": "published"}
    with pytest.raises(
        InfeasibleError, match=r"epsilon: found 1e\+09 .* least noise that is tried, 1e-09, already meets it"
    ):
        build_simulation(small(training__privacy=zcdp, uplink={"kind": "ideal"}), PLAN)


def test_the_bounds_are_those_of_the_search() -> None:
    assert tuple(np.log(noise_search._SEARCH).tolist()) == (LOWEST, HIGHEST) and noise_search._PRECISION == PRECISION
