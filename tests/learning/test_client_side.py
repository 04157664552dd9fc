"""The clients' side of an algorithm: whose memory its uploads lie in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.learning import CohortBlock, FedAvg, ServerState
from wirelessfl.learning.algorithms.base import AlgorithmFacts, ClientRows, LocalOutcome
from wirelessfl.learning.client_side import ClientSide, RowStore


@dataclass(frozen=True)
class SendsWhatIsTheServers(FedAvg):
    """Uploads in the memory of the global model, one row for all clients."""

    def facts(self) -> AlgorithmFacts:
        return AlgorithmFacts(client_side=True)

    def upload(self, server: ServerState, before: ClientRows, after: ClientRows, outcome: LocalOutcome) -> Tensor:
        return server.parameters.expand(len(before.clients), 1, -1)


def test_uploads_are_clipped_and_the_server_keeps_its_model() -> None:
    model, ones, cpu = torch.full((5,), 3.0), np.ones(2), torch.device("cpu")
    algorithm, clients, server = SendsWhatIsTheServers(), np.arange(2), ServerState(model)
    side = ClientSide(algorithm, server, clients, np.ones(2, int), 0.1, 1.0, {}, cpu, lambda at, own: torch.zeros(0))
    block = side.finished(CohortBlock(clients, torch.zeros(2, 5), ones, ones, ones))
    torch.testing.assert_close(torch.linalg.vector_norm(block.updates, dim=1), torch.ones(2))
    assert torch.equal(model, torch.full((5,), 3.0))


@dataclass(frozen=True)
class SendsWhatWasKept(FedAvg):
    """Uploads of the update of the round before, in the memory of the rows that hold it."""

    def facts(self) -> AlgorithmFacts:
        return AlgorithmFacts(client_side=True)

    def first_rows(self, server: ServerState, clients: NDArray[np.int64]) -> ClientRows:
        return ClientRows(clients, {"last": torch.zeros(len(clients), len(server.parameters))})

    def finish(self, server: ServerState, rows: ClientRows, outcome: LocalOutcome) -> ClientRows:
        return replace(rows, values={"last": outcome.updates.clone()})

    def upload(self, server: ServerState, before: ClientRows, after: ClientRows, outcome: LocalOutcome) -> Tensor:
        return before.values["last"][:, None]


@pytest.mark.parametrize("clients", [[0, 1], [1, 0]], ids=["neighbours", "apart"])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_rows_that_are_sent_are_those_before_the_round(clients: list[int], clip: float | None) -> None:
    """Neighbours in the store are lent to the algorithm without a copy, and the new rows are written over them."""
    there, ones, cpu = np.array(clients), np.ones(2), torch.device("cpu")
    old, new = np.full((2, 5), 3.0, np.float32), torch.full((2, 5), 7.0)
    store: RowStore = {"client": np.arange(2), "last": old.copy()}
    algorithm, server = SendsWhatWasKept(), ServerState(torch.zeros(5))
    side = ClientSide(algorithm, server, there, np.ones(2, int), 0.1, clip, store, cpu, lambda at, own: torch.zeros(0))
    block = side.finished(CohortBlock(np.arange(2), new.clone(), ones, ones, ones))
    sent = torch.from_numpy(old) if clip is None else torch.full((2, 5), 5**-0.5)
    torch.testing.assert_close(block.updates, sent)
    block.updates.zero_()
    assert np.array_equal(store["last"], new.numpy())
