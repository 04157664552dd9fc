"""Selection by power of choice: of some candidates those with the largest losses."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from wirelessfl.learning.selection.draws import largest, weighted
from wirelessfl.learning.selection.protocol import (
    AskingSelection,
    Chosen,
    LossReports,
    SelectionContext,
    SelectionFacts,
)

_WHEN: dict[str, Literal["asked", "after"]] = {"fresh": "asked", "minibatch": "asked", "last": "after"}


@dataclass(frozen=True)
class SelectPowerOfChoice(AskingSelection):
    """``count`` clients with the largest local losses among ``candidates``, drawn in proportion to their samples.

    Candidates are drawn without replacement with probabilities p_k (Cho, Wang and Joshi, AISTATS 2022, section 3):
    "fresh" is their pow-d, "minibatch" cpow-d, and "last" rpow-d, in which clients without a loss come first.

    Attributes:
        candidates: d, at least ``count``.
        loss: what candidates are asked for, the mean loss of the current global model over their samples or over a
            mini-batch; or the last local training loss, for which nobody is asked.
        loss_noise_std: standard deviation of the noise of each reported loss; None for none.
        loss_clip: bound on a loss, with noise.
    """

    candidates: int
    loss: Literal["fresh", "minibatch", "last"] = "fresh"
    loss_noise_std: float | None = None
    loss_clip: float = 5.0

    @override
    def facts(self) -> SelectionFacts:
        mean: Literal["mean", "batch_mean", "training_mean"] = {
            "fresh": "mean",
            "minibatch": "batch_mean",
            "last": "training_mean",
        }[self.loss]  # type: ignore[assignment]
        reports = LossReports(_WHEN[self.loss], mean, self.loss_noise_std, self.loss_clip)
        return SelectionFacts(frozenset({"samples", "losses"}), reports)

    @override
    def candidates_of(self, context: SelectionContext) -> NDArray[np.int64]:
        generator = context.streams.generator("selection", context.round_index)
        return weighted(context.samples, self.candidates, generator)

    @override
    def choose(self, context: SelectionContext, count: int) -> Chosen:
        asked = self.candidates_of(context) if context.asked is None else context.asked
        # An unknown loss may be any; one that is not a number is that of a model that has diverged
        losses = np.nan_to_num(context.sparse("losses").at(asked), nan=np.inf)
        picked = largest(losses, count, context.streams.generator("selection_ties", context.round_index))
        return Chosen(asked[picked.clients], picked.score)
