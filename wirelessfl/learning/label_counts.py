"""Numbers of samples of each class at each client: how unlike the clients' data are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wirelessfl.learning.population import Population


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Samples of each of C classes that k clients hold.

    Attributes:
        registered: K, of all clients.
        clients: (k,) ascending numbers of those counted.
        samples: (k, C); a row sums up to n_i.
    """

    registered: int
    clients: NDArray[np.int64]
    samples: NDArray[np.int64]


def label_counts(population: Population, most: int) -> LabelCounts:
    """The counts of all clients, or of ``most`` evenly spaced ones where there are more."""
    registered, classes = len(population.sizes), population.num_classes
    clients = np.linspace(0, registered - 1, min(registered, most)).round().astype(np.int64)
    shards = population.shards(clients)
    targets, sizes = shards.targets.cpu().numpy(), shards.sizes.tolist()
    held = [targets[rows[:size]] for rows, size in zip(shards.index.numpy(), sizes, strict=True)]
    return LabelCounts(registered, clients, np.array([np.bincount(own, minlength=classes) for own in held]))
