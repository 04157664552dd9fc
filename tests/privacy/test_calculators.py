"""The calculators of the command line against what a run keeps for its ledger, fed with the same numbers."""

from __future__ import annotations

import json
import math
from typing import Literal

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.privacy.rounds import facts_of
from wirelessfl.api import make_plan
from wirelessfl.cli import main
from wirelessfl.privacy import Ledger, Statement, dp_sgd_epsilon, zcdp_calculator
from wirelessfl.privacy.clipping import Constant, FlatClipping
from wirelessfl.privacy.mechanisms import GaussianMechanism, LocalSteps, MeanGaussianMechanism
from wirelessfl.privacy.releases import SecureSum
from wirelessfl.scenario import parse_scenario

ISSUE = {
    "clip": 1.0,
    "noise_std": 1.0,
    "batch_size": 48,
    "samples": 145,
    "local_steps": 4,
    "participations": 1,
    "clients_per_round": 2,
}


def local_steps(
    round_index: int,
    *,
    samples: int,
    batch_size: int,
    steps: int,
    selected: int = 1,
    sampling: Literal["shuffle", "poisson"] = "shuffle",
) -> LocalSteps:
    """The record of one client's steps in a round, as the simulation fills it in."""
    return LocalSteps(
        round_index=round_index,
        clients=np.zeros(1, dtype=np.int64),
        samples=np.array([samples]),
        batch_size=batch_size,
        steps=np.array([steps]),
        sampling=sampling,
        dimension=3,
        secure_sum=SecureSum(selected, selected, arithmetic="integer"),
        linear_upload=True,
    )


def exact_epsilon(mu: float, delta: float) -> float:
    """The ε at which Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) is δ, by bisection."""
    low, high = 0.0, mu**2 + 50 * mu + 50
    for _ in range(200):
        middle = (low + high) / 2
        delta_there = stats.norm.cdf(mu / 2 - middle / mu) - math.exp(middle + stats.norm.logcdf(-mu / 2 - middle / mu))
        low, high = (middle, high) if delta_there > delta else (low, middle)
    return high


def test_the_smaller_last_batch_of_the_issue() -> None:
    """145 samples in batches of 48 end in a batch of one: exchanging its sample moves the noised mean by 2G, μ = 2."""
    assert exact_epsilon(2.0, 1e-5) == pytest.approx(9.997, abs=5e-4)
    options = [word for name, value in ISSUE.items() for word in (f"--{name.replace('_', '-')}", f"{value:g}")]
    result = CliRunner().invoke(main, ["privacy", "zcdp", *options, "--delta", "1e-5", "--json"])
    answer = json.loads(result.stdout)
    assert set(answer) == {"rho_published", "epsilon_published", "rho_accounted", "epsilon_accounted"}
    assert answer["rho_accounted"] == 2.0
    assert answer["epsilon_accounted"] == pytest.approx(exact_epsilon(2.0, 1e-5), rel=1e-9)


@pytest.mark.parametrize(("steps", "rounds", "limit"), [(4, 1, 290), (1, 6, 290), (5, 3, 256)])
def test_a_run_says_the_same(steps: int, rounds: int, limit: int) -> None:
    """The plan of a scenario in which two clients with equally many samples are in every secure sum."""
    scenario = parse_scenario(
        f"""
        name: twin
        rounds: {rounds}
        data: {{limit: {limit}, partition: {{scheme: iid}}}}
        model: {{name: mlp, hidden: [4]}}
        clients: {{count: 2}}
        training:
          algorithm: {{name: fedavg}}
          optimizer: {{name: sgd, lr: 0.1, momentum: 0}}
          epochs: null
          steps: {steps}
          batch_size: 48
          privacy: {{mechanism: zcdp, clip: 1.0, noise_std: 1.0}}
        uplink: {{kind: secure_aggregation, clip: 1.0}}
        privacy: {{adjacency: replace}}
        """,
        "twin",
    )
    forecast = make_plan(scenario).forecast
    calculated = zcdp_calculator(
        **{**ISSUE, "samples": limit // 2, "local_steps": steps, "participations": rounds},  # type: ignore[arg-type]
        delta=1e-5,
    )
    assert calculated["epsilon_accounted"] == pytest.approx(forecast.epsilon_accounted, rel=1e-12)
    assert calculated["epsilon_published"] == pytest.approx(forecast.epsilon_published, rel=1e-12)


scales = st.one_of(st.floats(1e-3, 1e3), st.sampled_from([5e-324, 1e-200, 1e-160, 1e160, 1e300]))


@settings(deadline=None)
@given(
    clip=scales,
    noise_std=scales,
    batch_size=st.integers(1, 400),
    samples=st.integers(1, 400),
    steps=st.integers(1, 30),
    participations=st.integers(1, 12),
    selected=st.integers(1, 50),
    log_delta=st.floats(-700.0, -0.01),
)
def test_zcdp_calculator_and_ledger_agree_on_every_input(
    clip: float,
    noise_std: float,
    batch_size: int,
    samples: int,
    steps: int,
    participations: int,
    selected: int,
    log_delta: float,
) -> None:
    delta = math.exp(log_delta)
    ledger = Ledger(facts_of([samples]), Statement(delta, adjacency="replace"))
    mechanism, clipping = MeanGaussianMechanism(noise_std), FlatClipping(clip)
    for m in range(1, participations + 1):
        record = local_steps(m, samples=samples, batch_size=batch_size, steps=steps, selected=selected)
        ledger.add(mechanism.release(record, clipping))
    answer = zcdp_calculator(
        clip=clip,
        noise_std=noise_std,
        batch_size=batch_size,
        samples=samples,
        local_steps=steps,
        participations=participations,
        clients_per_round=selected,
        delta=delta,
    )
    assert answer["epsilon_accounted"] == pytest.approx(ledger.epsilon_accounted(), rel=1e-9)
    assert answer["epsilon_published"] == pytest.approx(ledger.epsilon_published(), rel=1e-9)


@settings(deadline=None)
@given(
    clip=st.floats(0.1, 10),
    noise_std=st.floats(0.1, 10),
    batch_size=st.integers(1, 30),
    samples=st.integers(1, 60),
    steps=st.integers(1, 30),
)
def test_zcdp_calculator_charges_the_dearest_place_of_a_sample(
    clip: float, noise_std: float, batch_size: int, samples: int, steps: int
) -> None:
    """Against every batch in which one sample can lie in each pass, by enumeration."""
    sizes = [min(batch_size, samples - start) for start in range(0, samples, batch_size)]
    begun = [min(len(sizes), steps - done) for done in range(0, steps, len(sizes))]
    dearest = sum(max((2 * clip / (size * noise_std)) ** 2 / 2 for size in sizes[:count]) for count in begun)
    rho = zcdp_calculator(
        clip=clip,
        noise_std=noise_std,
        batch_size=batch_size,
        samples=samples,
        local_steps=steps,
        participations=3,
        clients_per_round=7,
        delta=1e-5,
    )["rho_accounted"]
    assert rho == pytest.approx(3 * dearest, rel=1e-12)


@pytest.mark.slow
@settings(deadline=None, max_examples=12)
@given(
    multiplier=st.one_of(st.floats(2.0, 20.0), st.sampled_from([5e-324, 1e-200, 1e-3, 1e160, 1e300])),
    batch_size=st.integers(1, 50),
    steps=st.integers(1, 20),
    rounds=st.integers(1, 3),
    accountant=st.sampled_from(["pld", "rdp"]),
)
def test_epsilon_calculator_and_ledger_agree(
    multiplier: float, batch_size: int, steps: int, rounds: int, accountant: str
) -> None:
    samples = 50
    ledger = Ledger(facts_of([samples]), Statement(1e-5, accountant=accountant))  # type: ignore[arg-type]
    mechanism, clipping = GaussianMechanism(Constant(multiplier)), FlatClipping(1.0)
    for m in range(1, rounds + 1):
        record = local_steps(m, samples=samples, batch_size=batch_size, steps=steps, sampling="poisson")
        ledger.add(mechanism.release(record, clipping))
    epsilon = dp_sgd_epsilon(
        noise_multiplier=multiplier,
        steps=rounds * steps,
        delta=1e-5,
        sample_rate=batch_size / samples,
        accountant=accountant,  # type: ignore[arg-type]
    )
    assert epsilon == pytest.approx(ledger.epsilon_accounted(), rel=1e-9)


FAR = ["5e-324", "1e-200", "1e160", "1e300"]
NORMAL = {
    "epsilon": {"noise-multiplier": "1", "steps": "3", "sample-rate": "0.5", "delta": "1e-5"},
    "noise": {"epsilon": "1", "steps": "3", "sample-rate": "1", "delta": "1e-5"},
    "jammer": {
        "epsilon": "1",
        "rounds": "80",
        "samples": "5000",
        "server-gain": "676",
        "channel-noise-std": "1",
        "jammer-channel": "1",
        "margin": "1",
        "delta": "1e-5",
    },
    "zcdp": {**{name.replace("_", "-"): f"{value:g}" for name, value in ISSUE.items()}, "delta": "1e-5"},
}
COUNTS = ("steps", "rounds", "samples", "batch-size", "local-steps", "participations", "clients-per-round")


@pytest.mark.parametrize(
    "calculator", [pytest.param(name, marks=pytest.mark.slow) if name == "noise" else name for name in NORMAL]
)
def test_numbers_at_the_ends_of_the_range_get_an_answer_or_a_refusal(calculator: str) -> None:
    for option in NORMAL[calculator]:
        for value in ["9223372036854775808", "1" + "0" * 400] if option in COUNTS else FAR:
            words = [
                word for name, usual in {**NORMAL[calculator], option: value}.items() for word in (f"--{name}", usual)
            ]
            result = CliRunner().invoke(main, ["privacy", calculator, *words, "--json"])
            assert result.exit_code in (0, 2, 3), (option, value, result.exception)
            assert result.exit_code == 0 or "rror" in result.stderr
            if result.exit_code == 0:
                assert "nan" not in result.stdout.lower()
