"""Accuracy and loss of the models of a round."""

import math
from dataclasses import dataclass

from wirelessfl.learning import Evaluation
from wirelessfl.learning.fairness import ClientAccuracies

UNKNOWN = Evaluation(math.nan, math.nan)
"""Where nothing was evaluated."""


@dataclass(frozen=True)
class Assessment:
    """The global model on samples that nobody trains on, NaN where it was not evaluated.

    Attributes:
        test: on the test samples.
        validation: on the validation samples; NaN without any.
        of_clients: on the test samples of single clients; None where they belong to nobody.
    """

    test: Evaluation = UNKNOWN
    validation: Evaluation = UNKNOWN
    of_clients: ClientAccuracies | None = None
