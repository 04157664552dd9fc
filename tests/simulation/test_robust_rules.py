"""Robust rules in runs: over which uplinks, with whose updates, at what privacy, and what becomes of short rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirelessfl as wfl
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.simulation.test_roles import first_updates
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.robust import (
    Bulyan,
    Combined,
    GeometricMedian,
    Krum,
    Median,
    MultiKrum,
    NormClip,
    RowRule,
    TrimmedMean,
)
from wirelessfl.privacy import DpSgdRelease, RobustRelease, ServerNoiseRelease
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import rehearsal
from wirelessfl.simulation.uplinks import NotAuditable
from wirelessfl.trace import EventKind, Role, Status, open_trace

RULES: dict[str, tuple[dict[str, Any], Any]] = {
    "krum": ({"f": 2}, Krum(2)),
    "multi_krum": ({"f": 2}, MultiKrum(2)),
    "bulyan": ({"f": 1}, Bulyan(1)),
    "trimmed_mean": ({"trim": 0.25}, TrimmedMean(0.25)),
    "median": ({}, Median()),
    "geometric_median": ({}, GeometricMedian()),
    "norm_clip": ({"norm": 0.05}, NormClip(0.05)),
}
UPLINKS = ("ideal", "digital")
EIGHT = {"clients": {"count": 8}}
LIARS = [{"role": "sign_flip"}, {"role": "scaled", "factor": 50.0}]


def with_rule(name: str, **changes: Any) -> Scenario:
    """Eight clients, one of the rules."""
    return small(**EIGHT, training__robust={"rule": name, **RULES[name][0]}, **changes)


@pytest.mark.parametrize("uplink", UPLINKS)
@pytest.mark.parametrize("name", RULES)
def test_the_step_is_the_rule_on_the_rows_that_were_sent(name: str, uplink: str) -> None:
    changes = {"rounds": 1, "clients": {"count": 8, "roles": LIARS}, "uplink": {"kind": uplink}}
    scenario = small(**changes, training__robust={"rule": name, **RULES[name][0]})
    start = build_simulation(scenario, PLAN).state.parameters
    simulation, (this,), _ = run(scenario)
    roles = simulation.deployment.roles
    assert roles is not None
    rows = first_updates(small(**EIGHT, rounds=1, uplink={"kind": uplink})).astype(np.float32)
    rows[roles.clients[roles.codes == Role.SIGN_FLIP]] *= -1
    rows[roles.clients[roles.codes == Role.SCALED]] *= 50
    expected = RULES[name][1].combine(rows, simulation.deployment.network.registry.weight(np.arange(8)))
    np.testing.assert_allclose(simulation.state.parameters - start, expected.value, atol=2e-6)
    np.testing.assert_allclose(this.slots["robust_kept"], expected.kept, atol=1e-5)
    assert this.values["participants"] == 8


def test_the_mean_is_as_it_was() -> None:
    for uplink in UPLINKS:
        plain, rounds, _ = run(small(uplink={"kind": uplink}))
        named, _, _ = run(small(uplink={"kind": uplink}, training__robust={"rule": "mean"}))
        assert plain.state.parameters.tobytes() == named.state.parameters.tobytes()
        assert "robust_kept" not in rounds[0].slots


def test_chunks_of_clients_do_not_show() -> None:
    for name in ("median", "norm_clip"):
        whole, _, _ = run(with_rule(name, uplink={"kind": "digital"}), replace(PLAN, chunk=8))
        parts, _, _ = run(with_rule(name, uplink={"kind": "digital"}), replace(PLAN, chunk=3))
        np.testing.assert_allclose(whole.state.parameters, parts.state.parameters, atol=1e-6)


@pytest.mark.parametrize(
    "codec", [{"name": "uniform", "bits": 6}, {"name": "top_k", "share": 0.1, "error_feedback": True}]
)
def test_rules_see_what_a_codec_left(codec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def combine(self: Median, rows: np.ndarray, weights: np.ndarray) -> Any:
        seen.append(rows.copy())
        return combined(self, rows, weights)

    combined = Median.combine
    monkeypatch.setattr(Median, "combine", combine)
    run(with_rule("median", rounds=1, uplink={"kind": "digital", "codec": codec}))
    sent = first_updates(small(**EIGHT, rounds=1))
    (rows,) = seen
    if codec["name"] == "top_k":
        assert np.all(np.count_nonzero(rows, axis=1) == math.ceil(0.1 * rows.shape[1]))
    else:
        step = 2 * np.abs(sent).max(axis=1, keepdims=True) / 62
        assert np.all(np.abs(rows - sent) <= step * 1.01) and np.any(rows != sent.astype(np.float32))


def test_a_server_optimizer_steps_by_the_result() -> None:
    changes = {"rounds": 1, "uplink": {"kind": "digital"}}
    start = build_simulation(with_rule("median", **changes), PLAN).state.parameters.astype(np.float64)
    plain, _, _ = run(with_rule("median", **changes))
    double, _, _ = run(with_rule("median", **changes, training__server_optimizer={"name": "sgd", "lr": 2.0}))
    np.testing.assert_allclose(double.state.parameters - start, 2 * (plain.state.parameters - start), atol=1e-6)


# ------------------------------------------------------------------------------------------------ refusals

REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"uplink": {"kind": "over_the_air"}},
        r"robust\.rule: found median with uplink\.kind: over_the_air, where the rec",
    ),
    (
        {"uplink": {"kind": "secure_aggregation"}},
        r"median with uplink\.kind: secure_aggregation, where the server learns",
    ),
    (
        {"uplink": {"kind": "digital"}, "aggregation": {"mode": "asynchronous"}},
        r"median with aggregation\.mode: asynchronous",
    ),
    (
        {"uplink": {"kind": "digital", "codec": {"name": "sign", "vote_step": 0.1}}},
        r"median with uplink\.codec\.vote_step, where clients send votes",
    ),
    (
        {"uplink": {"kind": "digital"}, "training__algorithm": {"name": "scaffold"}, "training__steps": 2},
        r"median with two vectors of scaffold",
    ),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_what_a_rule_does_not_go_with(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        small(training__robust={"rule": "median"}, **changes)


@pytest.mark.parametrize(
    ("robust", "words"),
    [
        (
            {"rule": "krum", "f": 2},
            r"robust\.f: found 2, which needs 7 of the 6 clients of a round; allowed: at most 1",
        ),
        ({"rule": "bulyan"}, r"found 1.*, which needs 7 of the 6 clients of a round, by default; allowed: at most 0"),
        ({"rule": "krum", "f": -1}, r"found -1; allowed: a whole number from 0"),
        ({"rule": "trimmed_mean", "trim": 0.5}, r"trim: found 0\.5"),
        ({"rule": "norm_clip", "norm": 0}, r"norm: found 0; allowed: a number above 0"),
        ({"rule": "best"}, r"rule: found best; allowed: mean \| krum"),
    ],
)
def test_values_out_of_range(robust: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        small(uplink={"kind": "digital"}, training__robust=robust)


def test_a_quorum_below_the_fewest_is_refused() -> None:
    words = r"found 1, which needs 5 of the 4 clients of a round that are waited for, by default; allowed: at most 0"
    for quorum in ({"count": 4}, {"fraction": 0.6}):
        with pytest.raises(ScenarioError, match=words):
            small(uplink={"kind": "digital"}, training__robust={"rule": "krum"}, timing__wait_for=quorum)


# ------------------------------------------------------------------------------------------------ short rounds


@pytest.mark.parametrize("uplink", UPLINKS)
def test_a_round_with_too_few_is_given_up_and_says_so(uplink: str) -> None:
    absent = {"availability": {"p": 0.6}}
    scenario = with_rule("krum", rounds=12, uplink={"kind": uplink}, faults=absent)
    start = build_simulation(scenario, PLAN).state.parameters
    simulation, rounds, events = run(scenario)
    short = 0
    for this, batch in zip(rounds, events, strict=True):
        arrived = sum(len(this.round.with_status(one)) for one in (Status.PARTICIPATED, Status.ABORTED))
        if arrived >= 7:
            assert this.values["participants"] == arrived and np.nansum(this.slots["robust_kept"]) == 1.0
            continue
        short += arrived > 0
        if arrived == 0:  # nobody waits for a rule
            continue
        assert len(this.round.with_status(Status.ABORTED)) == arrived and this.values["participants"] == 0
        assert EventKind.ABORT in np.asarray(batch.kind) and np.nansum(this.slots["robust_kept"]) == 0.0
        assert math.isnan(this.values["train_loss"])
        assert this.round.releases[0].clients.tolist() == this.round.with_status(Status.ABORTED).tolist()
    assert short > 0
    assert rounds[-1].values["model_version"] == 12 - short
    assert short < 12 or np.array_equal(simulation.state.parameters, start)


def test_updates_that_are_not_finite_are_left_out() -> None:
    huge = {"clients": {"count": 8, "roles": [{"role": "scaled", "factor": 1e9}]}, "training__optimizer": {"lr": 1e32}}
    simulation, rounds, _ = run(small(**huge, rounds=1, uplink={"kind": "ideal"}, training__robust={"rule": "median"}))
    roles, kept = simulation.deployment.roles, rounds[0].slots["robust_kept"]
    assert roles is not None and kept[roles.clients[0]] == 0.0 and kept.sum() == pytest.approx(1.0)
    assert np.all(np.isfinite(simulation.state.parameters)) and rounds[0].values["participants"] == 7
    assert rounds[0].status.tolist() == [
        Status.ABORTED if i in roles.clients else Status.PARTICIPATED for i in range(8)
    ]
    # Where all updates are not finite, the round is given up
    huge = {"training__optimizer": {"lr": 3e38}, "training__epochs": 5, "rounds": 1}
    for uplink in UPLINKS:
        simulation, (this,), _ = run(with_rule("median", **huge, uplink={"kind": uplink}))
        start = build_simulation(with_rule("median", **huge, uplink={"kind": uplink}), PLAN).state.parameters
        assert np.array_equal(simulation.state.parameters, start) and this.values["participants"] == 0
        assert this.values["updates_not_finite"] == len(this.round.with_status(Status.ABORTED)) > 0
        assert simulation.diverged and simulation.state.unlearnt_since == 1


@pytest.mark.parametrize("uplink", UPLINKS)
@pytest.mark.parametrize("name", RULES)
def test_of_free_riders_alone_a_rule_keeps_what_it_keeps_of_zeros(name: str, uplink: str) -> None:
    everyone = {"clients": {"count": 8, "roles": [{"role": "free_rider", "fraction": 1.0}]}}
    scenario = small(**everyone, rounds=1, uplink={"kind": uplink}, training__robust={"rule": name, **RULES[name][0]})
    simulation, (this,), _ = run(scenario)
    weights = simulation.deployment.network.registry.weight(np.arange(8))
    expected = RULES[name][1].combine(np.zeros((8, 3), dtype=np.float32), weights)
    np.testing.assert_array_equal(this.slots["robust_kept"], expected.kept)
    assert this.values["server_step_norm"] == 0.0 and this.values["participants"] == 8


@dataclass(frozen=True)
class Fixed(RowRule):
    """A rule from outside that scales every update by one factor, also one of norm 0."""

    factor: float = 0.25

    def least(self) -> int:
        return 1

    def factors(self, norms: np.ndarray) -> np.ndarray:
        return np.full(len(norms), self.factor)

    def combine(self, rows: np.ndarray, weights: np.ndarray) -> Combined:
        return Combined(self.factor * (weights @ rows.astype(np.float64)) / weights.sum(), self.factors(weights))


def test_a_rule_from_outside_is_asked_for_the_factors_of_zeros() -> None:
    clients = {"count": 8, "roles": [{"role": "free_rider", "count": 3}]}
    robust = {"rule": f"{__name__}:Fixed", "options": {"factor": 0.5}}
    _, (this,), _ = run(small(clients=clients, rounds=1, uplink={"kind": "ideal"}, training__robust=robust))
    assert this.slots["robust_kept"].tolist() == [0.5] * 8


def test_a_forecast_computes_with_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Median, "combine", lambda *_: pytest.fail("a rehearsal has no updates"))
    scenario = with_rule("median", uplink={"kind": "digital"}, training__privacy={"mechanism": "gaussian"})
    forecast = rehearsal.rehearse(build_simulation(scenario, PLAN))
    assert forecast.rounds == 3 and math.isfinite(forecast.epsilon_accounted)


# ------------------------------------------------------------------------------------------------ privacy

CENTRAL = {"mechanism": "gaussian", "unit": "client", "clip": 0.5, "noise_multiplier": 1.0}
OBSERVED = {"uplink": {"kind": "ideal"}, "training__privacy": CENTRAL, "privacy": {"adversary": "observer"}}


def test_a_rule_after_local_noise_is_post_processing() -> None:
    noisy = {"uplink": {"kind": "digital"}, "training__privacy": {"mechanism": "gaussian"}}
    plain, _, _ = run(small(**EIGHT, **noisy))
    for name in RULES:
        simulation, rounds, _ = run(with_rule(name, **noisy))
        assert simulation.ledger.epsilon_accounted() == plain.ledger.epsilon_accounted() < math.inf
        assert all(isinstance(release, DpSgdRelease) for release in rounds[0].round.releases)


def test_noise_of_a_trusted_server_covers_scaled_rows_and_no_other_rule() -> None:
    plain, _, _ = run(small(**EIGHT, **OBSERVED))
    for name in RULES:
        simulation, rounds, _ = run(with_rule(name, **OBSERVED))
        (release,) = rounds[0].round.releases
        if name == "norm_clip":
            assert isinstance(release, ServerNoiseRelease)
            assert simulation.ledger.epsilon_accounted() == plain.ledger.epsilon_accounted() < math.inf
            continue
        assert isinstance(release, RobustRelease) and simulation.ledger.epsilon_accounted() == math.inf
        assert any("result of a robust rule" in why for why in simulation.ledger.why_different())


@dataclass(frozen=True)
class MedianNorm(NormClip):
    """A rule from outside that scales every update down to the median norm of all."""

    def factors(self, norms: np.ndarray) -> np.ndarray:
        return np.minimum(1.0, np.median(norms) / np.maximum(norms, 1e-30)) if len(norms) else norms


def test_noise_of_a_trusted_server_does_not_cover_scaled_rows_of_a_rule_from_outside() -> None:
    """Factors may follow the others: without one of five clients of weight 1/5 the sum moves by 0.6, not by 0.2."""
    rows = np.diag([1.0, 1.0, 1.0, 0.01, 0.01]).astype(np.float32)
    absent = rows.copy()
    absent[2] = 0.0
    with_all, without = (MedianNorm().combine(each, np.full(5, 0.2)).value for each in (rows, absent))
    assert np.linalg.norm(with_all - without) > 0.3
    chosen = small(**EIGHT, training__robust={"rule": f"{__name__}:MedianNorm"}, **OBSERVED)
    simulation, rounds, _ = run(chosen)
    (release,) = rounds[0].round.releases
    assert isinstance(release, RobustRelease) and simulation.ledger.epsilon_accounted() == math.inf
    assert isinstance(simulation.deployment.uplink.audit_view(), NotAuditable)


def test_the_server_adds_its_noise_to_the_result() -> None:
    changes = {**OBSERVED, "rounds": 1}
    for name in ("norm_clip", "median"):
        loud, _, _ = run(with_rule(name, **changes))
        quiet, _, _ = run(with_rule(name, **{**changes, "training__privacy": CENTRAL | {"noise_multiplier": 1e-9}}))
        other, _, _ = run(small(**EIGHT, **changes))
        still, _, _ = run(small(**EIGHT, **{**changes, "training__privacy": CENTRAL | {"noise_multiplier": 1e-9}}))
        noise = other.state.parameters.astype(np.float64) - still.state.parameters
        np.testing.assert_allclose(loud.state.parameters - quiet.state.parameters, noise, atol=1e-6)
        rows = first_updates(small(**EIGHT, rounds=1, uplink={"kind": "ideal"}))
        rows *= np.minimum(1.0, 0.5 / np.linalg.norm(rows, axis=1))[:, None]
        weights = quiet.deployment.network.registry.weight(np.arange(8))
        expected = RULES[name][1].combine(rows.astype(np.float32), weights).value
        start = build_simulation(with_rule(name, **changes), PLAN).state.parameters
        np.testing.assert_allclose(quiet.state.parameters - start, expected, atol=2e-6)


def test_a_target_that_no_noise_is_known_to_reach_is_refused() -> None:
    aimed = {**OBSERVED, "training__privacy": {"mechanism": "gaussian", "unit": "client", "epsilon": 5.0}}
    with pytest.raises(ScenarioError, match=r"robust\.rule: found median with training\.privacy\.epsilon for clients"):
        with_rule("median", **aimed)
    with_rule("norm_clip", **aimed)


def test_a_short_round_of_a_trusted_server_releases_nothing() -> None:
    _, rounds, _ = run(with_rule("krum", rounds=6, faults={"availability": {"p": 0.5}}, **OBSERVED))
    short = [this for this in rounds if this.values["participants"] == 0]
    assert short and all(len(this.round.with_status(Status.PARTICIPATED)) == 0 for this in short)
    assert rounds[-1].values["model_version"] == 6 - len(short)
    _, rounds, _ = run(with_rule("norm_clip", faults={"availability": {"p": 0.0}}, **OBSERVED))
    assert rounds[-1].values["model_version"] == 3  # noise alone, as with the mean


# ------------------------------------------------------------------------------------------------ runs and traces


@pytest.mark.parametrize("algorithm", ["fedprox", "upcycled", "feddyn", "fednova"])
def test_algorithms_of_one_vector(algorithm: str) -> None:
    simulation, _, _ = run(
        with_rule("geometric_median", uplink={"kind": "digital"}, training__algorithm={"name": algorithm})
    )
    assert np.all(np.isfinite(simulation.state.parameters))


@pytest.mark.parametrize("name", RULES)
def test_a_run_goes_on_as_if_it_had_not_stopped(name: str, tmp_path: Path) -> None:
    scenario = with_rule(name, uplink={"kind": "digital"}, faults={"availability": {"p": 0.9}})
    goes_on_to_the_same_bits(scenario, tmp_path)


def test_the_trace_has_what_was_kept_and_can_be_computed_again(tmp_path: Path) -> None:
    scenario = with_rule("multi_krum", uplink={"kind": "digital"})
    wfl.simulate(scenario, tmp_path / "run", pictures=False)
    with open_trace(tmp_path / "run" / "trace.h5") as ds:
        kept = ds["robust_kept"].values
        assert kept.shape == (3, 8) and np.all(kept.sum(axis=1) == 4)
    _, rounds, _ = run(scenario)
    np.testing.assert_array_equal(kept, [this.slots["robust_kept"] for this in rounds])
