"""Protocol of server optimizers."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class ServerOptimizer(Protocol):
    """The step of the global model in a round; all state is passed in and given back."""

    def start(self, parameters: Tensor) -> Mapping[str, Tensor]:
        """The memory before the first round, by name, for a global model (d,)."""

    def step(self, update: Tensor, memory: Mapping[str, Tensor]) -> tuple[Tensor, Mapping[str, Tensor]]:
        """(d,) what is to be added to the global model, and the memory after the round.

        Args:
            update: (d,) the aggregated update g; −g is the pseudo-gradient (Reddi et al., "Adaptive federated
                optimization", ICLR 2021).
            memory: Of the round before; left as it is.
        """
