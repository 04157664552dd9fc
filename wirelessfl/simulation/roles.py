"""Clients that do not follow the protocol: who they are, and what they send in place of an update."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.learning import CohortBlock
from wirelessfl.trace import Role


@dataclass(frozen=True, eq=False)
class Roles:
    """The m clients with a role, the same ones in all rounds.

    Attributes:
        clients: (m,) their numbers, ascending.
        codes: (m,) their roles.
        factors: (m,) of their updates or amplitudes; 1 for roles without one.
        over_the_air: whether factors are those of amplitudes, which the uplink applies.
    """

    clients: NDArray[np.int64]
    codes: NDArray[np.uint8]
    factors: NDArray[np.float64]
    over_the_air: bool

    def of(self, clients: NDArray[np.int64]) -> NDArray[np.uint8]:
        """(n,) the roles of clients."""
        found = np.full(len(clients), Role.HONEST, dtype=np.uint8)
        mine, rows = self._rows(clients)
        found[mine] = self.codes[rows]
        return found

    def have(self, clients: NDArray[np.int64], *roles: Role) -> NDArray[np.bool_]:
        """(n,) whether clients have one of some roles."""
        return np.asarray(np.isin(self.of(clients), roles), dtype=np.bool_)

    def exceed(self, clients: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(n,) whether what a client sends may exceed every bound that the ledger counts with."""
        return np.asarray(self.amplitudes(clients) > 1.0)

    def amplitudes(self, clients: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) factors of the amplitudes that clients send with."""
        if not self.over_the_air:
            return np.ones(len(clients))
        return self._factors(clients, Role.SIGN_FLIP, Role.SCALED, Role.POWER_CHEAT)

    def acted(
        self, clients: NDArray[np.int64], dimension: int, train: Callable[[NDArray[np.int64]], Iterator[CohortBlock]]
    ) -> Iterator[CohortBlock]:
        """Blocks of what clients send; those who do not train are not trained.

        Args:
            clients: (n,) who sends.
            dimension: numbers of an upload.
            train: gives the blocks of some clients; called at once, as workers begin then.
        """
        idle = self.have(clients, Role.FREE_RIDER)
        working = np.flatnonzero(~idle)
        blocks = train(clients[working]) if len(working) else iter(())
        return self._altered(clients, dimension, working, blocks, np.flatnonzero(idle))

    def _altered(
        self,
        clients: NDArray[np.int64],
        dimension: int,
        working: NDArray[np.int64],
        blocks: Iterator[CohortBlock],
        idle: NDArray[np.int64],
    ) -> Iterator[CohortBlock]:
        device = torch.device("cpu")
        for block in blocks:
            positions, device = working[block.positions], block.updates.device
            factors = self._upload_factors(clients[positions])
            yield _multiplied(replace(block, positions=positions), factors)
        if len(idle):
            nothing, unknown = np.zeros(len(idle)), np.full(len(idle), np.nan)
            updates = torch.zeros(1, dimension, device=device).expand(len(idle), -1)
            yield CohortBlock(idle, updates, nothing, nothing, unknown)

    def _upload_factors(self, clients: NDArray[np.int64]) -> NDArray[np.float64]:
        scaled = (Role.SIGN_FLIP, Role.SCALED)
        factors = np.ones(len(clients)) if self.over_the_air else self._factors(clients, *scaled)
        return np.where(self.have(clients, Role.SIGN_FLIP), -factors, factors)

    def _factors(self, clients: NDArray[np.int64], *roles: Role) -> NDArray[np.float64]:
        found = np.ones(len(clients))
        mine, rows = self._rows(clients)
        found[mine] = np.where(np.isin(self.codes[rows], roles), self.factors[rows], 1.0)
        return found

    def _rows(self, clients: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        # (n,) who of the clients has a role, and the rows of those here
        mine = np.isin(clients, self.clients)
        return mine, np.searchsorted(self.clients, clients[mine])


def _multiplied(block: CohortBlock, factors: NDArray[np.float64]) -> CohortBlock:
    # Rows times factors (k,), in place; the zeros of a rehearsal are one row in memory, whose norms alone count
    changed = np.flatnonzero(factors != 1.0)
    if not len(changed):
        return block
    if block.updates.stride(0) or len(block.updates) == 1:
        rows = torch.from_numpy(changed).to(block.updates.device)
        scale = torch.from_numpy(factors[changed]).to(block.updates)
        block.updates[rows] = block.updates[rows] * scale[:, None]
    return replace(block, norm=block.norm * np.abs(factors))
