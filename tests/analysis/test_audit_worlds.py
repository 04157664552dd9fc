"""Mechanisms that treat some inputs, clients, steps or rounds otherwise than their record says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wirelessfl.analysis.audit.canaries as canaries
from tests.analysis import audit_wrong_clients as wrong_clients
from tests.analysis import audit_wrong_uplinks as wrong_uplinks
from tests.analysis.audit_examples import (
    audited,
    built,
    jammed,
    local,
    trusted,
    whole_update,
    with_gradients,
    with_server,
    with_uplink,
)
from tests.statistics import shifted
from wirelessfl.analysis.audit.games import Observations
from wirelessfl.analysis.audit.worlds import world_faults
from wirelessfl.learning.batches import plan_batches
from wirelessfl.simulation import Simulation

TRIALS, EVENTS, RATE = 60, 12, 0.25


def observations(seed: int, exchange: bool, coupled: bool, secret: bool) -> Observations:
    """Those of a sound mechanism, under the same noise in both worlds or under noise of its own in each."""
    generator = np.random.default_rng(shifted(seed))
    recorded = generator.uniform(0.5, 2.0, EVENTS)
    noise = recorded * generator.standard_normal((2, TRIALS, EVENTS))
    shift = recorded * generator.uniform(0.1, 3.0, EVENTS)
    included = generator.uniform(size=(TRIALS, EVENTS)) < RATE if secret else np.ones((TRIALS, EVENTS), dtype=bool)
    moved = included * shift
    return Observations(
        plus=noise[0] + moved * (0.5 if exchange else 1.0),
        minus=noise[0 if coupled else 1] - moved * (0.5 if exchange else 0.0),
        shift=shift,
        exchange=exchange,
        sample_rate=RATE if secret else 1.0,
        included=included,
        gaussian=True,
        recorded_std=recorded,
        independent=secret,
    )


@pytest.mark.parametrize("secret", [False, True])
@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("exchange", [False, True])
def test_sound_worlds_fail_no_more_often_than_stated(exchange: bool, coupled: bool, secret: bool) -> None:
    """At a rate of 20 % over 100 games."""
    failures = sum(bool(world_faults(observations(4000 + i, exchange, coupled, secret), 0.2)) for i in range(100))
    assert failures <= stats.binom(100, 0.2).isf(1e-6)


def poisson(wrong: type[Any]) -> Simulation:
    return with_uplink(trusted(clients__selection={"scheme": "poisson", "rate": 0.3}), wrong)


def fast_air(rounds: int, wrong: type[Any]) -> Simulation:
    return with_uplink(built(training__privacy__mechanism="none", rounds=rounds), wrong)


SMALL, AGAIN, FAR = "smaller than recorded", "used again", "by more than recorded"

TREATED_OTHERWISE: dict[str, tuple[Callable[[], Simulation], str]] = {
    "the noise of seven rounds ago": (
        lambda: with_gradients(local(rounds=12), noise=wrong_clients.RoundsAlikeEverySeven),
        AGAIN,
    ),
    "less noise in one layer": (lambda: with_gradients(local(), noise=wrong_clients.LessInTheLastLayer), "stretches"),
    "less noise in the first step": (
        lambda: with_gradients(local(), noise=wrong_clients.LessInTheFirstStep),
        "values of the step, step 1 being the worst",
    ),
    "less noise under gradients": (
        lambda: with_gradients(local(), noise=wrong_clients.LessUnderGradients),
        "with the canary is smaller",
    ),
    "a tenth of the clients not clipped": (
        lambda: with_gradients(local(), wrong_clients.SomeUnclipped),
        "does not change all outputs equally",
    ),
    "one round without noise": (lambda: fast_air(20, wrong_uplinks.OneRoundWithoutNoise), "round 17"),
    "one jammer noise for all rounds": (lambda: with_uplink(jammed(), wrong_uplinks.OneJammerNoiseForAllRounds), AGAIN),
    "one noise for both quadratures": (
        lambda: with_uplink(
            built(training__privacy__mechanism="none", uplink__iq_packing=True),
            wrong_uplinks.SameNoiseInBothQuadratures,
        ),
        "same on different coordinates",
    ),
    "one client louder": (lambda: with_uplink(whole_update(), wrong_uplinks.LouderThanRecorded), FAR),
    "one client not clipped by the server": (lambda: with_server(trusted(), wrong_uplinks.OneUnclipped), FAR),
    "no noise in empty rounds": (lambda: poisson(wrong_uplinks.NoNoiseWithoutClients), "senders 0"),
    "noise by attendance": (lambda: poisson(wrong_uplinks.NoiseByAttendance), SMALL),
}


@pytest.mark.parametrize(("build", "words"), TREATED_OTHERWISE.values(), ids=TREATED_OTHERWISE.keys())
def test_what_is_treated_otherwise_is_caught(build: Callable[[], Simulation], words: str) -> None:
    audit = audited(build())
    assert math.isfinite(audit.epsilon_accounted) and audit.contradicts_ledger
    assert any(words in fault for fault in audit.noise_faults), audit.noise_faults


def test_a_last_batch_that_is_not_clipped_is_caught_by_the_game() -> None:
    shuffled = local(training__batch_size=7, privacy={"sampling": "shuffle"})
    assert audited(with_gradients(shuffled, wrong_clients.LastBatchUnclipped)).epsilon_empirical == math.inf


def as_shuffled(sampling: str, *arguments: Any) -> Any:
    """Every sample in one batch of a pass, whatever is asked for."""
    return plan_batches("shuffle", *arguments)


def with_the_first(*arguments: Any) -> Any:
    """Sample 0 takes the first place of every batch."""
    batches = plan_batches(*arguments)
    batches.index[:, :, 0] = 0
    return batches


@pytest.mark.parametrize(
    ("plan", "words"), [(as_shuffled, "not sampled independently"), (with_the_first, "sampled more often")]
)
def test_batches_that_are_no_poisson_sample_are_caught(
    plan: Callable[..., Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canaries, "plan_batches", plan)
    faults = audited(local()).noise_faults
    assert any(words in fault for fault in faults), faults
