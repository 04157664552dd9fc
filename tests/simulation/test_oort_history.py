"""Oort's whole history, in runs: the clients of every round by a plain loop with dictionaries, draws included."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.simulation.scenarios import PLAN, small
from tests.simulation.test_loss_selection import plain_losses
from wirelessfl.assembly import build_simulation
from wirelessfl.simulation import FinishedRound, Simulation
from wirelessfl.simulation.uplinks import OverTheAir
from wirelessfl.trace import EventBatch, EventKind, Status

CLIENTS, COUNT = 12, 4
OORT: dict[str, Any] = {
    "clients__count": CLIENTS,
    "clients__selection": {"scheme": "oort", "count": COUNT},
    "data": {"limit": 180, "partition": {"scheme": "sizes", "exponent": 0.7}},
    "timing__cpu_hz": [2e8, 2e9],
    "uplink": {"kind": "digital"},
    "rounds": 24,
    "evaluate__every": 100,
}
AWAY = {"faults__availability": {"model": "bernoulli", "p": 0.6}, "faults__crash_rate_per_s": 2.0}
PARTLY: dict[str, Any] = {
    "timing__compute_deadline_s": 0.02,
    "timing__deadline_s": 3.0,
    "training": {"algorithm": {"name": "fedavg"}, "epochs": 4, "batch_size": 4, "partial_work": True},
}
EDGES: dict[str, Any] = {
    "topology": {"kind": "hierarchical", "edge_rounds": 3},
    "uplink": {"kind": "over_the_air"},
    "channel__pathloss": {"model": "log_distance"},
    "rounds": 20,
}


@dataclass
class Oort:
    """Algorithm 1 client by client: reported utility, duration and last round of all that were heard."""

    known: dict[int, tuple[float, float, int]] = field(default_factory=dict)

    def scores(self, index: int) -> dict[int, float]:
        """Utilities in a round."""
        preferred = quantile([duration for _, duration, _ in self.known.values()], 0.30)
        most = quantile([utility for utility, _, _ in self.known.values()], 0.95)
        found = {}
        for client, (utility, duration, last) in sorted(self.known.items()):
            score = min(utility, most) + math.sqrt(0.1 * math.log(index) / last)
            found[client] = score * (preferred / duration) ** 2 if preferred < duration else score
        return found

    def selected(self, index: int, speed: list[float], generator: np.random.Generator) -> list[int]:
        """The clients of a round."""
        share = 0.9
        for _ in range(index - 1):
            share = max(0.2, share * 0.98)
        scores = self.scores(index)
        new = [client for client in range(CLIENTS) if client not in scores]
        explored = min(len(new), max(round(share * COUNT), COUNT - len(scores)))
        clients = drawn(new, speed, explored, generator)
        if wanted := COUNT - explored:
            edge = sorted(scores.values())[-wanted]
            admitted = [client for client, score in scores.items() if score >= 0.95 * edge]
            clients += drawn(admitted, [scores.get(client, 0.0) for client in range(CLIENTS)], wanted, generator)
        return sorted(clients)


def quantile(values: list[float], share: float) -> float:
    """Linear between the two numbers of a sorted list."""
    if not values:
        return math.nan
    place = share * (len(values) - 1)
    low, high = sorted(values)[math.floor(place)], sorted(values)[math.ceil(place)]
    return low + (high - low) * (place % 1)


def drawn(clients: list[int], weight: list[float], count: int, generator: np.random.Generator) -> list[int]:
    """Successive draws by weight: the first of exponential clocks."""
    clocks = dict(zip(clients, generator.standard_exponential(len(clients)).tolist(), strict=True))
    return sorted(clients, key=lambda client: clocks[client] / weight[client])[:count]


def played(changes: dict[str, Any]) -> tuple[Simulation, list[FinishedRound], list[EventBatch], list[NDArray[Any]]]:
    """A run with its rounds, their events, and before each round the models (C, d) of edges, or the only one (1, d)."""
    simulation = build_simulation(small(**OORT | changes), PLAN)
    rounds: list[FinishedRound] = []
    events: list[EventBatch] = []
    models = [simulation.state.parameters[None].copy()]

    def keep(this: FinishedRound, batch: EventBatch) -> None:
        uplink, models_now = simulation.deployment.uplink, simulation.state.parameters[None]
        if isinstance(uplink, OverTheAir) and uplink.edges is not None and uplink.edges.models is not None:
            models_now = uplink.edges.models
        rounds.append(this)
        events.append(batch)
        models.append(models_now.copy())

    simulation.run(keep)
    return simulation, rounds, events, models


def seconds_at_work(this: FinishedRound, events: EventBatch, client: int) -> float:
    """Training and upload of a client who was heard, by the events; a common slot lasts as long as the air was used."""
    kind, time, own = np.asarray(events.kind), np.asarray(events.time), np.asarray(events.node) == client

    def at(what: EventKind) -> NDArray[Any]:
        return np.asarray(time[own & (kind == what)])

    trained = float(at(EventKind.COMPUTE_END)[0] - at(EventKind.COMPUTE_START)[0])
    if not len(at(EventKind.ARRIVE)):
        return trained + float(this.values["airtime"])
    return trained + float(at(EventKind.ARRIVE)[0] - at(EventKind.TRANSMIT)[0])


@pytest.mark.parametrize("changes", [AWAY, PARTLY, EDGES], ids=["absences", "partial work", "edges"])
def test_the_clients_of_every_round(changes: dict[str, Any]) -> None:
    """Losses are those of the model that a client received: with edges of its own one."""
    simulation, rounds, events, models = played(changes)
    network, timing = simulation.deployment.network, simulation.deployment.timing
    speed = timing.nominal_rate(network.registry.samples, np.arange(CLIENTS), network.streams).tolist()
    oort, again = Oort(), 0
    for this, batch, model in zip(rounds, events, models, strict=False):
        scores = oort.scores(this.index)
        expected = oort.selected(this.index, speed, network.streams.generator("selection", this.index))
        assert this.clients.tolist() == expected, this.index
        found = dict(zip(expected, this.slots["selection_score"].tolist(), strict=True))
        assert found == pytest.approx({client: scores.get(client, math.nan) for client in expected}, nan_ok=True)
        again += sum(client in scores for client in expected)
        heard = np.flatnonzero(this.status == Status.PARTICIPATED).tolist()
        for place in heard:
            client, cell = expected[place], 0 if len(model) == 1 else int(this.slots["cell"][place])
            losses = plain_losses(simulation, model[cell], client)
            utility = len(losses) * math.sqrt(float((losses**2).mean()))
            oort.known[client] = utility, seconds_at_work(this, batch, client), this.index
        reports = np.asarray(batch.node)[np.asarray(batch.kind) == EventKind.REPORT_LOSS]
        assert reports.tolist() == [expected[place] for place in heard]
    assert len(oort.known) == CLIENTS and again > 40


def test_a_slot_is_no_longer_for_the_slots_of_others() -> None:
    """Two groups of clients one after the other: each is on the air for its own slot, and all together for both."""
    air: dict[str, Any] = {"kind": "over_the_air", "slot_groups": 2}
    _, rounds, _, _ = played({"uplink": air, "rounds": 6})
    groups = [len(set(this.slots["slot_group"].tolist())) for this in rounds]
    assert 2 in groups
    for this, slots in zip(rounds, groups, strict=True):
        np.testing.assert_allclose(this.round.time_on_air, this.values["airtime"] / slots)
