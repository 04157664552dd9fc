"""Algorithms with server optimizers, codecs, dropouts and partial work together, against the papers written out."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.simulation.resuming import goes_on_to_the_same_bits
from tests.simulation.scaffold import train_locally
from tests.simulation.scenarios import run, small
from tests.simulation.test_federated_algorithms import gradient_at, weights_of_gradients
from wirelessfl.scenario import Scenario
from wirelessfl.simulation import FinishedRound
from wirelessfl.simulation.learner import Learner
from wirelessfl.trace import Status

RATE, MOMENTUM, MU, ALPHA, SHARE, LEVELS = 0.05, 0.4, 0.2, 0.3, 0.2, 6

ALGORITHMS: dict[str, dict[str, Any]] = {
    "fedavg": {"name": "fedavg"},
    "fedprox": {"name": "fedprox", "mu": MU},
    "ditto": {"name": "ditto", "lambda": 0.5},
    "scaffold": {"name": "scaffold"},
    "scaffold, option I": {"name": "scaffold", "option": 1},
    "scaffold, one vector": {"name": "scaffold", "payload": 1},
    "feddyn": {"name": "feddyn", "alpha": ALPHA},
    "fednova": {"name": "fednova", "mu": MU},
}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"name": "sgd"},
    "momentum": {"name": "sgd", "lr": 0.5, "momentum": 0.7},
    "adam": {"name": "adam", "lr": 0.02, "tau": 0.01},
    "yogi": {"name": "yogi", "lr": 0.02, "tau": 0.01},
    "adagrad": {"name": "adagrad", "lr": 0.02, "tau": 0.01},
}
CODECS: dict[str, dict[str, Any] | None] = {
    "none": None,
    "top-k": {"name": "top_k", "share": SHARE, "error_feedback": True},
    "qsgd": {"name": "qsgd", "levels": LEVELS, "error_feedback": True},
}


@dataclass
class Written:
    """The server and what clients keep, in double precision, as the papers have them."""

    learner: Learner
    algorithm: str
    optimizer: dict[str, Any]
    codec: str
    model: Tensor = field(init=False)
    control: Tensor = field(init=False)
    kept: dict[int, Tensor] = field(default_factory=dict)
    residual: dict[int, Tensor] = field(default_factory=dict)
    moments: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = torch.from_numpy(self.learner.initial_state(0).parameters).double()
        self.control = torch.zeros_like(self.model)

    def round(self, this: FinishedRound) -> None:
        """A round as its record says who was heard, after how many steps."""
        heard = np.flatnonzero(this.status == Status.PARTICIPATED)
        if not len(heard):
            return
        clients, steps = this.clients[heard].tolist(), this.round.local_steps
        sizes = self.learner.population.sizes
        share = torch.from_numpy(sizes[clients] / sizes.sum())
        taken = [None if steps is None else int(steps[place]) for place in heard]
        sent, lengths = zip(*(self.client(c, this.index, k) for c, k in zip(clients, taken, strict=True)), strict=True)
        arrived = [self.carried(c, this.index, one) for c, one in zip(clients, sent, strict=True)]
        mean = torch.einsum("i,ipd->pd", share / share.sum(), torch.stack(arrived))
        if self.algorithm == "fednova":  # its τ_eff
            mean = mean * float(share @ torch.tensor(lengths, dtype=torch.float64) / share.sum())
        gradient = mean[0]
        if self.algorithm == "feddyn":  # h of the paper is α · control; the mean of models less h/α
            self.control = self.control - share.sum() * mean[0]
            gradient = mean[0] - self.control
        elif self.algorithm == "scaffold, one vector":
            self.control = self.control + share.sum() * (-self.control - mean[0] / (lengths[0] * RATE))
        elif self.algorithm.startswith("scaffold"):
            self.control = self.control + share.sum() * mean[1]
        self.model = self.model + self.optimized(gradient)

    def client(self, client: int, number: int, taken: int | None) -> tuple[Tensor, float]:
        """(P, d) what a client sends, and ‖a_i‖₁ or its number of steps."""
        nothing = torch.zeros_like(self.model)
        own, name = self.kept.get(client, nothing), self.algorithm
        if name.startswith("scaffold"):
            update, steps = train_locally(self.learner, self.model, client, number, self.control - own, taken=taken)
            length = sum(weights_of_gradients(steps, RATE, 0.0, MOMENTUM))
            new = own - self.control - update / (length * RATE)
            if name.endswith("option I"):
                new = gradient_at(self.learner, self.model, client)
            self.kept[client] = new
            vectors = [update] if name.endswith("one vector") else [update, new - own]
            return torch.stack(vectors), length
        mu = {"fedprox": MU, "fednova": MU, "feddyn": ALPHA}.get(name, 0.0)
        correction = -own if name == "feddyn" else nothing
        update, steps = train_locally(self.learner, self.model, client, number, correction, mu, taken)
        if name == "feddyn":
            self.kept[client] = own - ALPHA * update
        if name == "fednova":
            length = sum(abs(one) for one in weights_of_gradients(steps, RATE, MU, MOMENTUM))
            return update[None] / length, length
        return update[None], steps

    def carried(self, client: int, number: int, vectors: Tensor) -> Tensor:
        """(P, d) what arrives, with error feedback."""
        if self.codec == "none":
            return vectors
        whole = vectors + self.residual.get(client, torch.zeros_like(vectors))
        generator = self.learner.streams.generator("quantiser", number, client)
        arrived = torch.stack([self.decoded(one, generator) for one in whole])
        self.residual[client] = whole - arrived
        return arrived

    def decoded(self, vector: Tensor, generator: np.random.Generator) -> Tensor:
        """(d,) of a vector after the codec."""
        if self.codec == "top-k":
            kept = vector.abs().argsort(descending=True)[: math.ceil(SHARE * len(vector))]
            return torch.zeros_like(vector).index_copy(0, kept, vector[kept])
        norm = float(vector.norm())
        scaled = vector.abs() * LEVELS / norm
        draws = torch.from_numpy(generator.random(len(vector), dtype=np.float32)).double()
        up = draws >= 1 - (scaled - scaled.floor())
        arrived: Tensor = vector.sign() * norm / LEVELS * (scaled.floor() + up)
        return arrived

    def optimized(self, gradient: Tensor) -> Tensor:
        """(d,) what the server adds to the model: Hsu et al. 2019, Reddi et al. 2021."""
        keys, name = self.optimizer, self.optimizer["name"]
        if name == "sgd":
            velocity = keys.get("momentum", 0.0) * self.moments.get("m", torch.zeros_like(gradient)) + gradient
            self.moments["m"] = velocity
            step: Tensor = float(keys.get("lr", 1.0)) * velocity
            return step
        m = self.moments.get("m", torch.zeros_like(gradient))
        v = self.moments.get("v", torch.full_like(gradient, keys["tau"] ** 2))
        decay = 0.0 if name == "adagrad" else 0.9
        m, square = decay * m + (1 - decay) * gradient, gradient**2
        if name == "adam":
            v = 0.99 * v + 0.01 * square
        elif name == "yogi":
            v = v - 0.01 * square * torch.sign(v - square)
        else:
            v = v + square
        self.moments.update(m=m, v=v)
        lr, tau = float(keys["lr"]), float(keys["tau"])
        return lr * m / (v.sqrt() + tau)


def setting(algorithm: str, optimizer: str, codec: str, **changes: Any) -> Scenario:
    """Half of the clients a round, of which some are away; unequal data, two epochs, momentum."""
    equal_steps = {"training__epochs": None, "training__steps": 5} if "one vector" in algorithm else {}
    chosen = CODECS[codec]
    uplink: dict[str, Any] = {"kind": "ideal"} if chosen is None else {"kind": "digital", "codec": chosen}
    given: dict[str, Any] = {
        "seed": 4,  # with others two magnitudes are equal, and rounding decides which of them top-k takes
        "uplink": uplink,
        "training__algorithm": ALGORITHMS[algorithm],
        "training__server_optimizer": OPTIMIZERS[optimizer],
        "training__epochs": 2,
        "training__batch_size": 6,
        "training__optimizer": {"name": "sgd", "lr": RATE, "momentum": MOMENTUM},
        "clients__selection": {"scheme": "uniform", "count": 4},
        "faults__availability": {"model": "bernoulli", "p": 0.7},
        "data__partition": {"scheme": "sizes", "exponent": 0.7},
        "rounds": 5,
    }
    if algorithm == "ditto":
        given["data__test"] = {"fraction": 0.3}
    return small(**given | equal_steps | changes)


def compare(algorithm: str, optimizer: str, codec: str, **changes: Any) -> list[FinishedRound]:
    """A run beside the papers: model and rows of clients."""
    simulation, rounds, _ = run(setting(algorithm, optimizer, codec, **changes))
    learner = simulation.deployment.learner
    assert isinstance(learner, Learner)
    written = Written(learner, algorithm, OPTIMIZERS[optimizer], codec)
    begin = written.model.clone()
    for this in rounds:
        written.round(this)
    moved = float((written.model - begin).norm())
    assert moved > 0.05
    found: NDArray[np.float32] = simulation.state.parameters
    np.testing.assert_allclose(found, written.model.numpy(), rtol=0, atol=2e-6 * max(1.0, moved))
    store = simulation.state.client_rows
    assert sorted(store.get("client", [])) == sorted(written.kept)
    for client, kept in zip(store.get("client", []), store.get("control", store.get("gradient", [])), strict=True):
        np.testing.assert_allclose(kept, written.kept[int(client)], rtol=0, atol=1e-4)
    return rounds


FAST = [
    ("scaffold", "adam", "none"),
    ("scaffold, option I", "yogi", "top-k"),
    ("scaffold, one vector", "momentum", "none"),
    ("feddyn", "adagrad", "none"),
    ("fednova", "momentum", "top-k"),
    ("fednova", "adam", "none"),
    ("fedprox", "yogi", "qsgd"),
]


@pytest.mark.parametrize(("algorithm", "optimizer", "codec"), FAST)
def test_a_combination_is_what_the_papers_say_together(algorithm: str, optimizer: str, codec: str) -> None:
    rounds = compare(algorithm, optimizer, codec)
    assert any((this.status != Status.PARTICIPATED).any() for this in rounds)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "optimizer", "codec"),
    [one for one in itertools.product(ALGORITHMS, OPTIMIZERS, CODECS) if one not in FAST],
)
def test_every_combination(algorithm: str, optimizer: str, codec: str) -> None:
    compare(algorithm, optimizer, codec)


PARTIAL: dict[str, Any] = {
    "seed": 1,  # as above
    "training__partial_work": True,
    "timing__cpu_hz": [5e8, 2e9],
    "timing__compute_deadline_s": 0.04,
    "timing__straggler_scale": 1.0,
}


@pytest.mark.parametrize(("algorithm", "optimizer", "codec"), [("fednova", "adam", "none"), ("feddyn", "sgd", "top-k")])
def test_stragglers_that_stop_early_beside_dropouts(algorithm: str, optimizer: str, codec: str) -> None:
    rounds = compare(algorithm, optimizer, codec, **PARTIAL)
    steps = [this.round.local_steps for this in rounds if this.round.local_steps is not None]
    assert len(np.unique(np.concatenate(steps))) > 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "optimizer", "codec"), list(itertools.product(ALGORITHMS, ("momentum", "yogi"), ("none", "top-k")))
)
def test_every_algorithm_stops_and_goes_on_to_the_same_bits(
    algorithm: str, optimizer: str, codec: str, tmp_path: Path
) -> None:
    goes_on_to_the_same_bits(setting(algorithm, optimizer, codec), tmp_path)
