"""Error feedback: what a codec lost is added to a client's next upload."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ErrorFeedback:
    """Residuals e_i of clients: x_i = Δ_i + e_i is encoded, and e_i ← x_i − what arrives of it.

    Seide et al., "1-bit stochastic gradient descent", 2014; Stich, Karimireddy, "The error-feedback framework", 2020.
    A residual stays as it is where the upload does not reach the server. Memory grows with the clients that took part.
    """

    def __init__(self) -> None:
        self._rows: dict[str, NDArray[np.float32]] = {}

    def added(self, clients: NDArray[np.int64], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """(k, D) vectors of (k,) clients with their residuals."""
        whole = vectors.copy()
        for row, client in zip(whole, clients.tolist(), strict=True):
            residual = self._rows.get(str(client))
            if residual is not None:
                row += residual
        return whole

    def keep(self, clients: NDArray[np.int64], residuals: NDArray[np.float32]) -> None:
        """New residuals (k, D) of (k,) clients."""
        for residual, client in zip(residuals, clients.tolist(), strict=True):
            self._rows[str(client)] = residual.copy()  # never changed in place: a state shares it

    def state(self) -> dict[str, Any]:
        """The residuals by client."""
        return dict(self._rows)

    def restore(self, state: Mapping[str, Any]) -> None:
        """The residuals as a state has them."""
        self._rows = {client: np.asarray(row, dtype=np.float32) for client, row in state.items()}
