"""Central noise with clients selected at random: every round is noised and charged, whoever takes part in it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wirelessfl as wfl
from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.analysis.audit.audit import audit_simulation
from wirelessfl.analysis.replay.ledger import recorded_ledger
from wirelessfl.analysis.replay.recording import open_recording, verify
from wirelessfl.assembly import build_simulation
from wirelessfl.learning.selection import Selection, SelectionContext
from wirelessfl.privacy import ServerNoiseRelease, gaussian_epsilon
from wirelessfl.privacy.releases import NoAmplification
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.rehearsal import rehearse
from wirelessfl.streams import Streams
from wirelessfl.trace import EventKind, Status


def central(count: int = 6, rate: float = 0.2, noise: float = 1.0, **overrides: Any) -> Scenario:
    """DP-FedAvg against an observer, clients selected independently of each other."""
    values: dict[str, Any] = {
        "uplink": {"kind": "ideal"},
        "model": {"name": "logistic"},
        "training__privacy": {"mechanism": "gaussian", "unit": "client", "clip": 0.05, "noise_multiplier": noise},
        "privacy": {"unit": "client", "adversary": "observer"},
        "clients": {"count": count, "selection": {"scheme": "poisson", "rate": rate}},
        "evaluate__every": 1000,
    }
    return small(**{**values, **overrides})


def charged(scenario: Scenario) -> float:
    """Accounted ε of the whole run, without training."""
    return rehearse(build_simulation(scenario, PLAN)).epsilon_accounted


@pytest.mark.parametrize(
    ("clients", "rate", "rounds", "golden"),
    [pytest.param(2, 0.05, 200, 4.766, marks=pytest.mark.slow), (10, 0.1, 40, 4.688)],
)
def test_empty_rounds_are_charged(clients: int, rate: float, rounds: int, golden: float) -> None:
    assert charged(central(clients, rate, rounds=rounds)) == pytest.approx(golden, abs=1e-3)


@pytest.mark.parametrize(("adjacency", "golden"), [("add_remove", 28.37), ("replace", 77.33)])
def test_a_quorum_is_charged_without_amplification(adjacency: str, golden: float) -> None:
    quorum: dict[str, Any] = {"rounds": 20, "timing__wait_for": {"count": 1}, "privacy__adjacency": adjacency}
    assert charged(central(20, **quorum)) == pytest.approx(golden, abs=5e-3)


EMPTY: dict[str, dict[str, Any]] = {
    "nobody selected": {"clients__selection__rate": 1e-12},
    "all unavailable": {"faults__availability__p": 0.0},
    "all crashed": {"faults__crash_rate_per_s": 1e9},
    "all late": {"timing__deadline_s": 1e-9},
    "short of a quorum": {"timing__wait_for": {"count": 5}, "faults__availability__p": 0.0},
}


@pytest.mark.parametrize("change", EMPTY.values(), ids=EMPTY.keys())
def test_an_empty_round_releases_its_noise(change: dict[str, Any]) -> None:
    """The model moves by the server's noise, of the size that it has in any other round, and by nothing else."""
    scenario = central(**{"clients__selection__rate": 0.5, **change})
    before = build_simulation(scenario, PLAN).state.parameters.astype(np.float64)
    simulation, rounds, events = run(scenario)
    rate = scenario.clients.selection.rate  # type: ignore[union-attr]
    std = 1.0 * 0.05 / (rate * 6)
    noise = sum(
        (Streams(scenario.seed).generator("server_noise", m).standard_normal(len(before)) * std for m in (1, 2, 3)),
        start=np.zeros(len(before)),
    )
    np.testing.assert_allclose(simulation.state.parameters, before + noise, rtol=1e-4, atol=1e-4 * std)
    for this, batch in zip(rounds, events, strict=True):
        assert this.values["participants"] == 0 and math.isnan(this.values.get("train_loss", math.nan))
        assert this.values["effective_noise_std"] == pytest.approx(std)
        assert this.values["model_version"] == this.index
        assert EventKind.AGGREGATE in np.asarray(batch.kind)
        assert [len(release.clients) for release in this.round.releases] == [0]


def test_what_is_charged_does_not_depend_on_who_came() -> None:
    ledgers = []
    for change in ({}, {"seed": 5}, EMPTY["all unavailable"], EMPTY["all crashed"], EMPTY["all late"]):
        simulation, rounds, _ = run(central(**change))
        assert all(isinstance(this.round.releases[0], ServerNoiseRelease) for this in rounds)
        ledgers.append((simulation.ledger.epsilon_accounted(), *simulation.ledger.client_epsilons()[1]))
    assert len(set(ledgers)) == 1 and len(set(ledgers[0])) == 1


def test_a_round_that_the_server_loses_is_charged_and_changes_nothing() -> None:
    """A restart is public and has nothing to do with the clients: the model stays, with clients and without."""
    for change in ({"clients__selection__rate": 0.9}, EMPTY["all unavailable"]):
        simulation, rounds, _ = run(central(**change, faults__server_restart__p=1.0))
        untouched, _, _ = run(central(**change))
        start = build_simulation(central(**change), PLAN).state.parameters
        np.testing.assert_array_equal(simulation.state.parameters, start)
        assert all(this.values["participants"] == 0 for this in rounds)
        assert simulation.ledger.epsilon_accounted() == untouched.ledger.epsilon_accounted() > 0


class AfterARest:
    """A client that was asked once cannot be reached in the next round: its absence tells of its selection before."""

    def __init__(self) -> None:
        self.asked: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def available(self, clients: NDArray[np.int64], round_index: int, streams: Streams) -> NDArray[np.bool_]:
        """Those who were not asked in the round before."""
        rested = ~np.isin(clients, self.asked)
        self.asked = clients
        return rested


UNAMPLIFIED: dict[str, tuple[dict[str, Any], NoAmplification]] = {
    "count": ({"timing__wait_for": {"count": 5}}, NoAmplification.QUORUM),
    "fraction": ({"timing__wait_for": {"fraction": 0.8}}, NoAmplification.QUORUM),
    "uniform": (
        {"clients__selection": {"scheme": "uniform", "count": 3}, "timing__wait_for": {"count": 2}},
        NoAmplification.QUORUM,
    ),
    "clock": ({"stop__sim_time_s": 1e9}, NoAmplification.STOPPED_BY_CLOCK),
    "foreign": (
        {"faults__availability": {"model": "tests.simulation.test_central_noise:AfterARest"}},
        NoAmplification.FOREIGN_AVAILABILITY,
    ),
}


@pytest.mark.parametrize(("change", "reason"), UNAMPLIFIED.values(), ids=UNAMPLIFIED.keys())
def test_what_couples_the_clients_or_shows_who_was_selected_is_not_amplified(
    change: dict[str, Any], reason: NoAmplification
) -> None:
    forecast = rehearse(build_simulation(central(**change), PLAN))
    assert forecast.epsilon_accounted == pytest.approx(float(gaussian_epsilon(math.sqrt(3), 1e-5)), rel=1e-9)
    assert forecast.epsilon_published < forecast.epsilon_accounted
    assert any(reason.value in sentence for sentence in forecast.why_different)


AMPLIFIED: dict[str, dict[str, Any]] = {
    "deadline": {"timing__deadline_s": 0.02},
    "all of a round": {"timing__wait_for": {"fraction": 1.0}},
    "a quorum of everybody": {"timing__wait_for": {"count": 6}},
    "away for long": {"faults__availability": {"model": "gilbert_elliott", "p_leave": 0.5, "p_return": 0.5}},
    "crashes": {"faults__crash_rate_per_s": 30.0},
}


@pytest.mark.parametrize("change", AMPLIFIED.values(), ids=AMPLIFIED.keys())
def test_what_is_a_clients_own_affair_keeps_the_amplification(change: dict[str, Any]) -> None:
    assert charged(central(**change)) == charged(central())


@dataclass(frozen=True)
class Chosen(Selection):
    """A selection fixed beforehand."""

    clients: tuple[int, ...]

    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        """The same in every round."""
        return np.array(self.clients, dtype=np.int64)


def heard(scenario: Scenario, *clients: int) -> list[set[int]]:
    """Who is in the sum of each round, where these are selected."""
    simulation = build_simulation(scenario, PLAN)
    chosen = replace(simulation.deployment.selection, rule=Chosen(clients))
    simulation.deployment = replace(simulation.deployment, selection=chosen)
    rounds: list[FinishedRound] = []
    simulation.run(lambda this, _: rounds.append(this))
    return [set(this.clients[this.round.with_status(Status.PARTICIPATED)].tolist()) for this in rounds]


@pytest.mark.parametrize("change", AMPLIFIED.values(), ids=AMPLIFIED.keys())
def test_who_else_is_selected_changes_nothing_where_amplification_is_counted(change: dict[str, Any]) -> None:
    """Each client's part with and without another one, over all pairs: what the mixture of Poisson sampling needs."""
    scenario = central(**change)
    together = heard(scenario, *range(6))
    for left_out in range(6):
        others = [client for client in range(6) if client != left_out]
        assert heard(scenario, *others) == [present - {left_out} for present in together]


def test_a_quorum_lets_one_client_decide_on_another() -> None:
    scenario = central(timing__wait_for={"count": 1})
    together = heard(scenario, *range(6))
    assert any(
        heard(scenario, *(client for client in range(6) if client != first))[m] != present - {first}
        for m, present in enumerate(together)
        for first in present
    )


def test_clients_that_are_ready_at_one_instant_are_all_pushed_out_by_a_faster_one() -> None:
    """Why a fixed number of clients earns nothing with a quorum either: exchanging one of them moves three others."""
    same_speed = {"wait_for": {"count": 1}, "straggler_scale": 0.0, "cpu_hz": [1e9, 1e9]}
    scenario = central(5, rounds=1, data__limit=129, timing=same_speed)
    samples = build_simulation(scenario, PLAN).deployment.network.registry.samples
    assert sorted(samples.tolist()) == [25, 26, 26, 26, 26]
    fast = int(np.argmin(samples))
    slow = [client for client in range(5) if client != fast]
    assert heard(scenario, *sorted([fast, *slow[:3]])) == [{fast}]
    assert heard(scenario, *slow) == [set(slow)]


CASES: dict[str, dict[str, Any]] = {
    "empty rounds": {"clients__selection__rate": 0.1, "faults__availability__p": 0.5},
    "quorum": {"timing__wait_for": {"count": 1}},
}


@pytest.mark.parametrize("change", CASES.values(), ids=CASES.keys())
def test_ledger_trace_resume_and_verification_agree(change: dict[str, Any], tmp_path: Path) -> None:
    scenario = central(rounds=6, **change)
    whole = wfl.simulate(scenario, tmp_path / "whole", device="cpu", pictures=False)
    if "timing__wait_for" not in change:
        assert min(open_recording(whole.trace).dataset["participants"].values) == 0
    ledger = recorded_ledger(whole.trace)
    assert ledger.epsilon_accounted() == whole.summary["epsilon_accounted"]
    assert ledger.epsilon_published() == whole.summary["epsilon_published"]
    assert ledger.why_different() == whole.summary["why_different"]
    with wfl.open_trace(whole.trace) as trace:
        assert set(trace["client_epsilon_accounted"].values) == {whole.summary["epsilon_accounted"]}
    stricter = charged(central(rounds=6, **{**change, "privacy__delta": 1e-7, "privacy__adjacency": "replace"}))
    assert recorded_ledger(whole.trace, delta=1e-7, adjacency="replace").epsilon_accounted() == stricter
    assert verify(open_recording(whole.trace)).difference is None

    half = build_simulation(central(rounds=3, **change), PLAN)
    half.run(lambda *_: None)
    half.state.ended_by = ""
    resumed = build_simulation(scenario, PLAN, half.state)
    resumed.run(lambda *_: None)
    assert resumed.ledger.epsilon_accounted() == whole.summary["epsilon_accounted"]


@pytest.mark.parametrize("change", CASES.values(), ids=CASES.keys())
def test_noise_is_calibrated_for_all_rounds(change: dict[str, Any]) -> None:
    """The target is met and not missed by much, also where most rounds are empty or a quorum earns nothing."""
    target = {"mechanism": "gaussian", "unit": "client", "clip": 0.05, "epsilon": 3.0}
    assert 2.97 < charged(central(rounds=6, **{**change, "training__privacy": target})) <= 3.0


@pytest.mark.parametrize("adversary", ["observer", "server"])
def test_an_audit_of_empty_rounds_raises_no_alarm(adversary: str) -> None:
    simulation = build_simulation(central(clients__selection__rate=0.1, privacy__adversary=adversary), PLAN)
    audit = audit_simulation(simulation, "central", 60, 1e-6)
    assert not audit.contradicts_ledger
    assert math.isfinite(audit.epsilon_accounted) is (adversary == "observer")
