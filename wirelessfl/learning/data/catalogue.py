"""All datasets by the name they have in a scenario."""

from collections.abc import Callable, Sequence
from pathlib import Path

from wirelessfl.errors import DataError, precondition
from wirelessfl.learning.data.adult import load_adult
from wirelessfl.learning.data.cifar import load_cifar10
from wirelessfl.learning.data.digits import load_digits
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.mnist import load_emnist_byclass, load_emnist_letters, load_fashion_mnist, load_mnist
from wirelessfl.learning.data.synthetic import load_synthetic

Loader = Callable[[str | Path | None, int], Dataset]
"""(root, split_seed) → dataset."""

LOADERS: dict[str, Loader] = {
    "digits": lambda root, split_seed: load_digits(split_seed),
    "synthetic": lambda root, split_seed: load_synthetic(split_seed=split_seed),
    "mnist": load_mnist,
    "fashion_mnist": load_fashion_mnist,
    "emnist_letters": load_emnist_letters,
    "emnist_byclass": load_emnist_byclass,
    "cifar10": load_cifar10,
    "adult": load_adult,
}


def load_dataset(
    name: str,
    *,
    root: str | Path | None = None,
    classes: Sequence[int | str] | None = None,
    limit: int | None = None,
    split_seed: int = 0,
) -> Dataset:
    """The dataset of a scenario, filtered and cut.

    Args:
        name: One of `LOADERS`.
        root: Folder of the dataset's files, else that of the environment variable WIRELESSFL_DATA; `digits` and
            `synthetic` need none.
        classes: Keep these only, labelled 0, 1, … in this order.
        limit: Keep only the first ``limit`` training samples (of those classes).
        split_seed: Fixes the division into train and test where the source has none, and all of ``synthetic``.

    Raises:
        DataError: unknown name, missing or damaged files, or a filter that leaves nothing.
    """
    precondition(name in LOADERS, f"data.dataset.name: allowed are {', '.join(LOADERS)}, found {name!r}", DataError)
    dataset = LOADERS[name](root, split_seed)
    if classes is not None:
        dataset = dataset.only(classes)
    return dataset if limit is None else dataset.head(limit)
