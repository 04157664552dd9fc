"""Differential privacy in the run: what is recorded, what is calibrated, what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.scenarios import PLAN, run, small
from tests.speed import rest_slow
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import DataError, InfeasibleError, ScenarioError
from wirelessfl.privacy import gaussian_epsilon
from wirelessfl.privacy.calibration import dp_sgd_epsilon
from wirelessfl.scenario import list_shipped, load_scenario

IDEAL: dict[str, Any] = {"uplink": {"kind": "ideal"}}


def private(**mechanism: Any) -> dict[str, Any]:
    """Overrides for a Gaussian mechanism on an ideal uplink."""
    return {**IDEAL, "training__privacy": {"mechanism": "gaussian", **mechanism}}


def test_dp_sgd_is_accounted_as_dp_accounting_does() -> None:
    _, rounds, _ = run(small(**private(noise_multiplier=1.3), training__batch_size=5, training__epochs=2))
    # 20 samples a client, batch 5: q = 1/4, 8 steps a round, 3 rounds.
    expected = dp_sgd_epsilon(1.3, 24, 1e-5, 0.25)
    assert rounds[-1].values["epsilon_accounted"] == pytest.approx(expected, rel=1e-9)
    assert rounds[-1].values["epsilon_published"] == pytest.approx(expected, rel=1e-9)


def test_shuffled_batches_cost_one_use_a_pass() -> None:
    _, rounds, _ = run(small(**private(noise_multiplier=1.3, sampling="shuffle"), training__epochs=2))
    # 2 passes a round, 3 rounds: μ² = 6/z².
    expected = float(gaussian_epsilon(math.sqrt(6) / 1.3, 1e-5))
    assert rounds[-1].values["epsilon_accounted"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("target", ["accounted", "published"])
@pytest.mark.parametrize(
    "mechanism",
    [
        {"mechanism": "gaussian", "sampling": "shuffle"},
        {"mechanism": "gaussian", "clipping": {"name": "per_layer", "norms": [0.5, 0.5]}},
        {"mechanism": "wavelet", "clip_domain": "weighted"},
        {"mechanism": "zcdp"},
    ],
    ids=lambda mechanism: mechanism["mechanism"],
)
def test_noise_is_calibrated_to_the_target(mechanism: dict[str, Any], target: str) -> None:
    _, rounds, _ = run(small(rounds=2, training__privacy={**mechanism, "epsilon": 5.0, "target": target}, **IDEAL))
    reached = rounds[-1].values[f"epsilon_{target}"]
    assert 4.95 < reached <= 5.0


def test_client_level_noise_is_calibrated() -> None:
    scenario = small(
        **private(unit="client", epsilon=5.0),
        privacy={"unit": "client", "adversary": "observer"},
        clients={"count": 6, "selection": {"scheme": "poisson", "rate": 0.5}},
    )
    _, rounds, _ = run(scenario)
    assert 4.95 < rounds[-1].values["epsilon_accounted"] <= 5.0


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (private(epsilon=5.0, clipping={"name": "moo", "feedback": "published"}), "raw private gradients"),
        ({**private(unit="client", epsilon=5.0), "privacy": {"unit": "client"}}, "adds the noise itself"),
        ({**private(unit="client", clip=None, epsilon=5.0), "privacy__adversary": "observer"}, "bounds the update"),
        ({**private(epsilon=5.0), "privacy": {"unit": "client"}}, "protects a sample"),
        (private(epsilon=0.1, clipping={"name": "quantile"}), "clipping.count_noise_std"),
    ],
)
def test_a_target_that_no_noise_meets_is_refused_with_the_reason(case: dict[str, Any], words: str) -> None:
    with pytest.raises(InfeasibleError, match=words):
        build_simulation(small(**case), PLAN)


def test_the_smaller_of_two_guarantees_counts_and_is_named() -> None:
    local = {"mechanism": "gaussian", "noise_multiplier": 30.0}
    simulation, rounds, _ = run(small(training__privacy=local))
    assert rounds[-1].values["epsilon_accounted"] == pytest.approx(dp_sgd_epsilon(30.0, 3, 1e-5), rel=1e-9)
    assert any("that from the noise that every client adds" in reason for reason in simulation.ledger.why_different())
    weak = {"mechanism": "gaussian", "noise_multiplier": 0.01}
    simulation, rounds, _ = run(small(training__privacy=weak, uplink__jammer={"epsilon": 3.0, "calibration": "exact"}))
    assert rounds[-1].values["epsilon_accounted"] <= 3.0
    assert any("that from the noise of the channel" in reason for reason in simulation.ledger.why_different())


GRADIENT_STEP: dict[str, Any] = {
    "training__steps": 1,
    "training__batch_size": 1000,
    "training__optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.0},
    "training__privacy": {"mechanism": "gaussian", "noise_multiplier": 0.0, "sampling": "shuffle"},
    "uplink__clip": 0.5,
}


def test_one_clipped_gradient_step_over_the_air_keeps_what_the_theorem_promises() -> None:
    _, rounds, _ = run(small(**GRADIENT_STEP))
    values = rounds[-1].values
    # μ² = Σ (1/(|D| s σ_m))², the worst client being one that never backed off (PRIVACY.md, second row).
    mu = math.sqrt(sum((1 / (120 * this.values["effective_noise_std"])) ** 2 for this in rounds))
    assert values["epsilon_accounted"] == pytest.approx(float(gaussian_epsilon(mu, 1e-5)), rel=1e-9)
    assert values["epsilon_accounted"] < values["epsilon_published"]


@pytest.mark.parametrize(
    ("change", "least"),
    [
        ({}, 1.5 * (1 - 1e-6)),
        ({"training__batch_size": 5}, 1.0),
        ({"privacy__adjacency": "replace"}, 1.5 * (1 - 1e-6)),
        ({"privacy__unit": "client"}, 0.8),
    ],
)
def test_exact_calibration_counts_the_share_of_one_sample_in_a_gradient_step(
    change: dict[str, Any], least: float
) -> None:
    """Neither more noise than the accounted sensitivity asks for, nor less: jamming, or a lower gain."""
    for uplink in (
        {"uplink__jammer": {"epsilon": 1.5, "calibration": "exact"}},
        {"uplink__power_control": {"policy": "lower_gain", "epsilon": 1.5, "calibration": "exact"}},
    ):
        _, rounds, _ = run(small(**{**GRADIENT_STEP, **change, **uplink}))
        assert least <= rounds[-1].values["epsilon_accounted"] <= 1.5 * (1 + 1e-9)


def test_exact_calibration_of_a_gradient_step_covers_imperfect_channel_knowledge() -> None:
    control = {"policy": "lower_gain", "epsilon": 1.5, "calibration": "exact"}
    _, rounds, _ = run(small(**GRADIENT_STEP, uplink__power_control=control, channel__csi={"error_std": 0.2}))
    assert 0.8 <= rounds[-1].values["epsilon_accounted"] <= 1.5 * (1 + 1e-9)


@pytest.mark.parametrize(
    "change",
    [{"uplink__clip": 0.6}, {"training__steps": 2}, {"training__optimizer": {"name": "adam", "lr": 0.5}}],
)
def test_any_other_training_is_a_whole_update(change: dict[str, Any]) -> None:
    _, rounds, _ = run(small(**{**GRADIENT_STEP, **change}))
    assert rounds[-1].values["epsilon_accounted"] > 10 * rounds[-1].values["epsilon_published"]


def test_what_clipping_did_is_recorded() -> None:
    _, rounds, _ = run(small(**private(clip=0.01, noise_multiplier=0.7, sampling="shuffle")))
    for this in rounds:
        np.testing.assert_allclose(this.slots["clip_norm"], 0.01, rtol=1e-6)
        np.testing.assert_allclose(this.slots["noise_multiplier"], 0.7, rtol=1e-6)
        assert np.all(this.slots["clipped_share"] == 1.0)


def test_an_adaptive_norm_is_remembered_from_round_to_round(tmp_path: Path) -> None:
    scenario = small(**private(clipping={"name": "quantile", "lr": 1.0}, noise_multiplier=2.0), rounds=4)
    simulation, rounds, _ = run(scenario)
    norms = np.array([this.slots["clip_norm"] for this in rounds])
    assert np.all(norms[1:] != norms[:-1])
    # Resuming from the state after two rounds goes on with the same norms.
    half = build_simulation(small(**private(clipping={"name": "quantile", "lr": 1.0}, noise_multiplier=2.0)), PLAN)
    half.run(lambda *_: None)
    resumed = build_simulation(scenario, PLAN, half.state)
    half.state.ended_by = ""
    resumed.run(lambda *_: None)
    np.testing.assert_array_equal(resumed.state.parameters, simulation.state.parameters)
    np.testing.assert_array_equal(resumed.state.clipping["clip_norm"], simulation.state.clipping["clip_norm"])


def test_public_samples_belong_to_no_client() -> None:
    clipping = {"name": "median", "proxy_samples": 30, "calibration_rounds": 2}
    simulation, rounds, _ = run(small(**private(clipping=clipping)))
    assert int(simulation.deployment.network.registry.samples.sum()) == 90
    norms = [float(this.slots["clip_norm"][0]) for this in rounds]
    assert norms[0] != norms[1] and norms[1] == norms[2]
    with pytest.raises(DataError, match="proxy_samples"):
        build_simulation(small(**private(clipping={"name": "median", "proxy_samples": 120})), PLAN)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ({"training__privacy": {"mechanism": "gaussian", "unit": "client"}}, "training.privacy.unit"),
        (private(unit="client", clipping={"name": "quantile"}), "flat"),
        (private(clip=None), "noise without clipping"),
        ({**IDEAL, "training__privacy": {"mechanism": "wavelet", "clipping": {"name": "per_layer"}}}, "per_layer"),
        (private(noise_multiplier=1.0, epsilon=1.0), "exactly one"),
    ],
)
def test_contradictions(case: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        small(**case)


# Fewer rounds than the thirty of the scenarios, for the time's sake, where they are enough.
MECHANISMS = {
    "dp-sgd": 10,
    "dp-sgd-wavelet": 10,
    "dp-adam-wavelet": 10,
    "dp-fedavg-wavelet": 30,
    "dynamic-dp-sgd": 10,
    "tempered-sigmoid": 10,
    "moo-published": 10,
    "moo-private": 10,
    "zcdp": 15,
}


@pytest.mark.parametrize("name", rest_slow(MECHANISMS, fast=4))
def test_every_mechanism_ships_as_a_scenario_and_trains(name: str) -> None:
    assert name in {shipped.name for shipped in list_shipped()}
    _, rounds, _ = run(load_scenario(name, {"rounds": MECHANISMS[name], "evaluate.every": MECHANISMS[name]}))
    assert rounds[-1].values["test_accuracy"] > 0.4, "at least 30 points above chance"
    assert not math.isnan(rounds[-1].values["epsilon_accounted"])


@pytest.mark.slow
def test_the_private_scenario_over_the_air_trains_on_mnist(shared_data: Path, tmp_path: Path) -> None:
    changes = {"data.dataset.root": str(shared_data), "rounds": 15, "data.limit": 5000, "evaluate.every": 15}
    result = wfl.simulate(load_scenario("ota-sample-private", changes), tmp_path / "run", device="cpu", pictures=False)
    assert result.summary["test_accuracy"] > 0.6
    assert result.summary["epsilon_accounted"] <= result.summary["epsilon_published"]
