"""Which clients are asked: the laws, a cost that does not follow the registered, and rules from outside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wirelessfl as wfl
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import run, small
from tests.statistics import assert_mean
from wirelessfl.errors import CheckFailed, ScenarioError
from wirelessfl.learning.conformance import check_selection
from wirelessfl.learning.selection import (
    SelectAll,
    Selection,
    SelectionContext,
    SelectionFacts,
    SelectPoisson,
    SelectRoundRobin,
    SelectUniform,
)
from wirelessfl.streams import Streams
from wirelessfl.trace import Status

STREAMS = Streams(5)


def context(registered: int, round_index: int) -> SelectionContext:
    """What rules know that read nothing."""
    return SelectionContext(registered, round_index, STREAMS)


@pytest.mark.parametrize(
    ("selection", "count"),
    [(SelectAll(), 12), (SelectUniform(), 4), (SelectRoundRobin(), 5), (SelectPoisson(0.3), 12)],
)
def test_ascending_and_without_repetition(selection: Selection, count: int) -> None:
    for round_index in range(1, 20):
        clients = selection.select(context(12, round_index), count)
        assert np.all(np.diff(clients) > 0)
        assert np.all((clients >= 0) & (clients < 12))
        np.testing.assert_array_equal(clients, selection.select(context(12, round_index), count))


@pytest.mark.parametrize(("registered", "count", "rounds"), [(16, 10, 24), (16, 10, 20), (7, 7, 3), (5, 2, 4)])
def test_in_turn_all_take_part_equally_often(registered: int, count: int, rounds: int) -> None:
    turns = np.zeros(registered, dtype=int)
    for index in range(rounds):
        turns[SelectRoundRobin().select(context(registered, index + 1), count)] += 1
        assert turns.max() - turns.min() <= 1  # after every round
    assert turns.sum() == rounds * count and turns.max() == math.ceil(rounds * count / registered)


def test_noise_for_clients_in_turn_meets_the_target_exactly() -> None:
    """Theorem 1 of the zCDP paper has C = T r/n participations of every device."""
    privacy = {"mechanism": "zcdp", "epsilon": 10.0, "target": "published"}
    overrides = {
        "data.dataset.source": "synthetic",
        "rounds": 16,
        "training.privacy": privacy,
        "privacy.delta": 1e-4,
        "clients.selection.scheme": "round_robin",
    }
    planned = wfl.make_plan("zcdp-secagg-adult", overrides=overrides)
    assert 9.9 < planned.forecast.epsilon_published <= 10
    drawn = wfl.make_plan("zcdp-secagg-adult", overrides=overrides | {"clients.selection.scheme": "uniform"})
    assert drawn.forecast.epsilon_published < 9.9  # noise for a client of all rounds, which nobody was


def test_uniform_gives_every_client_the_same_chance() -> None:
    rounds, registered, count = 4000, 10, 3
    share = count / registered
    hits = np.zeros((rounds, registered))
    for index in range(rounds):
        hits[index, SelectUniform().select(context(registered, index + 1), count)] = 1
    assert np.all(hits.sum(axis=1) == count)
    for client in range(registered):
        assert_mean(hits[:, client], share, np.sqrt(share * (1 - share)))


def test_poisson_counts_follow_the_binomial_law() -> None:
    rounds, registered, rate = 4000, 40, 0.2
    counts = np.array([len(SelectPoisson(rate).select(context(registered, m + 1), registered)) for m in range(rounds)])
    assert_mean(counts.astype(float), registered * rate, np.sqrt(registered * rate * (1 - rate)))


def test_a_million_registered_are_not_looked_at() -> None:
    clients = SelectUniform().select(context(10**12, 1), 50)
    assert len(clients) == 50 and clients.max() > 10**9


@dataclass(frozen=True)
class Best:
    """The clients with the largest numbers of one kind, those not known yet first."""

    by: str

    def facts(self) -> SelectionFacts:
        return SelectionFacts(frozenset({self.by}))  # type: ignore[arg-type]

    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        known = np.nan_to_num(getattr(context, self.by), nan=np.inf)
        return np.sort(np.argsort(-known, kind="stable")[:count]).astype(np.int64)


class Curious(Best):
    """Reads what it does not admit."""

    def facts(self) -> SelectionFacts:
        return SelectionFacts()


class Greedy(Best):
    """Selects one client too many."""

    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        return super().select(context, count + 1)


def own(by: str, rule: str = "Best", **changes: Any) -> dict[str, Any]:
    """A rule from outside that asks for two of six clients."""
    scheme = {"scheme": f"tests.learning.test_selection:{rule}", "count": 2, "options": {"by": by}}
    return {"clients__selection": scheme, "uplink": {"kind": "digital"}, "rounds": 5, **changes}


@pytest.mark.parametrize("by", ["samples", "gains", "losses", "age"])
def test_a_rule_from_outside_is_told_what_was_last_known(by: str) -> None:
    """Against what the rounds themselves recorded."""
    simulation, rounds, _ = run(small(**own(by, data__partition={"scheme": "sizes", "exponent": 0.7})))
    samples = simulation.deployment.network.registry.samples
    known = samples.astype(float) if by == "samples" else np.full(6, np.inf)
    for this in rounds:
        values = known + this.index if by == "age" else known  # here known is minus the round in which it was heard
        wanted = np.sort(np.argsort(-values, kind="stable")[:2])
        np.testing.assert_array_equal(this.clients, wanted)
        heard = np.flatnonzero(this.status == Status.PARTICIPATED)
        if by == "gains":
            known[this.clients] = np.abs(this.slots["csi_re"] + 1j * this.slots["csi_im"]) ** 2
        elif by == "losses":
            known[this.clients[heard]] = this.round.train_loss(heard)
        elif by == "age":
            known[this.clients[heard]] = -this.index
    assert len({tuple(this.clients.tolist()) for this in rounds}) > 1 or by == "samples"


@pytest.mark.parametrize("by", ["gains", "losses", "age"])
def test_what_is_known_is_in_the_checkpoint(by: str, tmp_path: Path) -> None:
    goes_on_to_the_same_bits(small(**own(by)), tmp_path)


@pytest.mark.parametrize("uplink", ["digital", "over_the_air"])
def test_losses_make_every_epsilon_infinite_and_gains_do_not(uplink: str) -> None:
    noise = {"mechanism": "gaussian", "noise_multiplier": 1.5, "clip": 1.0}
    for by, finite in (("gains", True), ("losses", False)):
        changes = own(by, training__privacy=noise) | {"uplink": {"kind": uplink}}
        simulation, rounds, _ = run(small(**changes))
        assert np.isfinite(rounds[-1].values["epsilon_accounted"]) == finite
        reasons = " ".join(simulation.ledger.why_different())
        assert ("clients report their losses without noise" in reasons) == (not finite)


@pytest.mark.parametrize(("rule", "words"), [("Curious", "reads losses; allowed"), ("Greedy", "at most 2 ascending")])
def test_a_rule_that_breaks_its_word_is_refused(rule: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=rf"clients\.selection\.scheme: .*{words}"):
        run(small(**own("losses", rule)))
    with pytest.raises(CheckFailed, match="not conforming"):
        check_selection({"Curious": Curious, "Greedy": Greedy}[rule]("losses"))


def test_conformance() -> None:
    for by in ("samples", "gains", "losses", "age"):
        check_selection(Best(by))
    for rule, count in ((SelectAll(), 40), (SelectUniform(), 7), (SelectPoisson(0.2), 40)):
        check_selection(rule, count=count)
    with pytest.raises(ValueError, match="cannot read hearts"):
        Best("hearts").facts()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"aggregation__mode": "asynchronous"}, r"clients\.selection\.scheme.*allowed: all \| uniform"),
        (
            {
                "uplink": {"kind": "ideal"},
                "training__privacy": {"mechanism": "gaussian", "unit": "client", "noise_multiplier": 1.0, "clip": 1.0},
            },
            r"training\.privacy\.unit.*allowed: sample, or the selection",
        ),
        ({"clients__count": 1}, r"clients\.selection\.count: found 2; allowed: at most 1"),
    ],
)
def test_where_a_known_probability_is_needed_it_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        small(**own("age") | change)
