"""A stand-in for UCI Adult where its files are not at hand: rows drawn at random in the form that `load_adult` gives.

As many rows, features and positive labels as the published files have, so that sample numbers, and with them both ε,
are those of the real set; what can be learnt from the rows is of course something else.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.learning.data.adult import CATEGORIES, CLASS_NAMES, NUMERIC
from wirelessfl.learning.data.examples import Dataset, Examples
from wirelessfl.streams import Streams

TRAIN_ROWS, TEST_ROWS = 32_561, 16_281
POSITIVE_SHARE = 7_841 / 32_561
"""Of the training file."""

SIGNAL = 3.0
"""Standard deviation of the linear score over the scale of the logistic noise on it."""


def load_adult_stand_in(split_seed: int = 0) -> Dataset:
    """Inputs (32561, 107) and (16281, 107) in the form of `load_adult`, from a law of our own.

    Numeric features are standard normal; the categories of a column have probabilities in proportion to 1/rank; the
    label is positive where a random linear score plus logistic noise is among the largest 24 %.
    """
    generator = Streams(split_seed).generator("adult/stand-in")
    rows = TRAIN_ROWS + TEST_ROWS
    columns: list[NDArray[np.float64] | NDArray[np.bool_]] = [generator.standard_normal((rows, len(NUMERIC)))]
    for count in map(len, CATEGORIES.values()):
        share = 1.0 / np.arange(1, count + 1)
        drawn = generator.choice(count, rows, p=share / share.sum())
        columns.append(drawn[:, None] == np.arange(count))
    inputs = np.concatenate(columns, axis=1, dtype=np.float32)
    score = inputs @ generator.standard_normal(inputs.shape[1])
    score = SIGNAL * (score - score.mean()) / score.std() + generator.logistic(size=rows)
    targets = (score > np.quantile(score[:TRAIN_ROWS], 1 - POSITIVE_SHARE)).astype(np.int64)
    examples = Examples(torch.from_numpy(inputs), torch.from_numpy(targets))
    train, test = np.split(np.arange(rows), [TRAIN_ROWS])
    return Dataset("adult", examples.take(train), examples.take(test), CLASS_NAMES)
