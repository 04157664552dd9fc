"""Server steps where noise of the server hides who came: of public numbers alone, and right on average."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from torch import Tensor
from typing_extensions import override

from tests.simulation.scenarios import run, small
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import FedAvg, RoundFacts, ServerState
from wirelessfl.scenario import Scenario

SCAFFOLD = {"name": "scaffold"}
TWO_STEPS: dict[str, Any] = {"training__epochs": None, "training__steps": 2}


def hidden(noise_multiplier: float, clip: float = 1e6, **changes: Any) -> Scenario:
    """Twelve clients of unequal sizes, half of them selected in a round, by themselves."""
    settings: dict[str, Any] = {
        "rounds": 4,
        "clients__count": 12,
        "clients__selection": {"scheme": "poisson", "rate": 0.5},
        "data__partition": {"scheme": "sizes", "exponent": 0.7},
        "uplink": {"kind": "ideal"},
        "training__optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.0},
        "training__privacy": {
            **{"mechanism": "gaussian", "unit": "client"},
            **{"clip": clip, "noise_multiplier": noise_multiplier},
        },
        "privacy__unit": "client",
        "privacy__adversary": "observer",
    }
    return small(**{**settings, **changes})


@pytest.mark.parametrize(
    ("algorithm", "kept", "remembered", "factor"),
    [
        (SCAFFOLD, "control", "control", 1.0),
        ({"name": "scaffold", "option": 1}, "control", "control", 1.0),
        ({"name": "feddyn", "alpha": 0.3}, "gradient", "drift", 1 / 0.3),
    ],
    ids=["scaffold", "option I", "feddyn"],
)
def test_what_the_server_keeps_is_the_sum_of_what_clients_keep(
    algorithm: dict[str, Any], kept: str, remembered: str, factor: float
) -> None:
    """Σ p_i c_i is c and Σ p_i λ_i is h, whoever was selected: nearly without noise, and nothing clipped."""
    simulation, rounds, _ = run(hidden(1e-14, training__algorithm=algorithm))
    assert len({len(this.clients) for this in rounds}) > 1
    registry, state = simulation.deployment.network.registry, simulation.state
    expected = factor * registry.weight(state.client_rows["client"]) @ state.client_rows[kept].astype(np.float64)
    found = state.server_memory[remembered]
    assert np.linalg.norm(found - expected) < 1e-5 * np.linalg.norm(expected)


@pytest.mark.parametrize("algorithm", [SCAFFOLD, {"name": "feddyn", "alpha": 0.3}], ids=["scaffold", "feddyn"])
def test_noise_reaches_the_model_by_factors_that_do_not_depend_on_who_came(algorithm: dict[str, Any]) -> None:
    """First steps of three runs, whose clipped updates vanish in the noise, are as long whoever was selected."""
    lengths = []
    for seed in (1, 2, 3):
        changes = {"rounds": 1, "seed": seed, "training__algorithm": algorithm}
        simulation, rounds, _ = run(hidden(1e3, 1e-3, **changes))
        start = simulation.deployment.learner.initial_state(0).parameters
        std = rounds[0].values["aggregate_noise_std"]
        step = simulation.state.parameters - start
        lengths.append(np.linalg.norm(step) / std / np.sqrt(len(step)))
    # g, or g − H = (1 + q) g: within five standard deviations of the norm of d normals, a false alarm in 5 · 10⁵
    wanted = 1.0 if algorithm == SCAFFOLD else 1.5
    assert np.abs(np.array(lengths) / wanted - 1).max() < 5 / np.sqrt(2 * len(step))


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (
            {"name": "fednova"},
            r"algorithm\.name: found fednova with training\.privacy\.unit: client, whose noise hides",
        ),
        ({"name": "scaffold", "payload": 1}, r"algorithm\.payload: found 1 with training\.privacy\.unit: client"),
    ],
    ids=["fednova", "one vector"],
)
def test_steps_that_need_to_know_who_came_are_refused(algorithm: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        hidden(1.0, training__algorithm=algorithm, **TWO_STEPS)


class Watched(FedAvg):
    """Keeps the facts of its steps."""

    seen: ClassVar[list[RoundFacts]] = []

    @override
    def step(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> ServerState:
        self.seen.append(facts)
        return super().step(server, aggregate, facts)


def test_an_algorithm_from_outside_is_not_told_who_came() -> None:
    """But is where the server sees it."""
    algorithm = {"name": f"{__name__}:Watched"}
    without: dict[str, Any] = {"training__privacy": {"mechanism": "none"}, "privacy__unit": "sample"}
    for changes in {}, without:
        Watched.seen.clear()
        _, rounds, _ = run(hidden(1.0, training__algorithm=algorithm, **changes))
        assert len(Watched.seen) == len(rounds)
        for facts, this in zip(Watched.seen, rounds, strict=True):
            k = 0 if not changes else int(this.values["participants"])
            assert [len(values) for values in (facts.arrived, facts.weights, facts.steps)] == [k, k, k]
            assert facts.share == (pytest.approx(facts.weights.sum()) if changes else 0.5)


@pytest.mark.parametrize("name", ["feddyn", "fednova", "scaffold"])
def test_votes_are_refused_where_the_step_is_no_sum(name: str) -> None:
    codec = {"name": "sign", "vote_step": 0.01}
    with pytest.raises(ScenarioError, match=rf"vote_step: found a vote with the algorithm {name}, whose step is no"):
        small(uplink={"kind": "digital", "snr_db": 20, "codec": codec}, training__algorithm={"name": name})
