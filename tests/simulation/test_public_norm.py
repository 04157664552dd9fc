"""The clipping norm that follows public samples: when it is measured, at which model, and that it stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from tests.simulation.scenarios import PLAN, run, small
from wirelessfl.assembly import build_simulation
from wirelessfl.learning.private import proxy_median_norm
from wirelessfl.simulation import FinishedRound, Simulation

CLIP = 0.7


def calibrated(calibration_rounds: int, **overrides: Any) -> dict[str, Any]:
    clipping = {"name": "median", "proxy_samples": 30, "calibration_rounds": calibration_rounds}
    private = {"mechanism": "gaussian", "clip": CLIP, "noise_multiplier": 0.2, "clipping": clipping}
    return {"uplink": {"kind": "ideal"}, "training__privacy": private, **overrides}


def norm_at(simulation: Simulation, parameters: NDArray[np.float32]) -> float:
    """C at a model."""
    learner = simulation.deployment.learner
    private = learner.private
    assert private is not None and private.proxy is not None
    given = torch.tensor(parameters), private.proxy.examples, private.gradients.noise, learner.plan
    return CLIP * proxy_median_norm(learner.model, *given)


def played(scenario: Any) -> tuple[Simulation, list[FinishedRound], list[NDArray[np.float32]]]:
    """A run, and the models before each round and after the last."""
    simulation = build_simulation(scenario, PLAN)
    rounds, models = list[FinishedRound](), [simulation.state.parameters.copy()]

    def keep(this: FinishedRound, _: object) -> None:
        rounds.append(this)
        models.append(simulation.state.parameters.copy())

    simulation.run(keep)
    return simulation, rounds, models


def norms_of(this: FinishedRound) -> dict[int, float]:
    """C of each client that trained, by its position."""
    records = this.round.training
    return {int(at): c for one in records for at, c in zip(one.positions, one.statistics["clip_norm"], strict=True)}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_measured_though_nobody_takes_part(seed: int) -> None:
    away = {"faults__availability": {"model": "bernoulli", "p": 0.15}, "clients__count": 2}
    simulation, rounds, models = played(small(**calibrated(2, rounds=8, seed=seed, **away)))
    assert not any(norms_of(this) for this in rounds[:2])
    norms = {norm for this in rounds for norm in norms_of(this).values()}
    assert norms == {np.float32(norm_at(simulation, models[0]))}


def test_jobs_from_the_rounds_of_calibration_clip_to_the_norm_of_their_model_and_leave_the_last_one() -> None:
    late = {"aggregation": {"mode": "asynchronous", "buffer": 1}, "timing__straggler_scale": 8.0}
    simulation, rounds, models = played(small(**calibrated(4, rounds=16, seed=5, **late)))
    stays = norm_at(simulation, models[3])
    assert simulation.state.proxy_clip == stays
    begun_before = 0
    for this in rounds:
        assert this.round.staleness is not None
        for position, norm in norms_of(this).items():
            began = this.round.index - int(this.round.staleness[position])
            assert norm == np.float32(norm_at(simulation, models[began - 1]) if began <= 4 else stays)
            begun_before += began <= 4 < this.round.index
    assert begun_before > 0


def test_the_norm_stays_where_the_model_has_diverged() -> None:
    wild = {"training__optimizer": {"name": "sgd", "lr": 1e38}, "stop__diverged": False}
    simulation, rounds, models = played(small(**calibrated(3, rounds=4, **wild)))
    finite = [model for model in models[:3] if np.isfinite(norm_at(simulation, model))]
    assert len(rounds) == 4 and 0 < len(finite) < 3
    assert simulation.state.proxy_clip == norm_at(simulation, finite[-1])


def test_all_edges_have_the_norm_of_the_global_model() -> None:
    edges = {"topology": {"kind": "hierarchical", "edge_rounds": 5}, "channel__pathloss": {"model": "log_distance"}}
    changes = {key: value for key, value in calibrated(3, **edges).items() if key != "uplink"}
    simulation, rounds, _ = run(small(rounds=5, clients__count=14, **changes))
    norms = [{float(clip) for clip in this.slots["clip_norm"]} for this in rounds]
    assert all(len(found) == 1 for found in norms)
    assert norms[2] == norms[3] == norms[4] == {np.float32(simulation.state.proxy_clip)}
