"""An algorithm from outside the package, with control variates at server and clients; and the same as a plain loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wirelessfl.learning import (
    Algorithm,
    AlgorithmFacts,
    ClientRows,
    LocalObjective,
    LocalOutcome,
    RoundFacts,
    ServerState,
)
from wirelessfl.learning.batches import local_steps, plan_batches
from wirelessfl.simulation.learner import Learner


@dataclass(frozen=True)
class Scaffold(Algorithm):
    """SCAFFOLD, option II (Karimireddy et al., ICML 2020), with means weighted by p_i."""

    momentum: float  # of the local steps, as the scenario has it
    server_lr: float = 1.0

    def facts(self) -> AlgorithmFacts:
        return AlgorithmFacts(payload=2, broadcast=2, client_side=True)

    def start(self, parameters: Tensor) -> ServerState:
        return ServerState(parameters, {"control": torch.zeros_like(parameters)})

    def first_rows(self, server: ServerState, clients: NDArray[np.int64]) -> ClientRows:
        return ClientRows(clients, {"control": torch.zeros(len(clients), len(server.parameters))})

    def client(self, server: ServerState, rows: ClientRows) -> LocalObjective:
        return LocalObjective(correction=server.memory["control"] - rows.values["control"])

    def finish(self, server: ServerState, rows: ClientRows, outcome: LocalOutcome) -> ClientRows:
        left = torch.arange(1, int(outcome.steps.max()) + 1)  # steps in which a gradient moves the model
        summed = ((1 - self.momentum**left) / (1 - self.momentum)).cumsum(0)[torch.from_numpy(outcome.steps) - 1]
        scale = 1.0 / (summed[:, None] * outcome.learning_rate)
        control = rows.values["control"] - server.memory["control"] - scale * outcome.updates
        return replace(rows, values={"control": control.float()})

    def upload(self, server: ServerState, before: ClientRows, after: ClientRows, outcome: LocalOutcome) -> Tensor:
        return torch.stack([outcome.updates, after.values["control"] - before.values["control"]], dim=1)

    def step(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> ServerState:
        control = server.memory["control"] + float(facts.weights.sum()) * aggregate[1]
        return ServerState(server.parameters + self.server_lr * aggregate[0], {"control": control})


@dataclass
class PlainLoop:
    """Control variates by hand: one client after the other with nn.Module, autograd and torch.optim.SGD.

    Attributes:
        model: (d,) float64 global model.
        control: (d,) of the server.
        controls: (d,) by client.
    """

    learner: Learner
    model: Tensor
    control: Tensor
    controls: dict[int, Tensor]

    @classmethod
    def before(cls, learner: Learner) -> PlainLoop:
        """Before the first round."""
        start = torch.from_numpy(learner.initial_state(0).parameters).double()
        return cls(learner, start, torch.zeros_like(start), {})

    def round(self, clients: Sequence[int], round_index: int, clip: float | None = None) -> NDArray[np.float64]:
        """A round in which these clients are heard; the norms (n,) of what they send before clipping."""
        sizes = self.learner.population.sizes
        share = torch.from_numpy(sizes[list(clients)] / sizes.sum())
        sent = torch.stack([self._client(client, round_index) for client in clients])
        norms = sent.flatten(1).norm(dim=1)
        if clip is not None:
            sent = sent * (clip / norms).clamp(max=1.0)[:, None, None]
        mean = torch.einsum("i,ipd->pd", share / share.sum(), sent)
        self.model = self.model + mean[0]
        self.control = self.control + share.sum() * mean[1]
        return np.asarray(norms)

    def _client(self, client: int, round_index: int) -> Tensor:
        own = self.controls.get(client, torch.zeros_like(self.control))
        update, steps = train_locally(self.learner, self.model, client, round_index, self.control - own)
        training = self.learner.training
        # By how much one gradient in each of the last k steps has moved the model, over η
        summed = sum(sum(training.optimizer.decay**age for age in range(last)) for last in range(1, steps + 1))
        new = own - self.control - update / (summed * training.learning_rate)
        self.controls[client] = new
        return torch.stack([update, new - own])


def train_locally(
    learner: Learner,
    model: Tensor,
    client: int,
    round_index: int,
    correction: Tensor,
    mu: float = 0.0,
    taken: int | None = None,
    begin: Tensor | None = None,
    seen: list[Tensor] | None = None,
) -> tuple[Tensor, int]:
    """Δ (d,) of a client and its local steps, by nn.Module, autograd and torch.optim.SGD in double precision.

    Args:
        learner: of the run, whose data and batches these are.
        model: (d,) float64 global model.
        client: its number.
        round_index: from 1.
        correction: (d,) added to every gradient.
        mu: weight of a proximal term.
        taken: local steps; None for all.
        begin: (d,) float64 model that it starts from; None for the global one.
        seen: gets the gradients (d,) of the local steps, before anything is added to them.
    """
    training, module = learner.training, learner.model.replica(torch.device("cpu")).module.double()
    parameters = list(module.parameters())
    nn.utils.vector_to_parameters((model if begin is None else begin).clone(), parameters)
    shard, sizes = learner.population.shards(np.array([client])), learner.population.sizes[[client]]
    steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
    stream = learner.streams.nodes("batch_order", round_index, np.array([client]))
    batches = plan_batches(training.sampling, stream, sizes, steps, training.batch_size)
    optimizer = torch.optim.SGD(parameters, lr=training.learning_rate, momentum=training.optimizer.decay)
    last = int(steps[0]) if taken is None else taken
    for step in range(last):
        rows = shard.index[0, batches.index[step, 0, : batches.counts[step, 0]]]
        loss = nn.functional.cross_entropy(module(shard.inputs[rows].double()), shard.targets[rows])
        gradient = torch.cat([part.flatten() for part in torch.autograd.grad(loss, parameters)])
        if seen is not None:
            seen.append(gradient)
        moved = nn.utils.parameters_to_vector(parameters).detach() - model
        whole = gradient + correction + mu * moved
        parts = torch.split(whole, [parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)
        optimizer.step()
    return nn.utils.parameters_to_vector(parameters).detach() - model, last
