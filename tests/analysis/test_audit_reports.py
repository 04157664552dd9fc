"""The audit of losses that clients report for the selection: as clear as the ledger says, and no clearer.

At the false-alarm rate of 1e-6 (``FALSE_ALARM``), under the fixed seed of the examples, a failure of a right mechanism
is a defect.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
from numpy.typing import NDArray
from scipy import stats
from typing_extensions import override

from tests.analysis.audit_examples import FALSE_ALARM, as_other, audited, built, local
from wirelessfl.analysis.audit.audit import Audit
from wirelessfl.analysis.audit.statistics import sampled_epsilon
from wirelessfl.cli import main
from wirelessfl.errors import InfeasibleError
from wirelessfl.learning.selection import LossReports, SelectionFacts, SelectOort, SelectPowerOfChoice
from wirelessfl.privacy import LossRelease, PrivacyFacts, Spending, Statement
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.learner import Learner
from wirelessfl.streams import NodeStream

CLIP, STD, CLIENTS, ROUNDS, TRIALS = 3.0, 2.0, 6, 3, 100
NOISE = {"loss_noise_std": STD, "loss_clip": CLIP}
# All take part in all rounds, so that what might have been is what is.
CHOICE = {"scheme": "power_of_choice", "count": CLIENTS, "candidates": CLIENTS, **NOISE}
OORT = {"scheme": "oort", "count": CLIENTS, **NOISE}
RULES: dict[str, dict[str, Any]] = {
    "fresh": CHOICE,
    "minibatch": {**CHOICE, "loss": "minibatch"},
    "last": {**CHOICE, "loss": "last"},
    "oort": OORT,
}
BATCH = 5


def on_the_air(
    rule: dict[str, Any], server_gain: float, unit: str = "client", adjacency: str = "add_remove"
) -> Simulation:
    """Without back-off, without which whoever was not selected is charged too."""
    return built(
        rounds=ROUNDS,
        clients__selection=rule,
        uplink={
            **{"kind": "over_the_air", "snr_db": 100.0},
            **{"power_control": {"policy": "cross_layer", "server_gain": server_gain}},
        },
        privacy={"unit": unit, "adjacency": adjacency},
        training={"epochs": 1, "batch_size": BATCH, "privacy": {"mechanism": "none"}},
    )


def silenced(*arguments: Any) -> Simulation:
    """Updates under so much noise that they show nothing."""
    return on_the_air(arguments[0], 1e-15, *arguments[1:])


def assert_distance(estimate: float, true: float) -> None:
    """The distance is exact under the same noise; what varies is the measured deviation, s² = σ² χ²_ν/ν."""
    scaled = (TRIALS - 1) * (true / estimate) ** 2
    assert stats.chi2.ppf(FALSE_ALARM / 2, TRIALS - 1) <= scaled <= stats.chi2.isf(FALSE_ALARM / 2, TRIALS - 1)


def reach(simulation: Simulation, audit: Audit, name: str) -> float:
    """√Σ X² by hand over the rounds in which the canary is among the samples that count."""
    learner, client = simulation.deployment.learner, audit.client
    samples = int(learner.population.sizes[client])
    if audit.statement.unit == "client" or name == "last":
        return CLIP * math.sqrt(ROUNDS)
    if name == "fresh":
        return CLIP / samples * math.sqrt(ROUNDS)
    if name == "oort":
        return CLIP / math.sqrt(samples) * math.sqrt(ROUNDS)
    assert samples > BATCH
    times = np.zeros(samples)
    for index in range(1, ROUNDS + 1):
        drawn = learner.streams.generator("selection_batch", index, client).choice(samples, size=BATCH, replace=False)
        times[drawn] += 1
    return CLIP / BATCH * math.sqrt(times.max())


@pytest.mark.parametrize("adjacency", ["add_remove", pytest.param("replace", marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", ["client", "sample"])
@pytest.mark.parametrize("name", RULES)
def test_losses_alone_are_as_clear_as_the_gaussian_mechanism_says(name: str, unit: str, adjacency: str) -> None:
    simulation = silenced(RULES[name], unit, adjacency)
    audit = audited(simulation, TRIALS)
    assert audit.evidence.reports is not None and not audit.contradicts_ledger
    assert_distance(audit.evidence.reports.estimate, reach(simulation, audit, name) / STD)
    if name != "minibatch":  # whose canary is not in every batch, as the ledger takes it to be
        assert audit.evidence.gaussian is not None
        assert_distance(audit.evidence.gaussian.estimate, audit.mu_accounted)


@pytest.mark.parametrize(
    ("unit", "adjacency"),
    [("client", "add_remove"), *(pytest.param(u, "replace", marks=pytest.mark.slow) for u in ("client", "sample"))],
)
@pytest.mark.parametrize("name", ["fresh", "oort"])
def test_updates_and_losses_together_are_what_the_ledger_adds_up(name: str, unit: str, adjacency: str) -> None:
    audit = audited(on_the_air(RULES[name], 4.0, unit, adjacency), TRIALS)
    updates, whole, losses = audit.of_updates.gaussian, audit.evidence.gaussian, audit.evidence.reports
    assert updates is not None and whole is not None and losses is not None and not audit.contradicts_ledger
    assert unit == "sample" or max(updates.estimate, losses.estimate) < whole.estimate
    assert_distance(whole.estimate, audit.mu_accounted)
    assert_distance(math.hypot(updates.estimate, losses.estimate), audit.mu_accounted)
    assert "losses" in audit.view and "losses" in audit.canary


RIGHT: dict[str, Callable[[], Simulation]] = {
    "local noise, Poisson": lambda: local(clients__selection={**CHOICE, "count": 2, "candidates": 4}),
    "local noise, shuffled": lambda: local(clients__selection={**OORT, "count": 3}, privacy={"sampling": "shuffle"}),
    "local noise, exchanged": lambda: local(clients__selection=RULES["minibatch"], privacy__adjacency="replace"),
    "some take part": lambda: built(
        training__privacy__mechanism="none", clients__selection={**CHOICE, "count": 2, "candidates": 4}
    ),
    "some take part, a client": lambda: built(
        training__privacy__mechanism="none", clients__selection={**OORT, "count": 2}, privacy__unit="client"
    ),
}


@pytest.mark.parametrize("build", RIGHT.values(), ids=RIGHT.keys())
def test_right_reports_stand(build: Callable[[], Simulation]) -> None:
    audit = audited(build())
    assert math.isfinite(audit.epsilon_accounted) and not audit.contradicts_ledger
    assert audit.evidence.epsilon_reports is not None
    assert audit.as_mapping()["epsilon_reports"] == audit.evidence.epsilon_reports


class HalfTheNoise(LossReports):
    """Less noise than on record."""

    @override
    def noised(self, losses: NDArray[np.float64], stream: NodeStream) -> NDArray[np.float64]:
        bounded = np.clip(losses, 0.0, self.clip)
        return np.asarray(bounded + 0.5 * STD * stream.normal()[:, 0])


class OneNoiseForAllRounds(LossReports):
    """Noise of the client alone."""

    @override
    def noised(self, losses: NDArray[np.float64], stream: NodeStream) -> NDArray[np.float64]:
        same = replace(stream, round_index=0)
        return np.asarray(np.clip(losses, 0.0, self.clip) + STD * same.normal()[:, 0])


class NoClip(LossReports):
    """Losses as they are."""

    @property
    @override
    def bound(self) -> float | None:
        return None

    @override
    def noised(self, losses: NDArray[np.float64], stream: NodeStream) -> NDArray[np.float64]:
        return np.asarray(losses + STD * stream.normal()[:, 0])


def with_reports(simulation: Simulation, wrong: type[LossReports]) -> Simulation:
    """The simulation whose rule has clients report in another way."""
    selection = simulation.deployment.selection
    base: Any = type(selection.rule)
    assert base in (SelectPowerOfChoice, SelectOort)

    class Rule(base):  # type: ignore[misc]
        def facts(self) -> SelectionFacts:
            right: SelectionFacts = super().facts()
            return replace(right, reports=as_other(right.reports, wrong))

    rule = Rule(**{field.name: getattr(selection.rule, field.name) for field in fields(base) if field.init})
    simulation.deployment = replace(simulation.deployment, selection=replace(selection, rule=rule))
    return simulation


class UnclippedNan(Learner):
    """A sample whose loss is not a number makes the report one."""

    @override
    def statistics(
        self, parameters: NDArray[np.float32], clients: NDArray[np.int64], round_index: int, reports: LossReports
    ) -> NDArray[np.float64]:
        found = super().statistics(parameters, clients, round_index, replace(reports, noise_std=None))
        return np.where(np.isnan(found), np.nan, super().statistics(parameters, clients, round_index, reports))


def with_learner(simulation: Simulation, wrong: type[Learner]) -> Simulation:
    learner = as_other(simulation.deployment.learner, wrong)
    simulation.deployment = replace(simulation.deployment, learner=learner)
    return simulation


WRONG: dict[str, tuple[Callable[[], Simulation], str, bool]] = {
    # what is wrong, what the audit says of it, and whether the games show it too
    "noise halved": (lambda: with_reports(silenced(CHOICE), HalfTheNoise), "smaller than recorded", True),
    "noise halved, beside uploads": (lambda: with_reports(silenced(OORT), HalfTheNoise), "smaller than recorded", True),
    "one noise for all rounds": (
        lambda: with_reports(silenced(CHOICE), OneNoiseForAllRounds),
        "used again",
        False,
    ),
    "clip forgotten": (lambda: with_reports(silenced(CHOICE), NoClip), "than is charged for it", True),
    "noise halved, beside loud updates": (
        lambda: with_reports(on_the_air(CHOICE, 1e3), HalfTheNoise),
        "smaller than recorded",
        False,
    ),
    "a loss that is no number": (
        lambda: with_learner(silenced(CHOICE, "sample"), UnclippedNan),
        "than is charged for it",
        False,
    ),
}


@pytest.mark.parametrize(("build", "words", "by_games"), WRONG.values(), ids=WRONG.keys())
def test_wrong_reports_are_caught(build: Callable[[], Simulation], words: str, by_games: bool) -> None:
    audit = audited(build(), TRIALS)
    assert math.isfinite(audit.epsilon_accounted) and audit.contradicts_ledger
    assert any(words in fault for fault in audit.noise_faults)
    if by_games:
        assert audit.epsilon_empirical > audit.epsilon_accounted


@pytest.fixture
def charged_at_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that counts a report half as far apart as it is."""
    right = LossRelease.accounted

    def half(self: LossRelease, facts: PrivacyFacts, statement: Statement) -> Spending:
        spending = right(self, facts, statement)
        return replace(spending, mu_squared=spending.mu_squared / 4)

    monkeypatch.setattr(LossRelease, "accounted", half)


@pytest.mark.parametrize("unit", ["client", "sample"])
def test_a_ledger_that_charges_half_is_caught_by_the_game_itself(charged_at_half: None, unit: str) -> None:
    audit = audited(silenced(RULES["last"], unit), TRIALS)
    assert audit.epsilon_empirical > audit.epsilon_accounted
    assert "is charged for it" in audit.contradiction and "by 2 times as much" in audit.contradiction


def test_a_ledger_that_charges_half_ends_with_exit_code_4(charged_at_half: None, tmp_path: Path) -> None:
    changes = {
        "rounds": 2,
        "clients.count": 6,
        "clients.selection.count": 6,
        "clients.selection.candidates": 6,
        "uplink.snr_db": -300,
        "privacy.unit": "client",
    }
    overrides = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    command = ["audit", "power-of-choice", *overrides, "--trials", "100", "--out", str(tmp_path), "--json"]
    found = CliRunner().invoke(main, [*command, "--figures", "none"])
    assert found.exit_code == 4, found.output
    told = json.loads(found.stdout)
    assert told["contradicts_ledger"] and told["epsilon_reports"] > told["epsilon_accounted"]


def test_losses_without_noise_are_refused() -> None:
    bare = {**CHOICE, "loss_noise_std": None}
    with pytest.raises(InfeasibleError, match="cannot be audited: clients report their losses without noise"):
        audited(silenced(bare), 10)


@pytest.mark.parametrize("exchange", [False, True])
def test_uses_of_which_batches_are_known_compose_with_sampled_ones(exchange: bool) -> None:
    """Below the composition by another grid that is rounded up, and close to it; more than either alone."""
    from dp_accounting import NeighboringRelation

    relation = NeighboringRelation.REPLACE_ONE if exchange else NeighboringRelation.ADD_OR_REMOVE_ONE
    shift, rate, uses, known, delta = 0.8, 0.1, 20, 1.3, 1e-5
    factor = 2.0 if exchange else 1.0
    sampled, plain = (
        from_gaussian_mechanism(
            factor / distance,
            pessimistic_estimate=True,
            value_discretization_interval=1e-3,
            sampling_prob=probability,
            neighboring_relation=relation,
        )
        for distance, probability in ((shift, rate), (known, 1.0))
    )
    above = sampled.self_compose(uses).compose(plain).get_epsilon_for_delta(delta)
    found = sampled_epsilon(np.full(uses, shift), rate, delta, exchange, known)
    assert above - 0.02 <= found <= above
    assert found > sampled_epsilon(np.full(uses, shift), rate, delta, exchange)
    assert found > plain.get_epsilon_for_delta(delta)
