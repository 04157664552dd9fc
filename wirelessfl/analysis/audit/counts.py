"""The game on the counts that adaptive quantile clipping releases: the clipping norm that follows tells each of them.

Every step counts the samples whose gradient is within C, and C moves by that count and its noise. Whoever sees how C
moves reads off the noised count, of which a canary beyond every clip takes half a sample away.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.analysis.audit.canaries import Listener
from wirelessfl.analysis.audit.games import Advance, Game, Observations, Values
from wirelessfl.analysis.audit.noise import NoiseRecord
from wirelessfl.analysis.audit.steps import SMALLEST_SINGLE, CanaryClient, chunks
from wirelessfl.errors import InfeasibleError
from wirelessfl.learning import TransformState
from wirelessfl.privacy.clipping import QuantileClipping

# In so many steps the clipping norm cannot grow beyond the canary.
_STEPS = 64
# Of the noise on a count, beside the rounding of the norm that it is read off.
_MOST_ROUNDING = 0.05
# Clients whose counts are recorded for the tests of the noise.
_ROWS = 64


def releases_counts(client: CanaryClient) -> bool:
    """Whether the clipping norm of a client follows a noised count."""
    return isinstance(_rule(client), QuantileClipping)


def _rule(client: CanaryClient) -> object:
    return next(iter(client.transforms.values())).clipping


@dataclass(frozen=True)
class CountGame(Game):
    """The adversary sees how the clipping norm moves from step to step.

    Attributes:
        client: whose counts.
        exchange: whether the other world holds a sample within the clip, rather than none.
    """

    client: CanaryClient
    exchange: bool

    @override
    def play(self, trials: int, advance: Advance) -> Observations:
        worlds, included = [], np.zeros((0, 0), dtype=np.bool_)
        for there in (True, False):
            parts = []
            for rows in chunks(trials, self.client.dimension):
                parts.append(self._counts(rows, there))
                advance(len(rows) / (2 * trials))
            worlds.append(np.concatenate([counts for counts, _ in parts]))
            included = np.concatenate([taken for _, taken in parts])
        known = included[0] if not self.client.secret_batches else np.ones(included.shape[1], dtype=np.bool_)
        return Observations(
            plus=worlds[0][:, known],
            minus=worlds[1][:, known],
            shift=np.full(int(known.sum()), (1.0 if self.exchange else 0.5) / self._quantile_rule.count_noise_std),
            exchange=self.exchange,
            sample_rate=self.client.sample_rate,
            included=included[:, known],
            gaussian=True,
        )

    def noise(self) -> NoiseRecord:
        """The noise of the counts of many clients, whose place is that of the coordinates of other noise."""
        counts = replace(self, exchange=False)._counts(np.arange(_ROWS, dtype=np.int64), there=False)[0]
        labels = {"step": np.arange(counts.shape[1], dtype=np.int64)}
        return NoiseRecord("of the released counts (of clients as coordinates)", counts.T, labels, True)

    @property
    def _quantile_rule(self) -> QuantileClipping:
        rule = _rule(self.client)
        assert isinstance(rule, QuantileClipping), "the game is played on no other rule"
        return rule

    def _counts(self, rows: NDArray[np.int64], there: bool) -> tuple[Values, NDArray[np.bool_]]:
        # (k, E) noised counts over their noise, those beyond C counted up, and (k, E) in which the canary is.
        memory: TransformState = {}
        norms: list[Values] = []
        divisors, included = [], []
        for round_index in self.client.rounds:
            batches = self.client.batches(round_index, rows).beginning(_STEPS - len(norms))
            sign, size = (1, 1.0) if there else (1, 0.0) if self.exchange else (0, 1.0)
            listener = Listener(self.client.transforms[round_index], lambda total: total[:, :0])
            block = self.client.train(round_index, rows, batches, sign, memory, listener, size)
            norms += [step.clip_norm for step in listener.steps]
            divisors.append(batches.divisor)
            included.append(batches.included)
            last = block.transform_state["clip_norm"].double().numpy()
            if len(norms) >= _STEPS:
                break
        rule = self._quantile_rule
        norm, divisor = np.stack([*norms, last], axis=1), np.concatenate(divisors).T
        rounding = np.finfo(np.float32).eps / rule.lr * float(divisor.max()) / rule.count_noise_std
        if rounding > _MOST_ROUNDING or not np.all((norm > SMALLEST_SINGLE) & (norm < self.client.reach)):
            raise InfeasibleError(
                "this scenario cannot be audited: its clipping norm does not tell the released counts, as they are "
                "lost in the rounding of numbers of 32 bits, or it leaves their range or grows beyond every canary; "
                "other values of training.privacy.clip and of lr and count_noise_std in its clipping can be played"
            )
        share = rule.quantile - np.diff(np.log(norm), axis=1) / rule.lr
        return np.asarray((0.5 - share) * divisor / rule.count_noise_std), np.concatenate(included).T
