"""Random groups of clients that send over the air in slots of their own, so that a server reads the sum of each."""

import numpy as np
from numpy.typing import NDArray

from wirelessfl.streams import NodeStream


def slot_groups(stream: NodeStream, groups: int) -> NDArray[np.int64]:
    """(n,) group of each of n clients, from 0: a uniformly random division into groups whose sizes differ by one.

    A client that sends wrong updates spoils the sum of its own group alone, so that f of them spoil at most f groups.
    A client's draw does not follow its data, and of one client it says nothing.

    Args:
        stream: of the n clients in this round.
        groups: G.
    """
    rank = np.argsort(np.argsort(stream.uniform()[:, 0], kind="stable"), kind="stable")
    return np.asarray(rank % groups, dtype=np.int64)
