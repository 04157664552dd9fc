"""Protocol of federated algorithms: the clients' local objective, rows and uploads, and the server's step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.errors import precondition


@dataclass(frozen=True)
class AlgorithmFacts:
    """Facts of an algorithm that the rest of a simulation has to know before it begins.

    Attributes:
        payload: P, vectors of length d that a client sends in a round. Upload bits and airtime grow with it.
        broadcast: vectors of length d that the server sends to the clients, the global model among them.
        client_side: whether ``finish`` and ``upload`` are called: clients keep rows from round to round, or send
            something else than their updates.
        numbers: single numbers of 32 bits that a client sends beside its vectors; digital uploads count them.
        reads_gradients: whether ``finish`` reads the gradient of each client's loss at the received model: one more
            pass over all its samples, which takes time and energy, and which no noise in local training protects.
        passes: models that a client trains on its mini-batches, each of which takes the time of one.

    Raises:
        ValueError: if payload, broadcast or passes is below 1, ``numbers`` below 0, several vectors are to come from
            clients that send their updates alone, or gradients are read by no ``finish``.
    """

    payload: int = 1
    broadcast: int = 1
    client_side: bool = False
    numbers: int = 0
    reads_gradients: bool = False
    passes: int = 1

    def __post_init__(self) -> None:
        precondition(
            min(self.payload, self.broadcast, self.passes) >= 1,
            f"payload, broadcast and passes must be at least 1, not {self.payload}, {self.broadcast} and {self.passes}",
        )
        precondition(self.numbers >= 0, f"numbers must be at least 0, not {self.numbers}")
        precondition(
            self.payload == 1 or self.client_side,
            f"a payload of {self.payload} vectors needs client_side: updates alone are one vector",
        )
        precondition(self.client_side or not self.reads_gradients, "reads_gradients needs client_side")


@dataclass(frozen=True)
class ServerState:
    """The global model, and what an algorithm keeps beside it at the server.

    Attributes:
        parameters: (d,) the global model w̄ that the clients receive.
        memory: Further tensors by name; those that clients read are broadcast too, see ``AlgorithmFacts.broadcast``.
    """

    parameters: Tensor
    memory: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class ClientRows:
    """Rows that k clients keep from round to round.

    Attributes:
        clients: (k,) their numbers.
        values: Rows (k, ...) by name.
    """

    clients: NDArray[np.int64]
    values: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class LocalObjective:
    """The local loss F_i(w) + cᵢᵀw + (μ/2)‖w − w̄‖² of k clients, by its two additions.

    Attributes:
        prox_mu: μ, the proximal weight; 0 for none.
        correction: (k, d) cᵢ, added to every gradient after clipping and noise; None for none. It must not read data.
    """

    prox_mu: float = 0.0
    correction: Tensor | None = None


@dataclass(frozen=True)
class LocalOutcome:
    """The finished local training of k clients.

    Attributes:
        updates: (k, d) Δ_i = w_i − w̄ before clipping.
        steps: (k,) local steps.
        learning_rate: η of the round.
        gradients: (k, d) ∇F_i(w̄), the mean over all samples of each client at the received model, with
            ``AlgorithmFacts.reads_gradients``; None without.
    """

    updates: Tensor
    steps: NDArray[np.int64]
    learning_rate: float
    gradients: Tensor | None = None


@dataclass(frozen=True)
class RoundFacts:
    """Public facts of a round.

    Where noise of the server hides who came, k is 0, and ``share`` the probability of selection by which the sum was
    divided: what the server makes of the aggregate may then depend on nobody's participation.

    Attributes:
        round_index: Communication round, from 1.
        registered: K, clients registered.
        arrived: (k,) the clients whose uploads are in the aggregate.
        weights: (k,) their p_i, which sum to 1 over all registered clients.
        steps: (k,) their local steps.
        learning_rate: η of the round.
        share: Share of all samples that the aggregate counts as: times this it is the sum of the uploads by their p_i.
    """

    round_index: int
    registered: int
    arrived: NDArray[np.int64]
    weights: NDArray[np.float64]
    steps: NDArray[np.int64]
    learning_rate: float
    share: float


@runtime_checkable
class Algorithm(Protocol):
    """Client side and server step of a federated algorithm; all state is passed in and given back.

    A class that derives from this one need only define ``step``. What a client keeps and sends may depend on nothing
    but the arguments: then it is a function of what local noise has protected, and costs no further privacy.
    """

    def facts(self) -> AlgorithmFacts:
        """Sizes of what is sent; by default one vector in each direction."""
        return AlgorithmFacts()

    def start(self, parameters: Tensor) -> ServerState:
        """The server's state before the first round, from the initial model (d,)."""
        return ServerState(parameters)

    def first_rows(self, server: ServerState, clients: NDArray[np.int64]) -> ClientRows:
        """The rows of (k,) clients that take part for the first time; by default none are kept."""
        return ClientRows(clients)

    def client(self, server: ServerState, rows: ClientRows) -> LocalObjective:
        """The local objective of k clients, from what they received and what they keep; by default the plain loss."""
        return LocalObjective()

    def finish(self, server: ServerState, rows: ClientRows, outcome: LocalOutcome) -> ClientRows:
        """The rows (k, ...) that the clients keep after their local training; called with ``client_side`` alone."""
        return rows

    def upload(self, server: ServerState, before: ClientRows, after: ClientRows, outcome: LocalOutcome) -> Tensor:
        """(k, P, d) what the clients send, by default their updates; called with ``client_side`` alone.

        The tensor may be changed in place afterwards, and is therefore new or the updates themselves.

        Args:
            server: What they received.
            before: Their rows before training.
            after: What ``finish`` gave.
            outcome: Of their training.
        """
        return outcome.updates[:, None]

    def received(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> tuple[ServerState, Tensor]:
        """What the server takes from an aggregate (P, d) before its optimizer, by default nothing.

        Called before ``step``, whose ``aggregate`` has been through the optimizer: what is to follow from the clients'
        own mean, such as a control variate, is taken here.

        Returns:
            The state with what is remembered of the aggregate, its model as it was; and (P, d), of which the first is
            the pseudo-gradient that a server optimizer is applied to.
        """
        return server, aggregate

    def step(self, server: ServerState, aggregate: Tensor, facts: RoundFacts) -> ServerState:
        """The server's state after a round.

        Args:
            server: The state that ``received`` gave; left as it is.
            aggregate: (P, d) what ``received`` gave of the received g, estimates of Σ_i p_i u_i/Σ_i p_i over the
                uploads u_i; a server optimizer has been applied to the first.
            facts: Of the round.
        """
