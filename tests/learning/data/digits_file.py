"""The file of the built-in digits, made from scikit-learn: ``python -m tests.learning.data.digits_file``."""

from __future__ import annotations

import numpy as np
from sklearn import datasets

from wirelessfl.learning.data.catalogue import DIGITS


def main() -> None:
    """Writing of the file; pixels and labels are whole numbers from 0 to 16."""
    bunch = datasets.load_digits()
    np.savez_compressed(DIGITS, images=bunch.images.astype(np.uint8), labels=bunch.target.astype(np.uint8))


if __name__ == "__main__":
    main()
