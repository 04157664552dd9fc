"""The clients' side of an algorithm: whose memory its uploads lie in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from wirelessfl.learning import CohortBlock, FedAvg, ServerState
from wirelessfl.learning.algorithms.base import AlgorithmFacts, ClientRows, LocalOutcome
from wirelessfl.learning.client_side import ClientSide


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
