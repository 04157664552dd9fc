"""Losses that free riders report where a selection rule reads them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.simulation.scenarios import small
from tests.simulation.test_loss_selection import CHOICE, OORT, plain_losses, played, scenario
from wirelessfl.learning.roles import claimed_loss
from wirelessfl.learning.selection import LossReports
from wirelessfl.scenario import Scenario
from wirelessfl.trace import Role

RIDERS = {"clients__roles": [{"role": "free_rider", "count": 3}]}


def with_riders(selection: dict[str, Any], **changes: Any) -> Scenario:
    return scenario(selection, **RIDERS | {"rounds": 6} | changes)


@pytest.mark.parametrize("loss", ["fresh", "minibatch", "last"])
def test_a_free_rider_claims_the_loss_of_a_guess(loss: str) -> None:
    """Digits have ten classes; honest losses are those of a plain computation, where they are of all samples."""
    simulation, rounds, models = played(with_riders({**CHOICE, "candidates": 5, "loss": loss}))
    roles, seen = simulation.deployment.roles, 0
    assert roles is not None
    for this, model in zip(rounds, models, strict=False):
        scores = this.slots["selection_score"]
        for client, score in zip(this.clients.tolist(), scores.tolist(), strict=True):
            if roles.of(np.array([client]))[0] == Role.FREE_RIDER:
                seen += 1
                assert score == pytest.approx(math.log(10)) or (loss == "last" and math.isinf(score))
            elif loss == "fresh":
                assert score == pytest.approx(plain_losses(simulation, model, client).mean(), rel=1e-5)
    assert seen


def test_oort_hears_a_number_of_every_free_rider() -> None:
    simulation, rounds, _ = played(with_riders(OORT))
    roles, known = simulation.deployment.roles, simulation.deployment.selection.heard
    losses = dict(zip(known.nodes.tolist(), known.column("losses").tolist(), strict=True))
    assert roles is not None
    heard = np.unique(np.concatenate([this.clients[this.status == 1] for this in rounds]))
    riders = heard[roles.have(heard, Role.FREE_RIDER)]
    assert len(riders) and all(math.isfinite(losses[client]) for client in heard.tolist())
    assert [losses[client] for client in riders.tolist()] == pytest.approx([claimed_loss(10)] * len(riders))


def test_a_claim_is_noised_and_clipped_like_a_loss() -> None:
    """The noise of a client is that of its own stream, whether or not others report."""
    simulation, rounds, _ = played(with_riders({**CHOICE, "loss_noise_std": 0.5, "loss_clip": 2.0}, rounds=1))
    roles, asked = simulation.deployment.roles, rounds[0].round.before.asked
    assert roles is not None and asked is not None
    reports = LossReports("asked", "mean", 0.5, 2.0)
    streams = simulation.deployment.network.streams
    wanted = reports.noised(np.full(len(asked), math.log(10)), streams.nodes("selection_noise", 1, asked))
    for client, score in zip(rounds[0].clients.tolist(), rounds[0].slots["selection_score"].tolist(), strict=True):
        if roles.of(np.array([client]))[0] == Role.FREE_RIDER:
            assert score == pytest.approx(wanted[asked.tolist().index(client)])


def test_a_run_of_free_riders_alone_goes_on() -> None:
    _, rounds, _ = played(small(clients__selection=OORT, clients__roles=[{"role": "free_rider", "count": 6}]))
    assert len(rounds) == 3
