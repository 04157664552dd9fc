"""The shipped scenarios of secure aggregation show what they say, and their ledger knows who may collude."""

from __future__ import annotations

import math
import re
import shlex

import numpy as np
import pytest

from tests.simulation.scenarios import PLAN, run
from tests.simulation.uplinks.cells import play
from wirelessfl.assembly.simulation import build_simulation
from wirelessfl.privacy import recompute
from wirelessfl.scenario import load_scenario, locate
from wirelessfl.simulation import FinishedRound, Simulation
from wirelessfl.trace import EventKind, SecAggStage, Status

PLAIN_UPLOADS = {"uplink": {"kind": "digital", "clip": 2.0, "snr_db": 20}}


def ran(**overrides: object) -> tuple[Simulation, list[FinishedRound]]:
    """Four rounds of zcdp-secagg-adult on rows that stand in for Adult; dots of a key path as two underscores."""
    chosen = {"rounds": 4, "evaluate.every": 100, "data.dataset.source": "synthetic"}
    chosen |= {key.replace("__", "."): value for key, value in overrides.items()}
    simulation, rounds, _ = run(load_scenario("zcdp-secagg-adult", chosen), PLAN)
    return simulation, rounds


@pytest.mark.slow
def test_secagg_dropouts_loses_clients_at_every_stage_and_gives_up_rounds() -> None:
    played = play(load_scenario("secagg-dropouts"), dimension=2410)
    rounds, lost = played.rounds, np.zeros(len(SecAggStage))
    for this in rounds:
        record = this.round.secagg
        assert record is not None and record.threshold == 14
        lost += record.costs["dropouts"]
        heard = this.values["participants"]
        assert (heard == 0) == bool(record.abort_reason) and (heard == 0 or heard >= 14)
    stages = [SecAggStage.ADVERTISE_KEYS, SecAggStage.SHARE_KEYS, SecAggStage.MASKED_INPUT, SecAggStage.UNMASK]
    assert (lost[stages] > 0).all()
    given_up = [this for this in rounds if this.round.secagg is not None and this.round.secagg.abort_reason]
    assert 1 <= len(given_up) < len(rounds) / 2
    for this in given_up:
        assert len(this.round.with_status(Status.ABORTED)) < 14 and not len(this.round.with_status(Status.PARTICIPATED))
    assert any(len(this.round.with_status(Status.LATE)) for this in rounds)
    # Every event lies in the log of its own round, what happens to clients that are cut short at its end as well.
    begin = 0.0
    for number, this in enumerate(rounds, start=1):
        times, kinds = np.asarray(played.events[number - 1].time), np.asarray(played.events[number - 1].kind)
        assert begin <= times.min() and times.max() == this.values["sim_time"]
        assert kinds[-1] == EventKind.EVALUATE and np.count_nonzero(kinds == EventKind.EVALUATE) == 1
        begin = this.values["sim_time"]
        cut_short = {node for kind in (EventKind.LATE, EventKind.REFUSE) for _, node in played.times(kind, number)}
        assert set(this.clients[this.round.with_status(Status.LATE)].tolist()) <= cut_short
    assert 0 < played.simulation.state.energy_j < math.inf
    assert [index for index, _ in played.learner.received] == [this.index for this in rounds if this not in given_up]


@pytest.fixture(scope="module")
def census() -> tuple[Simulation, list[FinishedRound]]:
    """The scenario as it is."""
    return ran()


def test_theorem_1_divides_by_the_clients_of_a_round(census: tuple[Simulation, list[FinishedRound]]) -> None:
    simulation, rounds = census
    took_part = np.bincount(np.concatenate([this.clients for this in rounds]), minlength=16)
    sizes = simulation.deployment.network.registry.samples
    (release,) = rounds[0].round.releases
    sigma = getattr(release, "noise_std", math.nan)
    # ρ_i = 2 C_i τ G²/(r n γ σ²), G = 1, r = 10, γ = 204, τ = ⌈n/204⌉ = 10 for n = 2035 and 2036.
    assert set(sizes.tolist()) == {2035, 2036}
    rho = 2 * took_part * 10 / (10 * sizes * 204 * sigma**2)
    epsilon = rho + 2 * np.sqrt(rho * math.log(1e4))
    assert simulation.ledger.epsilon_published() == pytest.approx(epsilon.max(), rel=1e-12)
    # The noise is calibrated to ε = 10 for somebody who takes part in all four rounds, to a thousandth of itself.
    rho_of_all = 2 * 4 * 10 / (10 * 2035 * 204 * sigma**2)
    assert 9.98 < rho_of_all + 2 * math.sqrt(rho_of_all * math.log(1e4)) <= 10.0


def test_masks_earn_no_credit_that_is_not_proven(census: tuple[Simulation, list[FinishedRound]]) -> None:
    """Accounted is what plain uploads of the same noise would cost, whoever may collude; the reasons are given."""
    simulation, rounds = census
    accounted = simulation.ledger.epsilon_accounted()
    (release,) = rounds[0].round.releases
    plain, _ = ran(
        training__privacy={"mechanism": "zcdp", "clip": 1.0, "noise_std": getattr(release, "noise_std", math.nan)},
        **PLAIN_UPLOADS,
    )
    assert accounted == pytest.approx(plain.ledger.epsilon_accounted(), rel=1e-12)
    assert simulation.ledger.epsilon_published() < accounted
    (reason,) = [text for text in simulation.ledger.why_different() if "divides by" in text]
    for word in ("integer arithmetic", "later steps differ", "clipped or rescaled"):
        assert word in reason
    assert "collude" not in reason


@pytest.mark.parametrize(("colluding", "opened"), [(0, False), (8, False), (9, True), (15, True)])
def test_the_ledger_knows_who_may_collude(
    colluding: int, opened: bool, census: tuple[Simulation, list[FinishedRound]]
) -> None:
    """In `pairwise_prf` the nine others of ten know every mask of a client."""
    simulation, rounds = census
    scenario = load_scenario(
        "zcdp-secagg-adult", {"data.dataset.source": "synthetic", "privacy.colluding": colluding, "rounds": 1}
    )
    told = build_simulation(scenario, PLAN).ledger
    assert told.statement.colluding == colluding
    ledger = recompute([r for this in rounds for r in this.round.releases], simulation.ledger.facts, told.statement)
    assert ledger.epsilon_published() == simulation.ledger.epsilon_published()
    assert ledger.epsilon_accounted() == simulation.ledger.epsilon_accounted()
    reasons = " ".join(ledger.why_different())
    assert (f"{colluding} clients may collude, and 9 of a round are enough" in reasons) == opened


@pytest.mark.parametrize("adversary", ["server", "individual"])
def test_who_sees_every_upload_sees_every_upload(
    adversary: str, census: tuple[Simulation, list[FinishedRound]]
) -> None:
    simulation, rounds = census
    told = build_simulation(
        load_scenario("zcdp-secagg-adult", {"data.dataset.source": "synthetic", "privacy.adversary": adversary}), PLAN
    ).ledger.statement
    ledger = recompute([r for this in rounds for r in this.round.releases], simulation.ledger.facts, told)
    assert ledger.epsilon_accounted() == simulation.ledger.epsilon_accounted()
    assert any("sees every upload" in text for text in ledger.why_different()) == (adversary == "individual")


@pytest.mark.parametrize("name", ["secagg-dropouts", "zcdp-secagg-adult"])
def test_what_the_comments_propose_can_be_run(name: str) -> None:
    text = locate(name).read_text(encoding="utf-8")
    comments = " ".join(line.removeprefix("#") for line in text.splitlines() if line.startswith("#"))
    proposed = re.findall(r"(?:--set \S+(?: 0\.02\}\")? ?)+", comments)
    assert len(proposed) == 2
    for options in proposed:
        words = [word.rstrip(").") for word in shlex.split(options) if word != "--set"]
        scenario = load_scenario(name, [*words, "rounds=1"])
        simulation, _, _ = run(scenario.model_copy(update={"data": load_scenario("secagg-dropouts").data}), PLAN)
        assert simulation.state.round_index == 1
