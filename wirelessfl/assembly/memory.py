"""What a scenario takes of the machine's memory at least, held against what there is before any of it is taken."""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import InfeasibleError
from wirelessfl.learning import LocalTraining
from wirelessfl.learning.batches import local_steps
from wirelessfl.trace.reader import available_memory

# What is kept of every registered client: samples, weight, place, processor, last use
_BYTES_A_CLIENT = 64
# What the plan of a client's batches takes for a sample of a batch: its place in the epoch, and its number
_BYTES_A_DRAW = 16


def check_clients(count: int) -> None:
    """Checks that the registered clients fit into the memory.

    Raises:
        InfeasibleError: they do not.
    """
    _check(f"clients.count: found {count:,} clients, who take", count * _BYTES_A_CLIENT)


def check_batches(training: LocalTraining, sizes: NDArray[np.int64]) -> None:
    """Checks that the batches of each single client fit into the memory: they are drawn before its training begins.

    Args:
        training: the clients' local training.
        sizes: (K,) samples of all clients.

    Raises:
        InfeasibleError: they do not.
    """
    steps = local_steps(sizes, training.batch_size, training.epochs, training.steps)
    draws = int((steps * np.minimum(sizes, training.batch_size)).max(initial=0))
    name, number = ("steps", training.steps) if training.epochs is None else ("epochs", training.epochs)
    _check(f"training.{name}: found {number:,}, with which the batches of a client take", draws * _BYTES_A_DRAW)


def _check(found: str, needed: int) -> None:
    there = available_memory()
    if needed > there:
        raise InfeasibleError(
            f"{found} about {needed / 2**30:,.0f} GiB; allowed: what memory can take, {there / 2**30:,.0f} GiB"
        )
