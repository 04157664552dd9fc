"""The server's step on the pseudo-gradient, against torch.optim, the paper's algorithm line by line, and Flower."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.simulation.scenarios import run, small
from wirelessfl.errors import CheckFailed, ScenarioError
from wirelessfl.learning import ServerAdaGrad, ServerAdam, ServerOptimizer, ServerSgd, ServerYogi
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


# --- adaptive ones ------------------------------------------------------------------------------------------------

LR, TAU, BETA1, BETA2 = 0.03, 0.01, 0.8, 0.95


def second_moment(name: str, v: float, g: float) -> float:
    """Lines 12 to 14 of Algorithm 2 of Reddi et al., 2021, for one coordinate."""
    if name == "adagrad":
        return v + g * g
    if name == "yogi":
        return v - (1 - BETA2) * g * g * math.copysign(1.0, v - g * g) if v != g * g else v
    return BETA2 * v + (1 - BETA2) * g * g


@pytest.mark.parametrize("initial_v", [None, 0.0, 0.3])
@pytest.mark.parametrize(
    ("name", "corrected"), [("adagrad", False), ("yogi", False), ("yogi", True), ("adam", False), ("adam", True)]
)
def test_they_are_the_algorithm_of_the_paper(name: str, corrected: bool, initial_v: float | None) -> None:
    optimizer = made(name, initial_v, corrected)
    beta1 = 0.0 if name == "adagrad" else BETA1
    updates = updates_of(8).double()
    model = torch.zeros(updates.shape[1], dtype=torch.float64)
    theirs, m = [0.0] * len(model), [0.0] * len(model)
    v = [TAU**2 if initial_v is None else initial_v] * len(model)
    memory: Mapping[str, Tensor] = optimizer.start(model)
    for number, update in enumerate(updates, start=1):
        change, memory = optimizer.step(update, memory)
        model = model + change
        eta = LR * math.sqrt(1 - BETA2**number) / (1 - BETA1**number) if corrected else LR
        for j, g in enumerate(update.tolist()):
            m[j] = beta1 * m[j] + (1 - beta1) * g
            v[j] = second_moment(name, v[j], g)
            theirs[j] += eta * m[j] / (math.sqrt(v[j]) + TAU)
        torch.testing.assert_close(model, torch.tensor(theirs, dtype=torch.float64), rtol=1e-12, atol=1e-14)


def test_the_first_step_of_adam_without_correction_is_short() -> None:
    """With v₀ = 0 and τ → 0 it is lr (1 − β₁)/√(1 − β₂) in each coordinate; corrected it is lr."""
    update = updates_of(1)[0].double()
    for corrected, length in ((False, LR * (1 - BETA1) / math.sqrt(1 - BETA2)), (True, LR)):
        optimizer = ServerAdam(lr=LR, tau=1e-30, initial_v=0.0, beta1=BETA1, beta2=BETA2, bias_correction=corrected)
        change, _ = optimizer.step(update, optimizer.start(update))
        torch.testing.assert_close(change, length * update.sign(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["sgd", "adam", "yogi", "adagrad"])
def test_they_step_as_those_of_flower(name: str) -> None:
    """Flower begins with v = 0, and corrects the bias of Adam by the round's number plus one: it is told t − 1."""
    common = pytest.importorskip("flwr.common")
    strategies = pytest.importorskip("flwr.server.strategy")
    assert pytest.importorskip("importlib.metadata").version("flwr") == "1.42.0", "the test follows this version"
    updates = updates_of(6).double()
    model = updates_of(7)[6].double()
    begin = common.ndarrays_to_parameters([model.numpy()])
    betas = {"eta": LR, "tau": TAU, "beta_1": BETA1, "beta_2": BETA2}
    theirs = {
        "sgd": lambda: strategies.FedAvgM(initial_parameters=begin, server_learning_rate=LR, server_momentum=BETA1),
        "adam": lambda: strategies.FedAdam(initial_parameters=begin, **betas),
        "yogi": lambda: strategies.FedYogi(initial_parameters=begin, **betas),
        "adagrad": lambda: strategies.FedAdagrad(initial_parameters=begin, eta=LR, tau=TAU),
    }[name]()
    ours: ServerOptimizer = ServerSgd(LR, BETA1) if name == "sgd" else made(name, 0.0, name == "adam")
    theirs.initialize_parameters(None)
    memory: Mapping[str, Tensor] = ours.start(model)
    for number, update in enumerate(updates, start=int(name == "sgd")):
        sent = common.ndarrays_to_parameters([(model + update).numpy()])
        status = common.Status(code=common.Code.OK, message="")
        reply = common.FitRes(status=status, parameters=sent, num_examples=3, metrics={})
        given, _ = theirs.aggregate_fit(number, [(None, reply)], [])
        change, memory = ours.step(update, memory)
        model = model + change
        found = torch.from_numpy(common.parameters_to_ndarrays(given)[0])
        torch.testing.assert_close(model, found, rtol=1e-10, atol=1e-12)


def made(name: str, initial_v: float | None, corrected: bool) -> ServerOptimizer:
    if name == "adagrad":
        return ServerAdaGrad(lr=LR, tau=TAU, initial_v=initial_v)
    kind = {"adam": ServerAdam, "yogi": ServerYogi}[name]
    return kind(lr=LR, tau=TAU, initial_v=initial_v, beta1=BETA1, beta2=BETA2, bias_correction=corrected)


def updates_of(rounds: int) -> Tensor:
    """Updates (rounds, 12) of sizes far below and far above τ, one coordinate always 0."""
    scale = torch.logspace(-4, 1, 12)
    scale[5] = 0.0
    return torch.randn(rounds, 12, generator=torch.Generator().manual_seed(5)) * scale


@pytest.mark.parametrize(
    "wrong", [{"lr": 0.0}, {"tau": 0.0}, {"initial_v": -1.0}, {"beta1": 1.0}, {"beta2": -0.1}, {"lr": math.inf}]
)
def test_adaptive_ones_refuse_numbers_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="betas"):
        ServerYogi(**wrong)


@pytest.mark.parametrize("name", ["adam", "yogi", "adagrad"])
@pytest.mark.parametrize("uplink", [{"kind": "over_the_air"}, {"kind": "secure_aggregation"}, {"kind": "digital"}])
def test_epsilon_does_not_move(name: str, uplink: dict[str, Any]) -> None:
    noisy = {"mechanism": "gaussian", "sampling": "poisson", "noise_multiplier": 1.0}
    epsilon, models = [], []
    for optimizer in ({"name": "sgd"}, {"name": name}):
        simulation, rounds, _ = run(
            small(uplink=uplink, rounds=3, training__privacy=noisy, training__server_optimizer=optimizer)
        )
        epsilon.append([one.values["epsilon_accounted"] for one in rounds])
        models.append(simulation.state.parameters)
    assert epsilon[0] == epsilon[1]
    assert not np.array_equal(models[0], models[1])


# --- from outside, and in a run -----------------------------------------------------------------------------------


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
    adaptive = (ServerAdam(), ServerAdam(bias_correction=True), ServerYogi(initial_v=0.0), ServerAdaGrad())
    for good in (ServerSgd(), ServerSgd(0.5, 0.9), Halved(), *adaptive):
        check_server_optimizer(good)
    with pytest.raises(CheckFailed, match="in place"):
        check_server_optimizer(Moving())
