"""Games on local steps: the noised sums of clipped gradients, and the counts that adaptive quantile clipping releases.

Every step of quantile clipping counts the samples whose gradient is within C, and C moves by that count and its noise.
Whoever sees how C moves reads off the noised count, of which a canary beyond every clip takes half a sample away.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import override

from wirelessfl.analysis.audit.canaries import Listener
from wirelessfl.analysis.audit.clients import SMALLEST_SINGLE, CanaryClient, chunks
from wirelessfl.analysis.audit.games import Advance, Game, Observations, Values
from wirelessfl.analysis.audit.noise import NoiseRecord
from wirelessfl.errors import InfeasibleError, precondition
from wirelessfl.learning import TransformState
from wirelessfl.privacy.clipping import QuantileClipping

# In so many steps the clipping norm cannot grow beyond the canary.
_STEPS = 64
# Of the noise on a count, beside the rounding of the norm that it is read off.
_MOST_ROUNDING = 0.05
# Clients whose counts are recorded for the tests of the noise.
_ROWS = 64
# Sizes of noise between which logarithms are taken.
_SIZES = (1e-30, 1e30)


class Seen(NamedTuple):
    """Trials of one world, or of both.

    Attributes:
        seen: (..., k, E) what is seen of each event.
        included: (k, E) in which events the canary is.
        clearness: (E,) one over the noise; of no length where a game has another measure.
    """

    seen: Values
    included: NDArray[np.bool_]
    clearness: Values


def both_worlds(
    trials: int, dimension: int, signs: Iterable[int], see: Callable[[NDArray[np.int64], int], Seen], advance: Advance
) -> Seen:
    """(2, n, E) both worlds of a game on local steps, in pieces of trials that train side by side.

    Args:
        trials: n.
        dimension: numbers of a trial that are in memory at a time.
        signs: of the canary, in each world.
        see: a world of that sign for some trials.
        advance: hears how much of it is done.
    """
    worlds: list[list[Seen]] = []
    for sign in signs:
        worlds.append([])
        for rows in chunks(trials, dimension):
            worlds[-1].append(see(rows, sign))
            advance(len(rows) / (2 * trials))
    seen = np.stack([np.concatenate([part.seen for part in parts]) for parts in worlds])
    return Seen(seen, np.concatenate([part.included for part in worlds[0]]), worlds[0][0].clearness)


@dataclass(frozen=True)
class StepGame(Game):
    """The adversary sees every noised sum of clipped gradients, before the optimizer does.

    Attributes:
        client: whose sums.
        exchange: whether the other world holds the opposite canary.
        crowd: clients whose noise is in a sum together, where a secure sum hides them from each other.
        unproven: the clipping norm is private data: the adversary looks at the size of the noise instead.
    """

    client: CanaryClient
    exchange: bool
    crowd: int
    unproven: bool

    @override
    def play(self, trials: int, advance: Advance) -> Observations:
        direction, size = self.client.signal()
        signs, see = (1, -1 if self.exchange else 0), partial(self._see, direction)
        seen, included, clearness = both_worlds(trials, self.client.dimension * self.crowd, signs, see, advance)
        shift, silent = size * clearness, np.logical_not(np.isfinite(seen))
        seen[silent] = 0.0  # noise beyond the range of numbers hides all
        if self.unproven:
            plus, minus = np.abs(seen - seen[:, :, :1]).max(axis=2, keepdims=True)
            words = "largest change in the size of the noise, as a logarithm"
            return Observations(plus, minus, np.ones(1), self.exchange, 1.0, included[:, :1], False, words)
        if not self.client.secret_batches:
            taken = included[0]
            seen, silent, shift, included = seen[:, :, taken], silent[:, :, taken], shift[taken], included[:, taken]
        return Observations(
            *(seen[0], seen[1], shift, self.exchange, self.client.sample_rate, included),
            gaussian=True,
            separable=not self.client.remembers,
            silent=silent if silent.any() else None,
            recorded_std=None if self.client.haar_noise or size == 0 else np.ones_like(shift),
            independent=self.client.secret_batches,
        )

    def _see(self, direction: Tensor, trials: NDArray[np.int64], sign: int) -> Seen:
        # All steps of all rounds; the first row of each crowd holds the canary.
        rows = (trials[:, None] * self.crowd + np.arange(self.crowd)).ravel()
        holds = np.arange(len(rows)) % self.crowd == 0
        memory: TransformState = {}
        seen, included, clearness = [], [], []
        for round_index in self.client.rounds:
            drawn = self.client.batches(round_index, rows)
            batches = replace(drawn, included=drawn.included & holds)
            listener = Listener(self.client.transforms[round_index], partial(_read, direction))
            self.client.train(round_index, rows, batches, sign, memory, listener)
            included.append(batches.included[:, holds])
            for step in listener.steps:
                # Sensitivity and multiplier are public (or released with the sums), unless nothing is proven.
                noise = np.maximum(step.noise_multiplier, SMALLEST_SINGLE)[holds] * np.sqrt(self.crowd)
                scale = step.clip_norm[holds] * noise  # 0 for a norm below the range of numbers: all sums are 0
                projection = step.reading[:, 0].reshape(-1, self.crowd).sum(axis=1) / np.where(scale > 0, scale, 1.0)
                sizes = np.nan_to_num(step.reading[holds, 1], nan=_SIZES[1]).clip(*_SIZES)
                seen.append(np.log(sizes) if self.unproven else projection)
                clearness.append(1 / noise[0])
        return Seen(np.stack(seen, axis=1), np.concatenate(included).T, np.array(clearness))


def _read(direction: Tensor, total: Tensor) -> Tensor:
    # (k, 2) projections of sums on the direction of the clipped canary, and the root mean square of their elements.
    return torch.stack([total @ direction, total.square().mean(1).sqrt()], dim=1)


@dataclass(frozen=True)
class CountGame(Game):
    """The adversary sees how the clipping norm moves from step to step.

    Attributes:
        client: whose counts.
        rule: the clipping rule that releases them.
        exchange: whether the other world holds a sample within the clip, rather than none.
    """

    client: CanaryClient
    rule: QuantileClipping
    exchange: bool

    @override
    def play(self, trials: int, advance: Advance) -> Observations:
        worlds = both_worlds(trials, self.client.dimension, (1, 0), self._counts, advance)
        known = np.ones(worlds.seen.shape[2], dtype=np.bool_) if self.client.secret_batches else worlds.included[0]
        return Observations(
            plus=worlds.seen[0][:, known],
            minus=worlds.seen[1][:, known],
            shift=np.full(int(known.sum()), (1.0 if self.exchange else 0.5) / self.rule.count_noise_std),
            exchange=self.exchange,
            sample_rate=self.client.sample_rate,
            included=worlds.included[:, known],
            gaussian=True,
        )

    def noise(self) -> NoiseRecord:
        """The noise of the counts of many clients, whose place is that of the coordinates of other noise."""
        counts = replace(self, exchange=False)._counts(np.arange(_ROWS, dtype=np.int64), 0).seen
        labels = {"step": np.arange(counts.shape[1], dtype=np.int64)}
        return NoiseRecord("of the released counts (of clients as coordinates)", counts.T, labels, True)

    def _counts(self, rows: NDArray[np.int64], there: int) -> Seen:
        # Noised counts over their noise, those beyond C counted up.
        memory: TransformState = {}
        norms, divisors, included = list[Values](), list[Values](), []
        # The other world holds a sample without gradient, or none.
        sign, size = (1, float(there)) if there or self.exchange else (0, 1.0)
        for round_index in self.client.rounds:
            batches = self.client.batches(round_index, rows).beginning(_STEPS - len(norms))
            listener = Listener(self.client.transforms[round_index], lambda total: total[:, :0])
            block = self.client.train(round_index, rows, batches, sign, memory, listener, size)
            norms += [step.clip_norm for step in listener.steps]
            divisors.append(batches.divisor)
            included.append(batches.included)
            last = block.transform_state["clip_norm"].double().numpy()
            if len(norms) >= _STEPS:
                break
        rule = self.rule
        norm, divisor = np.stack([*norms, last], axis=1), np.concatenate(divisors).T
        rounding = np.finfo(np.float32).eps / rule.lr * float(divisor.max()) / rule.count_noise_std
        precondition(
            rounding <= _MOST_ROUNDING and np.all((norm > SMALLEST_SINGLE) & (norm < self.client.reach)),
            "this scenario cannot be audited: the released counts cannot be computed from its clipping norm, which is "
            "too coarse or out of range in 32-bit numbers, or exceeds the norm of the canary; change "
            "training.privacy.clip, or lr or count_noise_std of its clipping",
            InfeasibleError,
        )
        counts = (0.5 - (rule.quantile - np.diff(np.log(norm), axis=1) / rule.lr)) * divisor / rule.count_noise_std
        return Seen(counts, np.concatenate(included).T, np.zeros(0))


def count_game(client: CanaryClient, exchange: bool) -> CountGame | None:
    """Game on the counts that the clipping norm of a client follows; None where it follows none."""
    rule = next(iter(client.transforms.values())).clipping
    return CountGame(client, rule, exchange) if isinstance(rule, QuantileClipping) else None
