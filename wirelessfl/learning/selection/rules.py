"""Rules that read nothing: all clients, some at random or in turn, or each with one probability."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning.selection.protocol import Selection, SelectionContext


@dataclass(frozen=True)
class SelectAll(Selection):
    """Every registered client, every round."""

    @override
    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        return np.arange(context.registered, dtype=np.int64)


@dataclass(frozen=True)
class SelectUniform(Selection):
    """``count`` clients, uniformly without replacement; the cost follows ``count``, not the registered."""

    @override
    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        generator = context.streams.generator("selection", context.round_index)
        chosen = generator.choice(context.registered, size=count, replace=False, shuffle=False)
        return np.sort(chosen).astype(np.int64)


@dataclass(frozen=True)
class SelectRoundRobin(Selection):
    """``count`` clients in turn, in cyclic order of their numbers.

    In T rounds each of K clients takes part ⌊T·count/K⌋ or ⌈T·count/K⌉ times. Who does so when is known to everybody,
    so that no privacy is gained by it.
    """

    @override
    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        first = (context.round_index - 1) * count % context.registered
        return np.sort((first + np.arange(count, dtype=np.int64)) % context.registered)


@dataclass(frozen=True)
class SelectPoisson(Selection):
    """Each registered client with probability ``rate``, independently."""

    rate: float

    @override
    def select(self, context: SelectionContext, count: int) -> NDArray[np.int64]:
        # A binomial number of clients, then that many without replacement: the same law, at the cost of the few.
        generator = context.streams.generator("selection", context.round_index)
        drawn = int(generator.binomial(context.registered, self.rate))
        chosen = generator.choice(context.registered, size=drawn, replace=False, shuffle=False)
        return np.sort(chosen).astype(np.int64)
