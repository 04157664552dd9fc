"""SCAFFOLD: local gradients corrected by control variates."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.learning.algorithms.base import (
    Algorithm,
    AlgorithmFacts,
    ClientRows,
    LocalObjective,
    LocalOutcome,
    RoundFacts,
    ServerState,
)
from wirelessfl.learning.algorithms.gradient_weights import summed_weights


@dataclass(frozen=True)
class Scaffold(Algorithm):
    """Karimireddy et al., "SCAFFOLD", ICML 2020, Algorithm 1, with means weighted by data.

    A client adds c − c_i to every gradient. After K_i local steps it keeps c_i⁺ = ∇F_i(w̄) over all its samples at the
    received model (option I), or c_i⁺ = c_i − c − Δ_i/(‖a_i‖₁ η) (option II). The server adds Σ p_i (c_i⁺ − c_i) over
    the uploads to c. In option II Δc_i = −c − Δ_i/(‖a_i‖₁ η), and one vector of a client says both.

    ‖a_i‖₁ is the summed weight of the local gradients in −Δ_i/η: K_i, as in the paper, without momentum. With momentum,
    which adds up the corrected gradients, c_i⁺ thereby remains a weighted mean of the client's gradients.

    Attributes:
        server_lr: η_g, factor on the mean update.
        payload: 2, and a client sends Δ_i and Δc_i; 1, and the server computes the mean of Δc_i from that of Δ_i,
            which needs option II and that all clients take equally many steps.
        option: 1 or 2.
        momentum: ρ, momentum of the local steps.

    Raises:
        ValueError: if η_g is not positive and finite, the payload or the option neither 1 nor 2, the payload 1 with
            option I, or ρ outside [0, 1).
    """

    server_lr: float = 1.0
    payload: int = 2
    option: int = 2
    momentum: float = 0.0

    def __post_init__(self) -> None:
        holds = 0 < self.server_lr < math.inf and {self.payload, self.option} <= {1, 2}
        precondition(holds, f"needs a positive server_lr, and a payload and an option of 1 or 2, not {self}")
        precondition(0 <= self.momentum < 1, f"momentum must lie in [0, 1), not {self.momentum}")
        precondition(self.payload == 2 or self.option == 2, "option I needs a payload of 2: Δ_i does not tell ∇F_i(w̄)")

    @override
    def facts(self) -> AlgorithmFacts:
        return AlgorithmFacts(payload=self.payload, broadcast=2, client_side=True, reads_gradients=self.option == 1)

    @override
    def start(self, parameters: Tensor) -> ServerState:
        return ServerState(parameters, {"control": torch.zeros_like(parameters)})

    @override
    def first_rows(self, server: ServerState, clients: NDArray[np.int64]) -> ClientRows:
        return ClientRows(clients, {"control": server.parameters.new_zeros(len(clients), len(server.parameters))})

    @override
    def client(self, server: ServerState, rows: ClientRows) -> LocalObjective:
        return LocalObjective(correction=server.memory["control"] - rows.values["control"])

    @override
    def finish(self, server: ServerState, rows: ClientRows, outcome: LocalOutcome) -> ClientRows:
        own = rows.values["control"]
        if self.option == 1:
            assert outcome.gradients is not None, "reads_gradients asks for them"
            control = outcome.gradients
        else:  # in one new matrix, in two passes over all models of a block
            control = (own - server.memory["control"]).addcmul_(outcome.updates, self._slope(outcome))
        if outcome.steps.all():
            return replace(rows, values={"control": control})
        took = torch.from_numpy(outcome.steps > 0).to(own.device)[:, None]
        return replace(rows, values={"control": torch.where(took, control, own)})

    @override
    def upload(self, server: ServerState, before: ClientRows, after: ClientRows, outcome: LocalOutcome) -> Tensor:
        if self.payload == 1:
            return outcome.updates[:, None]
        sent = outcome.updates.new_empty(len(outcome.updates), 2, outcome.updates.shape[1])
        sent[:, 0] = outcome.updates
        if self.option == 2 and outcome.steps.all():  # a pass less than the difference of the rows
            torch.addcmul(-server.memory["control"], outcome.updates, self._slope(outcome), out=sent[:, 1])
        else:
            torch.sub(after.values["control"], before.values["control"], out=sent[:, 1])
        return sent

    @override
    def received(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> tuple[ServerState, Tensor]:
        control = server.memory["control"]
        change = aggregate[1] if self.payload == 2 else self._change(control, aggregate[0], facts)
        return replace(server, memory={"control": control + facts.share * change}), aggregate

    @override
    def step(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> ServerState:
        return replace(server, parameters=server.parameters + self.server_lr * aggregate[0])

    def _slope(self, outcome: LocalOutcome) -> Tensor:
        # (k, 1) −1/(‖a_i‖₁ η), from Δ_i to the mean of a client's gradients
        summed = torch.from_numpy(summed_weights(outcome.steps, self.momentum)).to(outcome.updates)[:, None]
        return -1 / (summed * outcome.learning_rate)

    def _change(self, control: Tensor, update: Tensor, facts: RoundFacts) -> Tensor:
        # (d,) the mean of Δc_i = −c − Δ_i/(‖a‖₁ η) from that of Δ_i
        summed = float(summed_weights(facts.steps, self.momentum).max(initial=0.0))
        return -control - update / (summed * facts.learning_rate) if summed else torch.zeros_like(control)
