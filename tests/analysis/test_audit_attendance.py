"""Who is heard in a game on secret selection: what the server of a run would hear; and what empty rounds tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.analysis import audit_examples as examples
from tests.analysis import audit_wrong_uplinks as wrong_uplinks
from tests.analysis.audit_examples import audited, trusted
from tests.statistics import assert_probability
from wirelessfl.analysis.audit.choice import choose_game
from wirelessfl.analysis.audit.rehearsal import rehearse_for_audit
from wirelessfl.analysis.audit.slots import SecretSlots
from wirelessfl.errors import InfeasibleError
from wirelessfl.simulation import Round, Simulation
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.uplinks import ServerNoise, TrustedServer
from wirelessfl.trace import Status

POISSON = {"scheme": "poisson", "rate": 0.5}

ATTENDANCES: dict[str, dict[str, Any]] = {
    "all": {},
    "a quorum": {"timing__wait_for": {"count": 2}},
    "a share": {"timing__wait_for": {"fraction": 0.5}},
    "a deadline": {"timing__deadline_s": 0.2},
    "who can be reached": {"faults__availability": {"model": "bernoulli", "p": 0.6}},
    "crashes": {"faults__crash_rate_per_s": 5.0},
    "all of it": {
        "timing__wait_for": {"count": 2},
        "timing__deadline_s": 0.3,
        "faults__availability": {"model": "bernoulli", "p": 0.8},
        "faults__crash_rate_per_s": 1.0,
    },
}


def secretive(**overrides: Any) -> Simulation:
    """A trusted server with secret selection among clients of different speed."""
    slow = {"timing__cycles_per_sample": 1e7, "timing__straggler_scale": 1.0}
    return trusted(clients={"count": 10, "selection": POISSON}, **slow, **overrides)


@pytest.mark.parametrize("overrides", ATTENDANCES.values(), ids=ATTENDANCES.keys())
def test_those_are_heard_whom_the_server_of_a_run_hears(overrides: dict[str, Any]) -> None:
    simulation = secretive(rounds=20, **overrides)
    parts = simulation.deployment
    server = parts.uplink.audit_view()
    assert isinstance(parts.learner, Learner) and isinstance(server, ServerNoise)
    slots, rounds = SecretSlots(server, parts, parts.learner, 0, []), list[Round]()
    simulation.run(lambda this, _: rounds.append(this.round))
    missing = 0
    for this in rounds:
        heard = slots.heard(this.clients, this.index, parts.network.streams)
        assert heard.tolist() == this.with_status(Status.PARTICIPATED).tolist()
        missing += len(this.clients) - len(heard)
    assert (missing > 0) == bool(overrides)


def test_a_quorum_is_drawn_in_every_trial() -> None:
    alone = {"timing__wait_for": {"count": 1}, "rounds": 20}
    choice = choose_game(rehearse_for_audit(secretive(**alone)))
    seen = choice.game.play(30, lambda part: None)
    # With 10 clients one is heard, unless nobody is selected: all clients together with probability 1 − 2^−10.
    assert 0 < seen.included.mean() < 0.5
    quiet = choose_game(rehearse_for_audit(secretive(rounds=20))).game.play(30, lambda part: None)
    assert_probability(int(quiet.included.sum()), quiet.included.size, 0.5)


@pytest.mark.parametrize("overrides", list(ATTENDANCES.values())[1:], ids=list(ATTENDANCES)[1:])
def test_secret_attendance_stands(overrides: dict[str, Any]) -> None:
    assert not audited(secretive(**overrides)).contradicts_ledger


@pytest.mark.parametrize(
    ("faults", "word"),
    [({"model": "gilbert_elliott", "p_leave": 0.1, "p_return": 0.4}, "GilbertElliott")],
)
def test_who_depends_on_earlier_rounds_cannot_be_played(faults: dict[str, Any], word: str) -> None:
    with pytest.raises(InfeasibleError, match=f"cannot be audited.*{word}"):
        audited(secretive(faults__availability=faults))


def lonely() -> Simulation:
    """Two clients, of which hardly ever both are selected."""
    return trusted(rounds=10, clients={"count": 2, "selection": {"scheme": "poisson", "rate": 0.2}}, data={"limit": 40})


def test_rounds_without_noise_tell_who_was_not_there() -> None:
    """Where empty rounds are skipped, what is not skipped tells of the canary."""
    simulation = lonely()
    uplink = simulation.deployment.uplink
    assert isinstance(uplink, TrustedServer)
    skipping = examples.as_other(uplink, wrong_uplinks.SkipsEmptyRounds)
    simulation.deployment = replace(simulation.deployment, uplink=skipping)
    choice = choose_game(rehearse_for_audit(simulation))
    seen = choice.game.play(40, lambda part: None)
    assert seen.silent is not None
    assert_probability(int(seen.silent[0].sum()), seen.silent[0].size, 0.8**2)
    assert_probability(int(seen.silent[1].sum()), seen.silent[1].size, 0.8)
    assert np.all(seen.minus[seen.silent[1]] == 0)


@pytest.mark.slow
def test_skipped_rounds_are_caught() -> None:
    assert not audited(lonely(), 20).contradicts_ledger
    simulation = lonely()
    uplink = simulation.deployment.uplink
    assert isinstance(uplink, TrustedServer)
    skipping = examples.as_other(uplink, wrong_uplinks.SkipsEmptyRounds)
    simulation.deployment = replace(simulation.deployment, uplink=skipping)
    wrong = audited(simulation, 20)
    assert wrong.contradicts_ledger and "nothing is released in one of the two worlds" in wrong.contradiction
