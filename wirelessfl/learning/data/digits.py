"""The handwritten digits that come with scikit-learn: 1,797 images, no download."""

import torch

from wirelessfl.learning.data.examples import Dataset, Examples, from_halves


def load_digits(split_seed: int = 0) -> Dataset:
    """The 8 × 8 digits of scikit-learn, inputs (N, 1, 8, 8), pixels 0 … 16 divided by 16.

    A fifth of every class is the test set (Optical Recognition of Handwritten Digits, Alpaydin and Kaynak 1998;
    scikit-learn ships its test half, of which this is a split of our own).
    """
    from sklearn import datasets  # here, because it takes a second and only this dataset needs it

    bunch = datasets.load_digits()
    targets = bunch.target.astype("int64")
    images = Examples(torch.from_numpy(bunch.images).float()[:, None] / 16.0, torch.from_numpy(targets))
    names = tuple(str(digit) for digit in range(10))
    return from_halves("digits", images, None, names, split_seed)
