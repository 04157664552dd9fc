"""The audit: lower bounds on ε by attacks on the simulator itself, compared with the ledger."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wirelessfl.analysis.audit.choice import STEPS, UPLOADS, Choice, choose_game
from wirelessfl.analysis.audit.evidence import Evidence, skipped_rounds, weigh
from wirelessfl.analysis.audit.games import SlotGame
from wirelessfl.analysis.audit.noise import noise_faults
from wirelessfl.analysis.audit.rehearsal import Rehearsal, rehearse_for_audit
from wirelessfl.analysis.audit.reports import CANARY, SEEN
from wirelessfl.analysis.audit.scope import not_tested
from wirelessfl.analysis.audit.worlds import reach_faults, world_faults
from wirelessfl.assembly import build_simulation, plan_to_look
from wirelessfl.errors import InfeasibleError, MissingDataError, precondition
from wirelessfl.privacy import Statement, ZcdpRelease
from wirelessfl.scenario import Source, load_scenario
from wirelessfl.scenario.overrides import Overrides
from wirelessfl.simulation import Simulation
from wirelessfl.summary import epsilon_text

FALSE_ALARM = 1e-3
"""Largest probability that the audit reports a contradiction although the guarantee holds."""
FEWEST_TRIALS = 10
# What the default number of trials is to take on a common processor.
_SECONDS = 10.0
_TRIALS = (40, 1000)


@dataclass(frozen=True, eq=False)
class Audit:
    """Findings of an audit.

    Attributes:
        name: the scenario.
        statement: for whom and against whom ε is stated.
        client: whose canary it is, the one that the ledger charges most.
        rounds: rounds in which that client is heard, or reports a loss.
        trials: games played in either world.
        canary: what the two worlds differ in.
        view: what the adversary sees.
        relation: what the published ε compares; the empty string where it does not speak of what the game plays.
        epsilon_published: after all rounds, worst client.
        epsilon_accounted: after all rounds, worst client.
        why_different: the ledger's reasons.
        mu_published: √(2ρ) of a published zCDP theorem; NaN where there is none.
        mu_accounted: the μ behind the accounted ε; NaN where not all noise is plain Gaussian.
        evidence: what the games showed.
        of_updates: what they showed without the losses that clients report, of which no theorem on an uplink speaks.
        noise_faults: tests that the noise itself fails, in plain sentences.
        not_tested: what the audit does not look at, in plain sentences.
    """

    name: str
    statement: Statement
    client: int
    rounds: int
    trials: int
    canary: str
    view: str
    relation: str
    epsilon_published: float
    epsilon_accounted: float
    why_different: list[str]
    mu_published: float
    mu_accounted: float
    evidence: Evidence
    of_updates: Evidence
    noise_faults: list[str]
    not_tested: list[str]

    @property
    def epsilon_empirical(self) -> float:
        """The lower bound on ε."""
        return self.evidence.epsilon

    @property
    def confidence(self) -> float:
        """Confidence of the bound and of the tests of the noise together."""
        return 1 - 2 * self.evidence.false_alarm

    @property
    def contradicts_ledger(self) -> bool:
        """Whether the bound exceeds the accounted ε, or the noise differs from its record."""
        return self.epsilon_empirical > self.epsilon_accounted or bool(self.noise_faults)

    @property
    def contradiction(self) -> str:
        """Finding by which the accounted ε does not hold; empty if there is none."""
        shown = f"the audit shows at least {epsilon_text(self.epsilon_empirical)} with confidence {self.confidence:.4g}"
        told_apart = [shown] if self.epsilon_empirical > self.epsilon_accounted else []
        return "; ".join([*told_apart, *(fault.removesuffix(".") for fault in self.noise_faults)])

    @property
    def refutes_published(self) -> bool:
        """Whether the bound exceeds the published ε, where both are about the same unit, adjacency and adversary."""
        return bool(self.relation) and self.of_updates.epsilon > self.epsilon_published

    def findings(self) -> Iterator[str]:
        """The audit in plain sentences."""
        yield from self.noise_faults
        if self.contradicts_ledger:
            yield "THE ACCOUNTED ε DOES NOT HOLD: a mechanism does not do what its record states."
        elif math.isinf(self.epsilon_accounted):
            yield "The accounted ε is infinite: nothing is proven, so nothing can be contradicted."
        else:
            yield "The accounted ε is not contradicted: the lower bound does not exceed it."
        if self.refutes_published:
            yield "The published ε does not hold for what runs."
            yield from self.why_different
        elif not self.relation:
            yield "The published ε is about another unit, adjacency or adversary than the game."
        yield from self.evidence.words(self.mu_published, self.mu_accounted)

    def as_mapping(self) -> dict[str, Any]:
        """Flat, for JSON."""
        gaussian, threshold = self.evidence.gaussian, self.evidence.threshold
        shift = gaussian if self.evidence.plain else None
        return {
            "name": self.name,
            **{name: getattr(self.statement, name) for name in ("delta", "unit", "adjacency", "adversary")},
            "canary": self.canary,
            "view": self.view,
            "client": self.client,
            "rounds": self.rounds,
            "trials": self.trials,
            "confidence": self.confidence,
            "epsilon_published": self.epsilon_published,
            "epsilon_accounted": self.epsilon_accounted,
            "epsilon_empirical": self.epsilon_empirical,
            "epsilon_gaussian": self.evidence.epsilon_gaussian if gaussian is not None else None,
            "epsilon_difference": self.evidence.epsilon_difference,
            "epsilon_count": self.evidence.epsilon_count,
            "epsilon_reports": self.evidence.epsilon_reports,
            "epsilon_clopper_pearson": threshold.epsilon,
            "false_positive_rate_upper": threshold.false_positives,
            "false_negative_rate_upper": threshold.false_negatives,
            "mu_estimate": None if shift is None else shift.estimate,
            "mu_lower": None if shift is None else shift.lower,
            "mu_published": self.mu_published,
            "mu_accounted": self.mu_accounted,
            "refutes_published": self.refutes_published,
            "contradicts_ledger": self.contradicts_ledger,
            "noise_faults": self.noise_faults,
            "not_tested": self.not_tested,
            "why_different": self.why_different,
        }


def audit_scenario(
    scenario: Source,
    trials: int | None = None,
    on_progress: Callable[[float], None] = lambda part: None,
    *,
    overrides: Overrides = (),
    **keys: Any,
) -> Audit:
    """Audit of a scenario.

    Args:
        scenario: what to audit, as for `load_scenario`.
        trials: games in either world; by default as many as some ten seconds allow.
        on_progress: told which part of the games has been played since it was last told.
        overrides: as for `load_scenario`.
        keys: as for `load_scenario`.

    Raises:
        InputError: the data cannot be used.
        InfeasibleError: a privacy target that cannot be met, nobody is heard, there is no game for the scenario, or its
            data are not there.
    """
    scenario = load_scenario(scenario, overrides, **keys)
    try:
        simulation = build_simulation(scenario, plan_to_look(scenario.compute))
    except MissingDataError as error:  # nothing is wrong with the scenario, and n_i cannot be made up
        raise InfeasibleError(f"this scenario cannot be audited, because its data are missing here: {error}") from error
    precondition(
        not scenario.training.partial_work,
        "this scenario cannot be audited: games take all local steps, which training.partial_work does not",
        InfeasibleError,
    )
    return audit_simulation(simulation, scenario.name, trials, FALSE_ALARM, on_progress)


def audit_simulation(
    simulation: Simulation,
    name: str,
    trials: int | None = None,
    false_alarm: float = FALSE_ALARM,
    on_progress: Callable[[float], None] = lambda part: None,
) -> Audit:
    """Audit of a simulation as it was built; it cannot be used afterwards.

    Args:
        simulation: what to audit, mechanisms and all.
        name: for the report.
        trials: games in either world, at least ``FEWEST_TRIALS``.
        false_alarm: the probability that a mechanism that keeps its promise is said not to: half of it that the
            empirical bound exceeds the true ε, half of it that sound noise fails a test.
        on_progress: told which part of the games has been played since it was last told.

    Raises:
        ValueError: too few trials.
        InfeasibleError: nobody is heard in any round, or there is no game for the scenario.
    """
    enough = trials is None or trials >= FEWEST_TRIALS
    precondition(enough, f"an audit takes at least {FEWEST_TRIALS} trials, found {trials}")
    choice = choose_game(rehearsal := rehearse_for_audit(simulation))
    count = int(np.clip(_SECONDS / max(choice.cost, 1e-9), *_TRIALS)) if trials is None else trials
    games = [game for game in (choice.game, choice.counts, choice.reports) if game is not None]
    played = {id(game): game.play(count, lambda part: on_progress(part / len(games))) for game in games}
    updates, counts, reports = (played.get(id(game)) for game in (choice.game, choice.counts, choice.reports))
    assert updates is not None, "there is a game on updates"
    ledger, records = rehearsal.ledger, list(choice.noises())
    reach = reach_faults(rehearsal, choice.game) if isinstance(choice.game, SlotGame) else []
    worlds = [updates, *([] if reports is None else [reports])]
    share = false_alarm / 2 / (len(records) + len(worlds))
    faults = [fault.words for record in records for fault in noise_faults(record, share)]
    of_updates = weigh(updates, counts, ledger.statement.delta, false_alarm / 2)
    return Audit(
        name=name,
        statement=ledger.statement,
        client=rehearsal.client,
        rounds=len({*rehearsal.rounds, *(report.round_index for report in rehearsal.reports)}),
        trials=count,
        canary=choice.canary if reports is None else f"{choice.canary}; {CANARY}",
        view=choice.view if reports is None else f"{choice.view}, and {SEEN}",
        relation=_relation(rehearsal, choice),
        epsilon_published=ledger.epsilon_published(),
        epsilon_accounted=ledger.epsilon_accounted(),
        why_different=ledger.why_different(),
        mu_published=rehearsal.published_mu(),
        mu_accounted=rehearsal.accounted_mu(),
        evidence=of_updates
        if reports is None
        else weigh(updates, counts, ledger.statement.delta, false_alarm / 2, reports),
        of_updates=of_updates,
        noise_faults=[
            *(*skipped_rounds(updates), *reach, *(() if choice.reports is None else choice.reports.faults()), *faults),
            *(fault for part in worlds for fault in world_faults(part, share)),
        ],
        not_tested=list(not_tested(rehearsal, choice, records)),
    )


def _relation(rehearsal: Rehearsal, choice: Choice) -> str:
    # Which runs the published ε compares, or nothing where the game plays others or sees more.
    #
    # Theorem 1 of the zCDP paper speaks of a secure sum. Where the ledger does not use the sum, the game is
    # played on the single upload that it counts, which that adversary does not see.
    relations, statement = {release.relation for release in rehearsal.releases}, rehearsal.ledger.statement
    same_unit = all(relation.startswith(f"one {statement.unit}") for relation in relations)
    covers = statement.adjacency == "add_remove" or all("exchanged" in relation for relation in relations)
    sums = [release.secure_sum for release in rehearsal.releases if isinstance(release, ZcdpRelease)]
    sees_more = choice.view == UPLOADS or (choice.view == STEPS and any(sum_ is not None for sum_ in sums))
    return "; ".join(sorted(relations)) if same_unit and covers and not sees_more else ""
