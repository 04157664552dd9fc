"""Models of single clients beside the global one: their local steps, and their accuracies on own samples."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.learning.cohort import BlockMap, ExecutionPlan, LocalTraining, train_cohort
from wirelessfl.learning.cohort.execution import full_precision
from wirelessfl.learning.data.examples import Examples
from wirelessfl.learning.fairness import ClientAccuracies
from wirelessfl.learning.flat import FlatModel
from wirelessfl.learning.population import Population
from wirelessfl.streams import Streams

Rows = NDArray[np.float32]


@dataclass
class PersonalModels:
    """The models v_i of the clients that ever took part; a part of the checkpoint.

    Attributes:
        by_client: (d,) the model of each, by number; never changed in place.
    """

    by_client: dict[int, Rows] = field(default_factory=dict)

    @property
    def clients(self) -> NDArray[np.int64]:
        """(n,) ascending numbers of the clients that have one."""
        return np.array(sorted(self.by_client), dtype=np.int64)

    def of(self, clients: NDArray[np.int64], otherwise: Rows) -> Rows:
        """(k, d) the models of clients, and of those that have none yet the model (d,) given."""
        return np.stack([self.by_client.get(client, otherwise) for client in clients.tolist()])

    def state(self) -> dict[str, Any]:
        """The models by the numbers of their clients."""
        return {str(client): model for client, model in self.by_client.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Models as a state has them."""
        self.by_client = {int(client): model for client, model in state.items()}


@dataclass(frozen=True)
class PersonalTraining:
    """Local steps without noise, as nothing of them leaves the client.

    Attributes:
        model: the network.
        population: the clients' data.
        training: of every client; no upload is clipped here.
        plan: how it is computed.
        streams: of the run; mini-batches are those of the round.
        elsewhere: trains blocks in other processes; None for this one.
    """

    model: FlatModel
    population: Population
    training: LocalTraining
    plan: ExecutionPlan
    streams: Streams
    elsewhere: BlockMap | None = None

    def ditto(
        self,
        received: Rows,
        personal: Rows,
        lam: float,
        clients: NDArray[np.int64],
        round_index: int,
        steps: NDArray[np.int64] | None,
    ) -> Iterator[tuple[NDArray[np.int64], Rows]]:
        """Positions among ``clients`` and (k, d) their models v after v ← v − η(∇F(v) + λ(v − w̄)), block by block.

        Args:
            received: (d,) the global model w̄.
            personal: (n, d) the models before.
            lam: λ.
            clients: (n,) their numbers.
            round_index: whose mini-batches are taken.
            steps: (n,) local steps; None for all.
        """
        return self._trained(replace(self.training, prox_mu=lam), received, personal, clients, round_index, steps)

    def tuned(
        self, received: Rows, clients: NDArray[np.int64], steps: int | None, epochs: int | None
    ) -> Iterator[tuple[NDArray[np.int64], Rows]]:
        """Positions and (k, d) models after local steps from a global model (d,), block by block.

        The mini-batches are those of round 0, which no training takes, and the same whenever the model is tested.
        """
        training = replace(self.training, prox_mu=0.0, steps=steps, epochs=epochs)
        return self._trained(training, received, None, clients, 0, None)

    def _trained(
        self,
        training: LocalTraining,
        received: Rows,
        personal: Rows | None,
        clients: NDArray[np.int64],
        round_index: int,
        steps: NDArray[np.int64] | None,
    ) -> Iterator[tuple[NDArray[np.int64], Rows]]:
        start = torch.from_numpy(received)
        parts = (self.model, start, self.population, clients, replace(training, clip=None), self.streams)
        for block in train_cohort(
            *parts, round_index, self.plan, steps=steps, begin=personal, elsewhere=self.elsewhere
        ):
            yield block.positions, block.updates.cpu().numpy() + received


def personal_accuracies(
    model: FlatModel, models: Iterator[tuple[NDArray[np.int64], Rows]], test: Examples, owners: NDArray[np.int64]
) -> ClientAccuracies | None:
    """Accuracy of each client's own model on its own test samples; None where no client has both.

    Args:
        model: the network.
        models: numbers of k clients and their models (k, d), block by block.
        test: N test samples.
        owners: (N,) their clients; −1 of samples of nobody.
    """
    clients: list[int] = []
    accuracies: list[float] = []
    for numbers, rows in models:
        for client, row in zip(numbers.tolist(), rows, strict=True):
            own = np.flatnonzero(owners == client)
            if len(own):
                clients.append(client)
                accuracies.append(_accuracy(model, row, test.take(own)))
    order: Sequence[int] = np.argsort(clients).tolist()
    found = np.array(clients, dtype=np.int64)[order], np.array(accuracies)[order]
    return ClientAccuracies(*found) if clients else None


def _accuracy(model: FlatModel, row: Rows, own: Examples) -> float:
    parameters = torch.from_numpy(row).to(own.inputs.device)
    with torch.no_grad(), full_precision(parameters.device):
        logits = model.on(parameters.device).logits(parameters, own.inputs)
        right = (logits.argmax(dim=-1) == own.targets) & logits.isfinite().all(dim=-1)
    return float(right.double().mean())
