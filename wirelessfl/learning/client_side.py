"""The clients' side of an algorithm in one round: rows of those who take part, their objectives and uploads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wirelessfl.conformance import KEYS, given
from wirelessfl.errors import ScenarioError, defined_at, instance_of
from wirelessfl.learning.algorithms.base import (
    Algorithm,
    ClientRows,
    LocalObjective,
    LocalOutcome,
    ServerState,
)
from wirelessfl.learning.cohort.run import clip_rows
from wirelessfl.learning.cohort.training import CohortBlock
from wirelessfl.transfers import download, upload

# Rows (n, ...) of the n clients that ever took part, by name, and under ``CLIENT`` (n,) the clients' numbers
RowStore = dict[str, NDArray[Any]]

CLIENT = "client"

_PLAIN = f"a tensor with requires_grad=False in layout {torch.strided}"


def empty_store(algorithm: Algorithm, server: ServerState) -> RowStore:
    """A store without clients, with the shapes and types of an algorithm's rows.

    Raises:
        ScenarioError: a row has the name that is kept for the clients' numbers, or there are rows of nobody.
    """
    nobody = np.zeros(0, dtype=np.int64)
    rows = algorithm.first_rows(server, nobody).values if algorithm.facts().client_side else {}
    _check(algorithm, CLIENT not in rows, f"keeps rows called {CLIENT!r}", "another name")
    _check_rows(algorithm, rows, 0, rows)
    return {CLIENT: nobody, **{name: values.numpy() for name, values in rows.items()}} if rows else {}


@dataclass(frozen=True)
class Footprint:
    """Memory that an algorithm takes beside the local training itself, by shapes alone.

    Attributes:
        objective: local objective of one client that takes part for the first time.
        received: bytes that the clients share: the global model and what is broadcast with it.
        upload: bytes of a client's upload, of P vectors.
        finishing: bytes for a client, beside its update, while its rows and its upload are made: the rows before and
            after, the upload, a vector on the way to it, and a gradient that is read; 0 where updates are sent as they
            are.
    """

    objective: LocalObjective
    received: int
    upload: int
    finishing: int

    @classmethod
    def of(cls, algorithm: Algorithm, dimension: int) -> Self:
        """The footprint of an algorithm on a model of ``dimension`` parameters, on the host."""
        server, facts = algorithm.start(torch.zeros(dimension)), algorithm.facts()
        rows = algorithm.first_rows(server, np.zeros(1, dtype=np.int64))
        upload = facts.payload * server.parameters.nbytes
        vector, kept = server.parameters.nbytes, sum(values.nbytes for values in rows.values.values())
        finishing = upload + 2 * kept + vector if facts.client_side else 0
        finishing += facts.reads_gradients * vector
        received = sum(values.nbytes for values in (server.parameters, *server.memory.values()))
        return cls(algorithm.client(server, rows), received, upload, finishing)


class ClientSide:
    """The clients' side in one round.

    Args:
        algorithm: the algorithm.
        server: what the clients received, in the memory of the host.
        clients: (n,) who trains; those new to the store get their first rows.
        steps: (n,) their local steps.
        learning_rate: η of the round.
        clip: τ, to whose norm the whole upload of a client is scaled where it exceeds it; None for no clipping.
        store: rows of all clients that ever took part; changed in place.
        device: where the clients train.
        gradients_at: (k, d) gradients of the losses of clients (k,) at a model (d,), for an algorithm that reads them.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        server: ServerState,
        clients: NDArray[np.int64],
        steps: NDArray[np.int64],
        learning_rate: float,
        clip: float | None,
        store: RowStore,
        device: torch.device,
        gradients_at: Callable[[Tensor, NDArray[np.int64]], Tensor],
    ) -> None:
        self.algorithm, self.clients, self.steps, self.store, self.device = algorithm, clients, steps, store, device
        self.learning_rate, self.clip, self.gradients_at = learning_rate, clip, gradients_at
        there = {name: value.to(device) for name, value in server.memory.items()}
        self.server = ServerState(server.parameters.to(device), there)
        self._places = self._enrol(server) if store else np.zeros(0, dtype=np.int64)

    def _enrol(self, server: ServerState) -> NDArray[np.int64]:
        # (n,) places of the clients' rows in the store, which gets those of new clients
        new = np.setdiff1d(self.clients, self.store[CLIENT])
        first = self.algorithm.first_rows(server, new).values
        _check_rows(self.algorithm, first, len(new), {name: self.store[name] for name in self.store if name != CLIENT})
        if len(new):  # the store is large, and nothing is copied in vain
            for name, rows in {CLIENT: torch.from_numpy(new), **first}.items():
                self.store[name] = np.concatenate([self.store[name], rows.numpy()])
        order = np.argsort(self.store[CLIENT], kind="stable")
        return order[np.searchsorted(self.store[CLIENT], self.clients, sorter=order)]

    def objective(self, positions: NDArray[np.int64]) -> LocalObjective:
        """The local objective of the clients at ``positions``; called by worker threads.

        Raises:
            ScenarioError: its correction has another shape than their updates.
        """
        objective = self.algorithm.client(self.server, self._rows(positions))
        own = given("algorithm", self.algorithm, "client", objective, LocalObjective)
        wanted = (len(positions), len(self.server.parameters))
        found = wanted if own.correction is None else tuple(own.correction.shape)
        _check(self.algorithm, found == wanted, f"corrects gradients by a {found}", wanted)
        return own

    def finished(self, block: CohortBlock) -> CohortBlock:
        """A block with uploads (k, P·d) in place of updates; the rows that its clients keep go to the store.

        Called by worker threads at once, for blocks of different clients.

        Raises:
            ScenarioError: rows or uploads are no plain tensors, or of another shape than the algorithm says.
        """
        before = self._rows(block.positions)
        gradients = None
        if self.algorithm.facts().reads_gradients:
            gradients = self.gradients_at(self.server.parameters, self.clients[block.positions])
        outcome = LocalOutcome(block.updates, self.steps[block.positions], self.learning_rate, gradients)
        finished = self.algorithm.finish(self.server, before, outcome)
        after = given("algorithm", self.algorithm, "finish", finished, ClientRows)
        _check_rows(self.algorithm, after.values, len(block.positions), before.values)
        uploaded = self.algorithm.upload(self.server, before, after, outcome)
        sent = given("algorithm", self.algorithm, "upload", uploaded, Tensor)
        _check(self.algorithm, _is_plain(sent), f"uploads {_words(sent)}", _PLAIN)
        wanted = (len(block.positions), self.algorithm.facts().payload, block.updates.shape[1])
        found = f"uploads a tensor of shape {tuple(sent.shape)} in {sent.dtype}"
        same = sent.shape == wanted and sent.dtype == block.updates.dtype
        _check(self.algorithm, same, found, f"{wanted} in {block.updates.dtype}")
        vectors = self._own(sent, before).view(len(sent), -1)
        norm_raw = torch.linalg.vector_norm(vectors, dim=1)
        norms = download({"norm_raw": norm_raw.double()})
        kept = self._reaching(vectors, norms["norm_raw"])
        places = self._places[block.positions[kept]] if self.store else self._places
        for name, rows in download(dict(after.values)).items():
            self.store[name][places] = rows[kept]
        norm = norm_raw if self.clip is None else clip_rows(vectors, norm_raw, self.clip)
        norms |= download({"norm": norm.double()})
        return replace(block, updates=vectors, norm_raw=norms["norm_raw"], norm=norms["norm"])

    def _reaching(self, vectors: Tensor, norm_raw: NDArray[np.float64]) -> slice | NDArray[np.int64]:
        # The clients of a block whose uploads (k, P·d) are finite. Of any other nothing comes into an aggregate, as of
        # one that is lost, and its client keeps what it had before.
        finite = np.isfinite(norm_raw)
        if finite.all():
            return slice(None)
        if self.clip is None:  # sent as they are, also where only the norm is beyond single precision
            beyond = np.flatnonzero(~finite)
            rows = vectors[torch.from_numpy(beyond).to(vectors.device)]
            finite[beyond] = torch.isfinite(rows).all(dim=1).cpu().numpy()
        return np.flatnonzero(finite)

    def _own(self, sent: Tensor, before: ClientRows) -> Tensor:
        # Uploads in memory that is neither the server's nor the store's, where rows before may lie, one client after
        # the other: they are changed in place, and the new rows are written to the store before they are sent
        others = (self.server.parameters, *self.server.memory.values(), *before.values.values())
        shared = sent.untyped_storage().data_ptr() in {one.untyped_storage().data_ptr() for one in others}
        return sent.clone(memory_format=torch.contiguous_format) if shared or not sent.is_contiguous() else sent

    def _rows(self, positions: NDArray[np.int64]) -> ClientRows:
        names = [name for name in self.store if name != CLIENT]
        taken = [_taken(self.store[name], self._places[positions]) for name in names]
        return ClientRows(self.clients[positions], dict(zip(names, upload(taken, self.device), strict=True)))


def _taken(rows: NDArray[Any], places: NDArray[np.int64]) -> NDArray[Any]:
    # The rows at ``places``, not copied where they lie in a row; nobody writes to them
    if len(places) and np.array_equal(places, np.arange(places[0], places[0] + len(places))):
        return rows[places[0] : places[0] + len(places)]
    return rows[places]


def _check_rows(algorithm: Algorithm, found: Mapping[str, Tensor], count: int, like: Mapping[str, Any]) -> None:
    # ``count`` rows of each name, of the shapes and types of those that it began with; a store would cast any other
    _check(algorithm, isinstance(found, Mapping), f"keeps {instance_of(type(found))}", "a mapping of tensors by name")
    for name, rows in found.items():
        _check(algorithm, _is_plain(rows), f"keeps as {name!r} {_words(rows)}", _PLAIN)

    def kind(rows: Any) -> str:
        return str(rows.dtype).removeprefix("torch.")

    ours = {name: (tuple(rows.shape), kind(rows)) for name, rows in found.items()}
    wanted = {name: ((count, *rows.shape[1:]), kind(rows)) for name, rows in like.items()}
    _check(algorithm, ours == wanted, f"keeps {ours}", f"the rows that it began with, {wanted}")


def _is_plain(value: object) -> bool:
    return isinstance(value, Tensor) and value.layout == torch.strided and not value.requires_grad


def _words(value: object) -> str:
    if not isinstance(value, Tensor):
        return instance_of(type(value))
    return f"a tensor with requires_grad={value.requires_grad} in layout {value.layout}"


def _check(algorithm: Algorithm, holds: bool, found: str, allowed: object) -> None:
    if holds:  # asked for every block: words are made where they are needed
        return
    said = f"{type(algorithm).__name__} {found}; allowed: {allowed}; `check_algorithm` tests it"
    raise ScenarioError(f"{KEYS['algorithm']}: {said}{defined_at(type(algorithm))}")
