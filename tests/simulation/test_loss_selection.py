"""Selection that follows losses: power of choice and Oort in runs, their query, their state."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import wirelessfl as wfl
from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scenarios import PLAN, run, small
from tests.statistics import assert_mean
from wirelessfl.assembly import build_simulation
from wirelessfl.errors import ScenarioError
from wirelessfl.learning.losses import local_losses
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound, Simulation
from wirelessfl.trace import EventKind, Status

CHOICE: dict[str, Any] = {"scheme": "power_of_choice", "count": 2, "candidates": 4}
OORT: dict[str, Any] = {"scheme": "oort", "count": 2}
DIGITAL = {"kind": "digital"}
SIZES = {"limit": 240, "partition": {"scheme": "sizes", "exponent": 0.7}}


def scenario(selection: dict[str, Any], **changes: Any) -> Scenario:
    """Six clients of different sizes."""
    return small(**{"clients__selection": selection, "uplink": DIGITAL, "rounds": 5, "data": SIZES} | changes)


def played(chosen: Scenario) -> tuple[Simulation, list[FinishedRound], list[NDArray[np.float32]]]:
    """A run, and the global model before each round."""
    simulation = build_simulation(chosen, PLAN)
    rounds: list[FinishedRound] = []
    models = [simulation.state.parameters.copy()]

    def keep(this: FinishedRound, _: Any) -> None:
        rounds.append(this)
        models.append(simulation.state.parameters.copy())

    simulation.run(keep)
    return simulation, rounds, models


def plain_losses(simulation: Simulation, parameters: NDArray[np.float32], client: int) -> NDArray[np.float64]:
    """Cross entropy of every sample of a client, in double precision, sample by sample."""
    learner = simulation.deployment.learner
    shards = learner.population.shards(np.array([client]))
    own = shards.index[0, : int(shards.sizes[0])]
    flat = torch.from_numpy(parameters.astype(np.float64))
    module = learner.model.replica(torch.device("cpu")).module.double()
    named = learner.model.unflatten(flat)
    losses = []
    for row in own.tolist():
        logits = torch.func.functional_call(module, named, (shards.inputs[row][None].double(),))
        losses.append(float(-torch.log_softmax(logits, dim=1)[0, shards.targets[row]].detach()))
    return np.array(losses)


def test_the_candidates_with_the_largest_losses_of_the_current_model_take_part() -> None:
    simulation, rounds, models = played(scenario(CHOICE))
    for this, model in zip(rounds, models, strict=False):
        asked = this.round.before.asked
        assert asked is not None and len(asked) == 4 and set(this.clients.tolist()) <= set(asked.tolist())
        losses = {client: float(plain_losses(simulation, model, client).mean()) for client in asked.tolist()}
        assert sorted(losses, key=lambda client: -losses[client])[:2] == sorted(
            this.clients.tolist(), key=lambda client: -losses[client]
        )
        np.testing.assert_allclose(this.slots["selection_score"], [losses[c] for c in this.clients.tolist()], rtol=1e-5)


def test_candidates_are_drawn_in_proportion_to_their_samples() -> None:
    """One candidate a round: p_k."""
    chosen = scenario({**CHOICE, "count": 1, "candidates": 1})
    selection = build_simulation(chosen, PLAN).deployment.selection
    from wirelessfl.radio.propagation import Moment

    draws, samples = 2000, selection.network.registry.samples
    hits = np.zeros((draws, 6))
    for index in range(draws):
        hits[index, selection.candidates(Moment(index + 1, 0.0))] = 1
    for client, share in enumerate(samples / samples.sum()):
        assert_mean(hits[:, client], share, math.sqrt(share * (1 - share)))


def test_a_mini_batch_gives_an_unbiased_loss_of_few_samples() -> None:
    simulation = build_simulation(
        scenario({**CHOICE, "loss": "minibatch"}, training={"batch_size": 3, "steps": 1}), PLAN
    )
    learner, reports = simulation.deployment.learner, simulation.deployment.selection.reports
    start, client = simulation.state.parameters, np.array([1])
    whole = plain_losses(simulation, start, 1)
    found = np.array([learner.reported(start, client, index, reports)[0] for index in range(1, 500)])
    left = len(whole)
    assert_mean(found, float(whole.mean()), float(whole.std()) * math.sqrt((left - 3) / (left - 1) / 3))


def test_the_last_losses_count_and_nobody_is_asked() -> None:
    _, rounds, _ = played(scenario({**CHOICE, "loss": "last", "candidates": 6}, rounds=8))
    known = np.full(6, np.inf)
    for this in rounds:
        assert this.round.before.asked is None
        assert sorted(known[this.clients].tolist()) == sorted(known.tolist())[-2:]
        heard = np.flatnonzero(this.status == Status.PARTICIPATED)
        known[this.clients[heard]] = this.round.train_loss(heard)


def test_a_query_takes_the_time_of_broadcast_and_slowest_evaluation_and_the_model_is_sent_once() -> None:
    timing = {"cpu_hz": [1e9, 1e9], "straggler_scale": 0.0, "downlink_bps": 1e6}
    asked_run = scenario(CHOICE, rounds=1, timing=timing, uplink={"kind": "ideal"})
    simulation, rounds, events = run(asked_run)
    this, batch = rounds[0], events[0]
    asked = this.round.before.asked
    assert asked is not None
    samples, dimension = simulation.deployment.network.registry.samples, simulation.deployment.learner.dimension
    query = 32 * dimension / 1e6 + samples[asked].max() * 1e6 / 1e9 / 3
    assert this.values["sim_time"] == pytest.approx(query + samples[this.clients].max() * 1e6 / 1e9, rel=1e-9)
    kinds, bits = np.asarray(batch.kind), np.asarray(batch.bits)
    assert np.count_nonzero(kinds == EventKind.BROADCAST) == 1
    np.testing.assert_array_equal(bits[kinds == EventKind.REPORT_LOSS], [32] * 4)


def test_those_who_cannot_be_reached_do_not_answer() -> None:
    _, rounds, _ = played(scenario(CHOICE, rounds=12, faults__availability={"model": "bernoulli", "p": 0.4}))
    sizes = [len(this.clients) for this in rounds]
    assert min(sizes) < 2 <= max(sizes)
    assert all((this.status != Status.UNAVAILABLE).all() for this in rounds)


def plain_oort(rounds: list[FinishedRound], utilities: list[dict[int, float]], count: int) -> None:
    """Oort's exploitation by dictionaries: every exploited client is admitted by the cutoff of its round."""
    known: dict[int, tuple[float, float, int]] = {}
    for this, gained in zip(rounds, utilities, strict=True):
        durations = [duration for _, duration, _ in known.values()]
        largest = float(np.percentile([one for one, _, _ in known.values()], 95.0)) if known else 0.0
        scores = {}
        for client, (utility, duration, last) in known.items():
            score = min(utility, largest) + math.sqrt(0.1 * math.log(this.index) / last)
            preferred = float(np.percentile(durations, 30.0))
            scores[client] = score * (preferred / duration) ** 2.0 if duration > preferred else score
        fresh = [client for client in this.clients.tolist() if client not in known]
        share = max(0.2, 0.9 * 0.98 ** (this.index - 1))
        explored = min(6 - len(known), max(round(share * count), count - len(known)))
        assert len(fresh) == explored
        exploited = [client for client in this.clients.tolist() if client in known]
        wanted = count - explored
        if wanted:
            edge = sorted(scores.values(), reverse=True)[wanted - 1]
            assert all(scores[client] >= 0.95 * edge for client in exploited)
        for client, score in zip(this.clients.tolist(), this.slots["selection_score"], strict=True):
            assert score == pytest.approx(scores.get(client, math.nan), nan_ok=True, rel=1e-5)
        time = this.round.compute_time + this.round.time_on_air
        for place, client in enumerate(this.clients.tolist()):
            known[client] = gained[client], float(time[place]), this.index


def test_oort_step_by_step() -> None:
    simulation, rounds, models = played(scenario(OORT, rounds=9))
    utilities = []
    for this, model in zip(rounds, models, strict=False):
        losses = {client: plain_losses(simulation, model, client) for client in this.clients.tolist()}
        utilities.append({c: len(own) * math.sqrt(float((own**2).mean())) for c, own in losses.items()})
    plain_oort(rounds, utilities, 2)


def test_the_pacer_admits_slower_clients_where_utility_falls() -> None:
    from wirelessfl.learning.selection import RoundFeedback, SelectOort

    rule, one = SelectOort(), np.zeros(1, dtype=np.int64)
    for index in range(1, 81):
        loss = np.array([100.0 - index])
        rule.learn(RoundFeedback(5, index, one, loss, loss, one + 4, loss))
    assert rule.percentile == 30.0 + 5 * 3  # after 40, 60 and 80 rounds
    again = SelectOort()
    again.restore(rule.state())
    assert again.percentile == rule.percentile and again.gathered == rule.gathered and len(again.gathered) == 40


NOISY = {"loss_noise_std": 2.0, "loss_clip": 3.0}


@pytest.mark.parametrize("selection", [CHOICE, {**CHOICE, "loss": "last", **NOISY}, OORT, {**OORT, **NOISY}])
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(selection: dict[str, Any], tmp_path: Path) -> None:
    goes_on_to_the_same_bits(scenario(selection, rounds=6, uplink={"kind": "over_the_air"}), tmp_path)


@pytest.mark.parametrize("kind", ["ideal", "over_the_air", "digital", "secure_aggregation"])
@pytest.mark.parametrize("selection", [CHOICE, OORT])
def test_every_uplink(kind: str, selection: dict[str, Any]) -> None:
    uplink = {"kind": kind} | ({"protocol": "pairwise_prf"} if kind == "secure_aggregation" else {})
    _, rounds, _ = played(scenario(selection, uplink=uplink, rounds=2))
    assert all(len(this.clients) == 2 and this.values["participants"] > 0 for this in rounds)


@pytest.mark.parametrize(
    ("selection", "changes", "words"),
    [
        ({**CHOICE, "candidates": 1}, {}, r"clients\.selection\.candidates: found 1; allowed: at least 2"),
        ({**CHOICE, "candidates": 7}, {}, r"clients\.selection\.candidates: found 7; allowed: at most 6"),
        ({**CHOICE, "count": 7, "candidates": 9}, {}, r"clients\.selection\.count: found 7; allowed: at most 6"),
        ({**CHOICE, "loss_noise_std": 0}, {}, r"clients\.selection\.loss_noise_std: found 0"),
        ({**CHOICE, "loss_noise_std": 1.0, "loss_clip": -1}, {}, r"clients\.selection\.loss_clip: found -1"),
        (
            {**CHOICE, "loss": "guess"},
            {},
            r"selection\.loss: found guess; allowed: fresh \| minibatch \| last",
        ),
        ({**OORT, "cutoff": 1.5}, {}, r"clients\.selection\.cutoff: found 1\.5"),
        ({**OORT, "exploration": 2}, {}, r"clients\.selection\.exploration: found 2"),
        ({**OORT, "alpha": -1}, {}, r"clients\.selection\.alpha: found -1"),
        (CHOICE, {"aggregation__mode": "asynchronous"}, r"clients\.selection\.scheme.*allowed: all \| uniform"),
        (
            CHOICE,
            {"topology": {"kind": "hierarchical"}, "uplink": {"kind": "over_the_air"}},
            r"clients\.selection\.loss: found fresh with topology\.kind: hierarchical",
        ),
    ],
)
def test_bad_input_is_refused(selection: dict[str, Any], changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        scenario(selection, **changes)


@pytest.mark.slow
def test_power_of_choice_needs_fewer_rounds_to_a_loss_than_uniform_draws() -> None:
    """Cho et al., Fig. 3 in kind: synthetic(1, 1), 3 of 30 clients, 12 candidates; five seeds together."""
    rounds_to = {"uniform": 0, "power_of_choice": 0}
    for seed in range(1, 6):
        for scheme, keys in (("uniform", {}), ("power_of_choice", {"candidates": 12})):
            changes = {
                "clients.selection": {"scheme": scheme, "count": 3, **keys},
                "seed": seed,
                "rounds": 80,
                "uplink": {"kind": "ideal"},
            }
            simulation = build_simulation(wfl.load_scenario("power-of-choice", overrides=changes), PLAN)
            losses: list[float] = []

            def keep(
                this: FinishedRound, _: Any, simulation: Simulation = simulation, losses: list[float] = losses
            ) -> None:
                learner, everyone = simulation.deployment.learner, np.arange(30)
                parameters = torch.from_numpy(simulation.state.parameters)
                mean = local_losses(learner.model, parameters, learner.population, everyone, None).mean
                losses.append(float(np.average(mean, weights=learner.population.sizes)))

            simulation.run(keep)
            rounds_to[scheme] += int(np.argmax(np.array([*losses, 0.0]) <= 0.95)) + 1
    assert rounds_to["power_of_choice"] < 0.8 * rounds_to["uniform"], rounds_to
