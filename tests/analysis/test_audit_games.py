"""Games: what is fixed, what is drawn anew, and which game belongs to which adversary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.analysis import audit_examples as examples
from tests.analysis.audit_examples import audited, built, gradient_step, local, trusted
from tests.simulation.scenarios import small
from tests.statistics import assert_probability, assert_variance_gaussian
from wirelessfl.analysis.audit.audit import FALSE_ALARM, Audit, audit_scenario, audit_simulation
from wirelessfl.analysis.audit.choice import AIR, CROWD, MODELS, STEPS, UPLOADS, choose_game
from wirelessfl.analysis.audit.games import Observations
from wirelessfl.analysis.audit.rehearsal import rehearse_for_audit
from wirelessfl.errors import InfeasibleError
from wirelessfl.learning import LocalTraining
from wirelessfl.privacy import Release, SecureSum, ZcdpRelease
from wirelessfl.simulation import Simulation
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.local_privacy import LocalPrivacy
from wirelessfl.simulation.rehearsal import rehearse
from wirelessfl.simulation.uplinks import OverTheAir, SlotUplink


def observed(simulation: Simulation, trials: int) -> Observations:
    """What the adversary of a simulation sees."""
    return choose_game(rehearse_for_audit(simulation)).game.play(trials, lambda part: None)


def test_both_worlds_differ_in_the_canary_alone() -> None:
    seen = observed(examples.whole_update(), 30)
    # Under the same noise the difference is the shift, in every trial.
    np.testing.assert_allclose(seen.plus - seen.minus, np.broadcast_to(seen.shift, seen.plus.shape), rtol=1e-6)


@pytest.mark.parametrize("build", [examples.whole_update, examples.jammed, lambda: local("zcdp"), trusted])
def test_noise_is_fresh_in_every_trial_and_event(build: Any) -> None:
    seen = observed(build(), 300)
    noise = seen.plus - seen.plus.mean(axis=0)
    assert len(np.unique(noise)) == noise.size
    # Neither trials nor events repeat each other.
    across = np.corrcoef(noise.T) - np.eye(noise.shape[1])
    assert np.abs(across).max() < 4.9 / math.sqrt(len(noise)) * 2


def test_local_noise_has_the_size_that_is_claimed() -> None:
    seen = observed(local(), 200)
    # Local steps are seen in units of the claimed noise, of mean zero where the canary is not.
    assert_variance_gaussian(seen.minus.ravel(), 1.0)
    assert_probability(int(seen.included.sum()), seen.included.size, 5 / 20)
    assert np.all(seen.shift == pytest.approx(1 / 1.5))


def test_secret_selection_is_drawn_in_every_trial() -> None:
    seen = observed(trusted(clients__selection={"scheme": "poisson", "rate": 0.3}), 300)
    assert seen.sample_rate == 0.3
    assert_probability(int(seen.included.sum()), seen.included.size, 0.3)
    assert np.all(np.abs(seen.plus - seen.minus)[~seen.included] == 0)


def test_an_audit_repeats_itself() -> None:
    first, second = (audited(local(), 20).as_mapping() for _ in range(2))
    assert first == second


def view_of(audit: Audit) -> tuple[str, bool]:
    """What the adversary saw, and whether it saw everything."""
    return audit.view, math.isinf(audit.epsilon_empirical)


ADVERSARIES = {
    "the air": (examples.whole_update, AIR, False),
    "the air, from each client": (lambda: built(privacy__adversary="individual"), UPLOADS, True),
    "models": (trusted, MODELS, False),
    "models, by the server": (lambda: trusted_by("server"), UPLOADS, True),
    "local steps": (local, STEPS, False),
    "local steps, one client": (lambda: local(privacy__unit="client"), STEPS, False),
    "local steps, from each client": (lambda: local(privacy__adversary="individual"), STEPS, False),
    "nothing but clipping": (lambda: gradient_step(privacy__adversary="individual"), UPLOADS, True),
    "nothing at all": (lambda: built(uplink={"kind": "ideal"}), UPLOADS, True),
}


def trusted_by(adversary: str) -> Simulation:
    private = {"mechanism": "gaussian", "unit": "client", "clip": 0.05, "noise_multiplier": 1.0}
    privacy = {"unit": "client", "adversary": adversary}
    return built(training__privacy=private, uplink={"kind": "ideal"}, privacy=privacy)


@pytest.mark.parametrize(("build", "view", "all_told"), ADVERSARIES.values(), ids=ADVERSARIES.keys())
def test_each_adversary_sees_what_it_can(build: Any, view: str, all_told: bool) -> None:
    audit = audited(build(), 10)
    assert view_of(audit) == (view, all_told)
    if all_told:
        assert math.isinf(audit.epsilon_accounted) and not audit.contradicts_ledger and not audit.refutes_published


def test_whole_updates_show_more_than_is_published() -> None:
    audit = audited(examples.whole_update(), 20)
    assert audit.refutes_published and not audit.contradicts_ledger
    assert audit.epsilon_empirical > audit.epsilon_published
    assert any("published ε does not hold" in sentence for sentence in audit.findings())
    # μ against √(2ρ): the theorem takes 1/(|D| s_i) for 2 R_i = 2 n_i/(|D| s_i).
    assert audit.evidence.gaussian is not None
    assert audit.mu_accounted == pytest.approx(2 * 20 * audit.mu_published)
    assert audit.mu_published < audit.evidence.gaussian.lower


def test_a_theorem_on_samples_is_not_refuted_by_a_client() -> None:
    audit = audited(examples.client_zeroed(), 30)
    assert audit.epsilon_empirical > audit.epsilon_published
    assert not audit.relation and not audit.refutes_published


def test_a_colluding_jammer_takes_its_noise_off() -> None:
    overrides = {"uplink__jammer": {"epsilon": 0.01}, "uplink__power_control__epsilon": 500.0}
    alone, told = (audited(built(**overrides, privacy__colluding=count), 30) for count in (0, 1))
    assert alone.evidence.gaussian is not None and told.evidence.gaussian is not None
    # The ratio of what is seen is that of the ledger, up to twice the error of a deviation measured 30 times.
    ratio = told.evidence.gaussian.estimate / alone.evidence.gaussian.estimate
    assert ratio == pytest.approx(told.mu_accounted / alone.mu_accounted, rel=2 * 4.9 / math.sqrt(2 * 29))
    assert ratio > 10 and not told.contradicts_ledger


def test_local_noise_over_the_air_is_bounded_without_a_law() -> None:
    private = {"mechanism": "gaussian", "clip": 1.0, "noise_multiplier": 0.1, "sampling": "poisson"}
    air = {"power_control": {"policy": "cross_layer", "epsilon": 1e4}}
    # With this learning rate an update is as long as τ, and the canary a third of it.
    training = {"optimizer": {"name": "sgd", "lr": 8.0, "momentum": 0}, "batch_size": 20, "privacy": private}
    audit = audited(built(training=training, uplink=air), 100)
    assert audit.view == AIR and audit.evidence.gaussian is None
    assert 0 < audit.epsilon_empirical == audit.evidence.threshold.epsilon < audit.epsilon_accounted


def test_a_private_clipping_norm_gives_the_canary_away() -> None:
    moo = {"clipping": {"name": "moo", "feedback": "published"}}
    audit = audited(local(privacy=moo), 200)
    assert math.isinf(audit.epsilon_accounted) and audit.evidence.gaussian is None
    assert audit.epsilon_empirical > 1


class HiddenInASum(LocalPrivacy):
    """Uploads that a secure sum over all clients hides among each other."""

    def releases(
        self,
        training: LocalTraining,
        samples: np.ndarray[Any, np.dtype[np.int64]],
        clients: np.ndarray[Any, np.dtype[np.int64]],
        round_index: int,
        secure_sum: SecureSum | None,
        steps: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    ) -> tuple[Release, ...]:
        """As if there were one."""
        whole = SecureSum(selected=len(clients), survivors=len(clients))
        return super().releases(training, samples, clients, round_index, whole, steps)


def test_a_secure_sum_hides_the_canary_in_the_noise_of_all() -> None:
    simulation = local("zcdp", training__steps=1, training__epochs=None, training__batch_size=20)
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner) and learner.private is not None
    audit = audited(examples.with_private(simulation, examples.as_other(learner.private, HiddenInASum)), 200)
    assert audit.view == CROWD and not audit.contradicts_ledger
    assert audit.evidence.gaussian is not None
    # Six clients: √6 less than alone; the error is that of a deviation measured 200 times.
    alone = math.sqrt(3) / (20 * 0.2)
    assert audit.mu_accounted == pytest.approx(alone / math.sqrt(6))
    assert audit.evidence.gaussian.estimate == pytest.approx(audit.mu_accounted, rel=4.9 / math.sqrt(2 * 199))


def test_nobody_heard_is_nothing_to_audit() -> None:
    with pytest.raises(InfeasibleError, match="server receives no client"):
        audited(built(faults__fade_threshold=1e9))


def test_too_few_trials() -> None:
    with pytest.raises(ValueError, match="at least 10"):
        audit_simulation(examples.whole_update(), "small", trials=9)


def test_edges_are_heard_as_cells_are() -> None:
    cells = {"channel__pathloss": {"model": "log_distance"}, "clients__count": 14}
    audit = audited(built(topology={"kind": "hierarchical", "edge_rounds": 2}, **cells), 20)
    assert audit.view == AIR and not audit.contradicts_ledger


def test_the_rehearsal_takes_the_time_of_the_run() -> None:
    # The backhaul of several cells is a part of every round, and a clock that forgets it ends the run too late.
    cells = {
        "channel__pathloss": {"model": "log_distance"},
        "clients__count": 14,
        "stop__sim_time_s": 1.0,
        "rounds": 50,
    }
    scenario = {"topology": {"kind": "multi_cell", "backhaul_bps": 1e5}, **cells}
    assert rehearse_for_audit(built(**scenario)).num_rounds == rehearse(built(**scenario)).rounds < 50


def test_a_client_whom_a_quorum_never_lets_in_is_not_audited() -> None:
    simulation = trusted(timing__wait_for={"count": 1}, rounds=6)
    rehearsal = rehearse_for_audit(simulation)
    assert rehearsal.client in np.concatenate([this.clients[plan.senders] for this, plan in rehearsal.slots])


@pytest.mark.parametrize("adversary", ["observer", "server"])
def test_nobody_heard_by_a_server_that_charges_everybody(adversary: str) -> None:
    away = {"faults__availability": {"model": "bernoulli", "p": 0.0}, "privacy__adversary": adversary}
    with pytest.raises(InfeasibleError, match="server receives no client"):
        audited(trusted(**away))


def test_a_norm_of_public_samples_is_known_though_nobody_is_heard_while_it_is_calibrated() -> None:
    clipping = {"name": "median", "proxy_samples": 20, "calibration_rounds": 1}
    few = {"clients__selection": {"scheme": "uniform", "count": 1}, "training__privacy__clipping": clipping}
    for seed in range(3):
        assert not audited(local("gaussian", seed=seed, **few), 20).contradicts_ledger


class UnknownUplink(OverTheAir):
    """Of a kind that does not say what is heard of it."""

    audit_view = SlotUplink.audit_view


def test_an_uplink_of_unknown_noise_is_refused() -> None:
    simulation = examples.with_uplink(examples.whole_update(), UnknownUplink)
    with pytest.raises(InfeasibleError, match="cannot be audited: UnknownUplink does not say"):
        audited(simulation)


@pytest.mark.parametrize("noise", [{"mechanism": "gaussian", "noise_multiplier": 1.0}, {"mechanism": "zcdp"}])
def test_a_sample_behind_two_vectors_of_an_upload_is_refused(noise: dict[str, Any]) -> None:
    """SCAFFOLD sends its control variate too. Without local noise whole updates are played, of both vectors."""
    training = {"algorithm": {"name": "scaffold"}, "steps": 1, "epochs": None, "batch_size": 8}
    training |= {"optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0}}
    with pytest.raises(InfeasibleError, match="no game for a sample behind 2 vectors in an upload"):
        audited(built(training=training | {"privacy": noise}))
    assert not audited(built(training=training)).contradicts_ledger


@dataclass(frozen=True, eq=False)
class ForeignRelease(ZcdpRelease):
    """A record of a kind that no game knows, though it is derived from one that is known."""


def test_a_record_of_unknown_kind_is_refused() -> None:
    simulation = local("zcdp")
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner) and learner.private is not None
    foreign = examples.as_other(learner.private, ForeignRecords)
    with pytest.raises(InfeasibleError, match="no game for the release ForeignRelease"):
        audited(examples.with_private(simulation, foreign))


class ForeignRecords(LocalPrivacy):
    """Local privacy with records of that kind."""

    def releases(self, *arguments: Any) -> tuple[Release, ...]:
        """The right numbers."""
        return tuple(examples.as_other(release, ForeignRelease) for release in super().releases(*arguments))


def test_a_simulation_without_training_is_refused() -> None:
    simulation = examples.whole_update()
    rehearse_for_audit(simulation)
    with pytest.raises(TypeError, match="as it was built"):
        rehearse_for_audit(simulation)


def test_trials_by_default_and_progress() -> None:
    parts: list[float] = []
    audit = audit_scenario(small(rounds=1, training__privacy__mechanism="none"), None, parts.append)
    assert audit.trials == 1000 and sum(parts) == pytest.approx(1.0)
    assert audit.confidence == 1 - FALSE_ALARM


def test_the_client_that_pays_most_is_audited() -> None:
    simulation = trusted(data__partition={"scheme": "sizes"})
    weights = simulation.ledger.facts.weights
    assert weights[audited(simulation, 10).client] == weights.max() > weights.min()
