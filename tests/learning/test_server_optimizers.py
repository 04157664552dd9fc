"""The server's step on the pseudo-gradient, against torch.optim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.simulation.scenarios import run, small
from wirelessfl.errors import CheckFailed, ScenarioError
from wirelessfl.learning import ServerSgd
from wirelessfl.learning.conformance import check_server_optimizer


@pytest.mark.parametrize(("lr", "momentum"), [(1.0, 0.0), (0.3, 0.0), (1.0, 0.9), (0.5, 0.6)])
def test_sgd_is_that_of_torch_on_the_pseudo_gradient(lr: float, momentum: float) -> None:
    generator = torch.Generator().manual_seed(3)
    model = torch.nn.Parameter(torch.randn(20, generator=generator))
    theirs = torch.optim.SGD([model], lr=lr, momentum=momentum)
    ours, optimizer = model.detach().clone(), ServerSgd(lr, momentum)
    memory: Mapping[str, Tensor] = optimizer.start(ours)
    for _ in range(6):
        update = torch.randn(20, generator=generator)
        model.grad = -update
        theirs.step()
        change, memory = optimizer.step(update, memory)
        ours = ours + change
        torch.testing.assert_close(ours, model.detach(), rtol=1e-6, atol=1e-6)


def test_the_default_changes_no_bit() -> None:
    update = torch.randn(9)
    change, memory = ServerSgd().step(update, {})
    assert torch.equal(change, update) and not memory


@pytest.mark.parametrize(("lr", "momentum"), [(0.0, 0.0), (float("inf"), 0.0), (1.0, 1.0), (1.0, -0.1)])
def test_numbers_out_of_range(lr: float, momentum: float) -> None:
    with pytest.raises(ValueError, match="momentum in"):
        ServerSgd(lr, momentum)


class Halved:
    """Half of the update, from outside."""

    def start(self, parameters: Tensor) -> Mapping[str, Tensor]:
        return {}

    def step(self, update: Tensor, memory: Mapping[str, Tensor]) -> tuple[Tensor, Mapping[str, Tensor]]:
        return 0.5 * update, memory


class Moving(Halved):
    """Changes what it was given."""

    def step(self, update: Tensor, memory: Mapping[str, Tensor]) -> tuple[Tensor, Mapping[str, Tensor]]:
        return update.mul_(0.5), memory


class Scalar(Halved):
    """One number for all coordinates."""

    def step(self, update: Tensor, memory: Mapping[str, Tensor]) -> tuple[Tensor, Mapping[str, Tensor]]:
        return update.mean(), memory


def test_a_step_of_another_shape_is_refused() -> None:
    name = {"name": "tests.learning.test_server_optimizers:Scalar"}
    with pytest.raises(ScenarioError, match=r"optimizer\.name: Scalar gives .*\(\(\), .* allowed: .*\(610,\)"):
        run(small(uplink={"kind": "ideal"}, training__server_optimizer=name))
    with pytest.raises(CheckFailed, match="shape"):
        check_server_optimizer(Scalar())


@pytest.mark.parametrize("uplink", [{"kind": "ideal"}, {"kind": "over_the_air"}, {"kind": "secure_aggregation"}])
def test_in_a_run_it_moves_the_model_and_not_epsilon(uplink: dict[str, Any]) -> None:
    steps, epsilon = {}, []
    for name, optimizer in {
        "plain": {"name": "sgd"},
        "half": {"name": "sgd", "lr": 0.5},
        "outside": {"name": "tests.learning.test_server_optimizers:Halved"},
    }.items():
        simulation, rounds, _ = run(small(uplink=uplink, rounds=1, training__server_optimizer=optimizer))
        learner = simulation.deployment.learner
        steps[name] = simulation.state.parameters - learner.initial_state(0).parameters
        epsilon.append(rounds[-1].values["epsilon_accounted"])
    np.testing.assert_allclose(steps["half"], 0.5 * steps["plain"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(steps["outside"], 0.5 * steps["plain"], rtol=0, atol=1e-6)
    assert len(set(epsilon)) == 1


def test_momentum_goes_on_over_asynchronous_rounds() -> None:
    changes: dict[str, Any] = {"uplink": {"kind": "ideal"}, "aggregation__mode": "asynchronous", "rounds": 4}
    simulation, _, _ = run(small(**changes, training__server_optimizer={"momentum": 0.5}))
    assert np.linalg.norm(simulation.state.optimizer_memory["velocity"]) > 0


def test_a_cloud_that_averages_models_takes_none() -> None:
    hierarchical: dict[str, Any] = {
        "topology": {"kind": "hierarchical"},
        "channel__pathloss": {"model": "log_distance"},
        "uplink": {"kind": "over_the_air"},
    }
    with pytest.raises(ScenarioError, match=r"training\.server_optimizer: found sgd"):
        small(**hierarchical, training__server_optimizer={"momentum": 0.5})


def test_conformance() -> None:
    for good in (ServerSgd(), ServerSgd(0.5, 0.9), Halved()):
        check_server_optimizer(good)
    with pytest.raises(CheckFailed, match="in place"):
        check_server_optimizer(Moving())
