"""SCAFFOLD, FedDyn and FedNova in runs, against the papers' algorithms written out for one client after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.simulation.scaffold import train_locally
from tests.simulation.scenarios import run, small
from wirelessfl.errors import ScenarioError
from wirelessfl.learning import AlgorithmFacts, FedDyn, FedNova, Scaffold
from wirelessfl.learning.conformance import check_algorithm
from wirelessfl.learning.local_gradients import local_gradients
from wirelessfl.scenario import Scenario
from wirelessfl.simulation.learner import Learner
from wirelessfl.simulation.state import SimulationState
from wirelessfl.trace import Status

LOUD = {"kind": "over_the_air", "snr_db": 250.0, "clip": 40.0, "power_control": {"server_gain": 1e9}}
UPLINKS: dict[str, dict[str, Any]] = {
    "ideal": {"kind": "ideal"},
    "digital": {"kind": "digital"},
    "over the air": LOUD,
    "secure aggregation": {"kind": "secure_aggregation", "clip": 40.0, "bits": 48},
}
MOMENTUM, ALPHA, MU = 0.4, 0.3, 0.2


class Loop:
    """The server of a plain loop over clients, and what these keep."""

    def __init__(self, learner: Learner) -> None:
        self.learner, self.sizes = learner, learner.population.sizes
        self.model = torch.from_numpy(learner.initial_state(0).parameters).double()
        self.rate = learner.training.learning_rate
        self.server = torch.zeros_like(self.model)
        self.kept: dict[int, Tensor] = {}

    def own(self, client: int) -> Tensor:
        return self.kept.get(client, torch.zeros_like(self.model))

    def shares(self, clients: list[int]) -> NDArray[np.float64]:
        return np.asarray(self.sizes[clients] / self.sizes.sum())


def scaffold(loop: Loop, clients: list[int], number: int, momentum: float = MOMENTUM) -> None:
    """Option II: a client keeps the mean of the gradients of its local steps, by their weights in its update."""
    shares, before, start = loop.shares(clients), loop.server, loop.model
    for client, share in zip(clients, shares, strict=True):
        own = loop.own(client)
        update, steps = train_locally(loop.learner, start, client, number, before - own)
        change = -before - update / (sum(weights_of_gradients(steps, loop.rate, 0.0, momentum)) * loop.rate)
        loop.kept[client] = own + change
        loop.server = loop.server + share * change
        loop.model = loop.model + share / shares.sum() * update


def scaffold_with_gradients(loop: Loop, clients: list[int], number: int) -> None:
    """Option I: a client keeps the gradient over all its samples at the received model."""
    shares, before, start = loop.shares(clients), loop.server, loop.model
    for client, share in zip(clients, shares, strict=True):
        own = loop.own(client)
        update, _ = train_locally(loop.learner, start, client, number, before - own)
        loop.kept[client] = gradient_at(loop.learner, start, client)
        loop.server = loop.server + share * (loop.kept[client] - own)
        loop.model = loop.model + share / shares.sum() * update


def gradient_at(learner: Learner, model: Tensor, client: int) -> Tensor:
    """∇F_i (d,) by a module in double precision, sample by sample."""
    module = learner.model.replica(torch.device("cpu")).module.double()
    parameters = list(module.parameters())
    nn.utils.vector_to_parameters(model.clone(), parameters)
    shard, size = learner.population.shards(np.array([client])), int(learner.population.sizes[client])
    total = torch.zeros_like(model)
    for row in shard.index[0, :size].tolist():
        loss = nn.functional.cross_entropy(module(shard.inputs[[row]].double()), shard.targets[[row]])
        total += torch.cat([part.flatten() for part in torch.autograd.grad(loss, parameters)])
    return total / size


def feddyn(loop: Loop, clients: list[int], number: int) -> None:
    shares, start = loop.shares(clients), loop.model
    gradient, mean = torch.zeros_like(start), torch.zeros_like(start)
    for client, share in zip(clients, shares, strict=True):
        own = loop.own(client)
        update, _ = train_locally(loop.learner, start, client, number, -own, ALPHA)
        loop.kept[client] = own - ALPHA * update
        gradient += share * update
        mean += share / shares.sum() * (start + update)
    loop.server = loop.server - ALPHA * gradient  # h of the paper
    loop.model = mean - loop.server / ALPHA


def fednova(loop: Loop, clients: list[int], number: int, mu: float = 0.0, momentum: float = MOMENTUM) -> None:
    shares, start = loop.shares(clients), loop.model
    direction, effective = torch.zeros_like(start), 0.0
    for client, share in zip(clients, shares / shares.sum(), strict=True):
        update, steps = train_locally(loop.learner, start, client, number, torch.zeros_like(start), mu)
        length = sum(abs(weight) for weight in weights_of_gradients(steps, loop.rate, mu, momentum))
        direction += share * update / length
        effective += share * length
    loop.model = start + effective * direction


def weights_of_gradients(steps: int, rate: float, mu: float, momentum: float = MOMENTUM) -> list[float]:
    """a_i: by how much Δ falls for each gradient, found by one run of the local steps for each of them."""
    found = []
    for place in range(steps):
        moved = velocity = 0.0
        for step in range(steps):
            velocity = momentum * velocity + (1.0 if step == place else 0.0) + mu * moved
            moved -= rate * velocity
        found.append(-moved / rate)
    return found


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], Callable[[Loop, list[int], int], None]]] = {
    "scaffold": ({"name": "scaffold"}, {}, scaffold),
    "scaffold, one vector": (
        {"name": "scaffold", "payload": 1},
        {"training__epochs": None, "training__steps": 3},
        scaffold,
    ),
    "scaffold, option I": ({"name": "scaffold", "option": 1}, {}, scaffold_with_gradients),
    "feddyn": ({"name": "feddyn", "alpha": ALPHA}, {}, feddyn),
    "fednova": ({"name": "fednova"}, {}, fednova),
    "fednova with a proximal term": (
        {"name": "fednova", "mu": MU},
        {},
        lambda loop, clients, number: fednova(loop, clients, number, MU),
    ),
}


def of_clients(**changes: Any) -> Scenario:
    """Half of the clients a round, with unlike numbers of local steps."""
    setting: dict[str, Any] = {
        "training__epochs": 2,
        "training__batch_size": 6,
        "training__optimizer": {"name": "sgd", "lr": 0.05, "momentum": MOMENTUM},
        "clients__selection": {"scheme": "uniform", "count": 3},
        "data__partition": {"scheme": "sizes", "exponent": 0.7},
        "rounds": 4,
    }
    return small(**setting | changes)


@pytest.mark.parametrize("uplink", UPLINKS)
@pytest.mark.parametrize("case", CASES)
def test_a_run_is_the_algorithm_of_the_paper(case: str, uplink: str) -> None:
    algorithm, changes, one_round = CASES[case]
    simulation, rounds, _ = run(of_clients(uplink=UPLINKS[uplink], training__algorithm=algorithm, **changes))
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner)
    loop, begin = Loop(learner), learner.initial_state(0).parameters
    for this in rounds:
        heard = np.flatnonzero(this.status == Status.PARTICIPATED)
        one_round(loop, this.clients[heard].tolist(), this.index)
    moved = float(np.linalg.norm(loop.model.numpy() - begin))
    assert moved > 0.05
    np.testing.assert_allclose(simulation.state.parameters, loop.model, rtol=0, atol=1e-4 * moved)
    store = simulation.state.client_rows
    assert sorted(store.get("client", [])) == sorted(loop.kept)
    for client, kept in zip(store.get("client", []), store.get("control", store.get("gradient", [])), strict=True):
        np.testing.assert_allclose(kept, loop.kept[int(client)], rtol=0, atol=1e-3)


@pytest.mark.parametrize("momentum", [0.0, MOMENTUM, 0.9])
def test_a_control_variate_is_the_weighted_mean_of_the_gradients(momentum: float) -> None:
    """c_i⁺ = Σ_k a_ik ∇F_i(w_k)/Σ_k a_ik at the models w_k that the client passed, whatever the momentum."""
    changes: dict[str, Any] = {
        "uplink": {"kind": "ideal"},
        "training__algorithm": {"name": "scaffold"},
        "training__optimizer": {"name": "sgd", "lr": 0.05, "momentum": momentum},
    }
    before, (after, rounds, _) = run(of_clients(**changes, rounds=2))[0].state, run(of_clients(**changes, rounds=3))
    server, learner = torch.from_numpy(before.server_memory["control"]).double(), after.deployment.learner
    assert isinstance(learner, Learner)
    for client in rounds[-1].clients.tolist():
        seen: list[Tensor] = []
        start, correction = torch.from_numpy(before.parameters).double(), server - control_of(before, client)
        _, steps = train_locally(learner, start, client, 3, correction, seen=seen)
        weights = torch.tensor(weights_of_gradients(steps, 0.05, 0.0, momentum)).double()
        wanted = weights @ torch.stack(seen) / weights.sum()
        np.testing.assert_allclose(control_of(after.state, client), wanted, rtol=0, atol=1e-5 * float(wanted.norm()))


def control_of(state: SimulationState, client: int) -> Tensor:
    """c_i (d,), zero before a client has taken part."""
    (place,) = np.nonzero(state.client_rows["client"] == client)
    rows = torch.from_numpy(state.client_rows["control"]).double()
    return rows[place].sum(dim=0)


def test_unequal_local_steps_matter() -> None:
    """Else the test of FedNova would not tell it from FedAvg."""
    models = [
        run(of_clients(uplink={"kind": "ideal"}, training__algorithm={"name": name}))[0].state.parameters
        for name in ("fednova", "fedavg")
    ]
    assert np.linalg.norm(models[0] - models[1]) > 1e-2


@pytest.mark.parametrize("momentum", [0.0, 0.3, 0.9])
def test_lengths_of_fednova_are_the_closed_forms(momentum: float) -> None:
    steps = np.array([0, 1, 4, 30])
    wanted = (steps - momentum * (1 - momentum**steps) / (1 - momentum)) / (1 - momentum)
    np.testing.assert_allclose(FedNova(0.0, momentum).lengths(steps, 0.1), wanted, rtol=1e-12)


def test_lengths_of_fednova_with_a_proximal_term() -> None:
    steps, rate, mu = np.array([0, 1, 4, 30]), 0.1, 0.7
    wanted = (1 - (1 - rate * mu) ** steps) / (rate * mu)
    np.testing.assert_allclose(FedNova(mu).lengths(steps, rate), wanted, rtol=1e-12)


def test_the_length_of_fednova_takes_its_bits() -> None:
    """Beside 32 d bits of the update a digital upload has 32 of ‖a_i‖₁."""
    times = {}
    for name in ("fednova", "fedavg"):
        algorithm = {"name": name}
        simulation, _, _ = run(of_clients(uplink={"kind": "digital"}, training__algorithm=algorithm, rounds=1))
        times[name] = simulation.deployment.uplink.payload_bits  # type: ignore[attr-defined]
    assert times["fednova"] - times["fedavg"] == 32
    assert times["fedavg"] % 32 == 0


def test_one_vector_of_scaffold_says_as_much_as_two() -> None:
    changes: dict[str, Any] = {"uplink": {"kind": "digital"}, "training__epochs": None, "training__steps": 3}
    states, bits = [], []
    for payload in (1, 2):
        algorithm = {"name": "scaffold", "payload": payload}
        simulation, _, _ = run(of_clients(training__algorithm=algorithm, **changes))
        states.append(simulation.state)
        bits.append(simulation.deployment.uplink.payload_bits)  # type: ignore[attr-defined]
    np.testing.assert_allclose(states[0].parameters, states[1].parameters, rtol=0, atol=1e-5)
    controls = [state.server_memory["control"] for state in states]
    np.testing.assert_allclose(controls[0], controls[1], rtol=0, atol=1e-4)
    assert bits[1] == 2 * bits[0]


@pytest.mark.parametrize(
    "algorithm", [Scaffold(), Scaffold(0.5, 1), Scaffold(option=1), FedDyn(0.1), FedNova(), FedNova(0.1, 0.9)], ids=repr
)
def test_they_conform(algorithm: Any) -> None:
    check_algorithm(algorithm)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"training__algorithm": {"name": "scaffold", "payload": 1}},
            r"algorithm\.payload: found 1 with training\.epochs",
        ),
        (
            {
                "training__algorithm": {"name": "scaffold", "option": 1, "payload": 1},
                "training__epochs": None,
                "training__steps": 3,
            },
            r"algorithm\.payload: found 1 with algorithm\.option: 1",
        ),
        (
            {
                "training__algorithm": {"name": "scaffold", "option": 1},
                "training__privacy": {"mechanism": "gaussian", "noise_multiplier": 1.0, "clip": 1.0},
            },
            r"algorithm\.option: found 1 with training\.privacy\.mechanism: gaussian",
        ),
        ({"training__algorithm": {"name": "scaffold", "option": 3}}, r"algorithm\.option: found 3; allowed: 1"),
        ({"training__algorithm": {"name": "feddyn", "alpha": 0.0}}, r"algorithm\.alpha: found 0"),
        (
            {"training__algorithm": {"name": "scaffold"}, "training__optimizer": {"name": "adam"}},
            r"algorithm\.option: found 2 with training\.optimizer\.name: adam, by default; allowed: 1, or the optim",
        ),
        (
            {"training__algorithm": {"name": "fednova"}, "training__optimizer": {"name": "adam"}},
            r"algorithm\.name: found fednova with training\.optimizer\.name: adam",
        ),
        (
            {
                "training__algorithm": {"name": "feddyn"},
                "aggregation__mode": "asynchronous",
                "uplink": {"kind": "digital"},
            },
            r"algorithm\.name: found feddyn",
        ),
    ],
)
def test_what_does_not_go_together(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        of_clients(**changes)


@pytest.mark.parametrize("algorithm", ["scaffold", "feddyn", "fednova"])
def test_local_noise_protects_what_is_kept_and_sent(algorithm: str) -> None:
    """Corrections come after clipping and noise: ε is that of FedAvg with the same noise."""
    noisy = {"mechanism": "gaussian", "sampling": "poisson", "noise_multiplier": 1.0, "clip": 1.0}
    epsilon = []
    for name in (algorithm, "fedavg"):
        changes: dict[str, Any] = {"training__privacy": noisy, "training__algorithm": {"name": name}}
        _, rounds, _ = run(of_clients(uplink={"kind": "ideal"}, **changes))
        epsilon.append([this.values["epsilon_accounted"] for this in rounds])
    assert epsilon[0] == epsilon[1] and 0 < epsilon[0][-1] < np.inf


def test_a_gradient_at_the_received_model_is_one_more_pass_over_all_samples() -> None:
    """Of two epochs before, the time of the computation grows by a half."""
    seconds = []
    for option in (2, 1):
        timing = {"timing__straggler_scale": 0.0, "uplink": {"kind": "ideal"}}
        _, rounds, _ = run(of_clients(training__algorithm={"name": "scaffold", "option": option}, **timing))
        seconds.append(np.concatenate([this.round.compute_time for this in rounds]))
    np.testing.assert_allclose(seconds[1], seconds[0] * 3 / 2)


class Reader(FedDyn):
    """An algorithm from outside that reads gradients."""

    def facts(self) -> AlgorithmFacts:
        return AlgorithmFacts(client_side=True, reads_gradients=True)


def test_noise_in_local_training_is_not_taken_for_noise_on_what_an_algorithm_reads() -> None:
    noisy = {"mechanism": "gaussian", "noise_multiplier": 1.0, "clip": 1.0}
    name = f"{__name__}:Reader"
    with pytest.raises(ScenarioError, match=r"reads_gradients with .*: gaussian, needs the mechanism none"):
        run(of_clients(training__algorithm={"name": name}, training__privacy=noisy, uplink={"kind": "ideal"}))


@pytest.mark.parametrize("chunk", [1, 3])
def test_gradients_of_clients_are_those_of_their_samples(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirelessfl.learning.local_gradients._CHUNK", chunk)
    simulation, _, _ = run(of_clients(rounds=1))
    learner, clients = simulation.deployment.learner, np.array([4, 0, 2])
    model = torch.from_numpy(learner.initial_state(0).parameters)
    found = local_gradients(learner.model, model, learner.population, clients)
    wanted = torch.stack([gradient_at(learner, model.double(), client) for client in clients.tolist()])
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-6)
