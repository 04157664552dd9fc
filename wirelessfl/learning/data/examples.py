"""Datasets: inputs and class labels, divided into train and test."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from wirelessfl.errors import DataError, precondition
from wirelessfl.streams import Streams


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled examples.

    Attributes:
        inputs: (N, *feature) float32; images are channels first.
        targets: (N,) int64, class labels from 0.
    """

    inputs: torch.Tensor
    targets: torch.Tensor

    def __post_init__(self) -> None:
        precondition(
            self.targets.ndim == 1 and len(self.inputs) == len(self.targets),
            f"inputs of shape {tuple(self.inputs.shape)} need as many targets, "
            f"found targets of shape {tuple(self.targets.shape)}",
        )
        precondition(
            self.inputs.dtype == torch.float32 and self.targets.dtype == torch.int64,
            f"inputs are float32 and targets int64, found {self.inputs.dtype} and {self.targets.dtype}",
        )

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: NDArray[np.int64]) -> Examples:
        """The examples in ``rows`` (n,), in that order."""
        index = torch.from_numpy(rows).to(self.targets.device)
        return Examples(self.inputs[index], self.targets[index])

    def to(self, device: torch.device | str) -> Examples:
        """The same examples on ``device``; itself where they already lie there."""
        return Examples(self.inputs.to(device), self.targets.to(device))


@dataclass(frozen=True)
class DatasetFacts:
    """Public facts of a dataset.

    Attributes:
        num_classes: C; labels are 0 … C−1.
        feature_shape: Shape of one input.
        samples: Training samples.
        owners: Natural owners of them; None where none is known.
    """

    num_classes: int
    feature_shape: tuple[int, ...]
    samples: int
    owners: int | None


@dataclass(frozen=True, eq=False)
class Dataset:
    """A classification task, divided into train and test once and for all scenarios.

    Attributes:
        name: The name in a scenario, e.g. ``"digits"``.
        train: What the clients share among them.
        test: What the server evaluates on.
        class_names: One name a class; label c means ``class_names[c]``.
        owners: (N_train,) the natural owner of each training example, such as its writer; None where none is known.
        test_owners: (N_test,) that of each test example.
        vocabulary: words or letters; the inputs are then their numbers, as floats. None where inputs are quantities.
    """

    name: str
    train: Examples
    test: Examples
    class_names: tuple[str, ...]
    owners: NDArray[np.int64] | None = None
    test_owners: NDArray[np.int64] | None = None
    vocabulary: tuple[str, ...] | None = None

    @property
    def num_classes(self) -> int:
        """The number of classes C; labels are 0 … C−1."""
        return len(self.class_names)

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.train.inputs.shape[1:])

    def fingerprint(self) -> str:
        """SHA-256 of all that a run sees of it: samples and labels in their order, names of classes, owners, words.

        Two gigabytes a second where the processor has instructions for it.
        """
        digest = hashlib.sha256(json.dumps(self.class_names).encode())
        if self.vocabulary is not None:
            digest.update(json.dumps(self.vocabulary).encode())
        halves = (half for examples in (self.train, self.test) for half in (examples.inputs, examples.targets))
        for array in (
            *(half.cpu().numpy() for half in halves),
            *(one for one in (self.owners, self.test_owners) if one is not None),
        ):
            plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            digest.update(f"{plain.dtype.str}{plain.shape}".encode())
            digest.update(plain.data)
        return digest.hexdigest()

    def facts(self) -> DatasetFacts:
        """Public facts: classes, shape of an input, samples and owners."""
        owners = None if self.owners is None else len(np.unique(self.owners))
        return DatasetFacts(self.num_classes, self.feature_shape, len(self.train), owners)

    def to(self, device: torch.device | str) -> Dataset:
        """The same dataset on ``device``."""
        return replace(self, train=self.train.to(device), test=self.test.to(device))

    def head(self, limit: int) -> Dataset:
        """The same task with the first ``limit`` training examples only, or with all where there are no more."""
        precondition(limit >= 1, f"limit must be ≥ 1, found {limit}")
        owners = None if self.owners is None else self.owners[:limit]
        train = self.train.take(np.arange(min(limit, len(self.train))))  # copied, so that the rest can be freed
        return replace(self, train=train, owners=owners)

    def pooled(self) -> Dataset:
        """The same task with all of its samples in the training half, those of the test half behind.

        Raises:
            DataError: training samples have owners, and those of the test half would have none.
        """
        precondition(
            self.owners is None or self.test_owners is not None,
            f"data.test: found a value with {self.name}, whose training samples have owners and test samples none; "
            "allowed: null",
            DataError,
        )
        halves = self.train, self.test
        inputs = torch.cat([half.inputs for half in halves])
        owned = self.owners is not None and self.test_owners is not None
        return replace(
            self,
            train=Examples(inputs, torch.cat([half.targets for half in halves])),
            test=self.test.take(np.arange(0)),
            owners=np.concatenate([self.owners, self.test_owners]) if owned else None,
            test_owners=None,
        )

    def only(self, classes: Sequence[int | str]) -> Dataset:
        """The examples of some classes, labelled anew 0 … len(classes)−1 in the order given.

        Args:
            classes: Labels (numbers) or class names (text), each once.

        Raises:
            DataError: a class is unknown, named twice or without training examples, or none is left to test on.
        """
        labels = [self._label(wanted) for wanted in classes]
        precondition(
            labels and len(set(labels)) == len(labels),
            f"data.dataset.classes: found {list(classes)}; allowed: one or more different classes",
            DataError,
        )
        names = tuple(self.class_names[label] for label in labels)
        new_label = np.full(self.num_classes, -1)
        new_label[labels] = np.arange(len(labels))
        train, train_rows = _relabelled(self.train, new_label)
        test, test_rows = _relabelled(self.test, new_label)
        if missing := [names[label] for label in range(len(names)) if not (train.targets == label).any()]:
            raise DataError(
                f"data.dataset.classes: found no training sample of {', '.join(missing)} in {self.name}; allowed: "
                "classes that have one"
            )
        precondition(
            len(test_rows) != 0,
            f"data.dataset.classes: found no test sample of {', '.join(names)} in {self.name}; allowed: classes that "
            "have one",
            DataError,
        )
        owners, test_owners = (
            None if known is None else known[rows]
            for known, rows in ((self.owners, train_rows), (self.test_owners, test_rows))
        )
        return replace(self, train=train, test=test, class_names=names, owners=owners, test_owners=test_owners)

    def _label(self, wanted: int | str) -> int:
        if isinstance(wanted, str) and wanted in self.class_names:
            return self.class_names.index(wanted)
        if isinstance(wanted, int) and not isinstance(wanted, bool) and 0 <= wanted < self.num_classes:
            return wanted
        raise DataError(
            f"data.dataset.classes: found {wanted!r}, no class of {self.name}; allowed: the labels "
            f"0 to {self.num_classes - 1} and the names {', '.join(self.class_names)}"
        )


def _relabelled(examples: Examples, new_label: NDArray[np.int64]) -> tuple[Examples, NDArray[np.int64]]:
    # The examples whose label has a new one (not −1), with it, and their rows.
    targets = new_label[examples.targets.numpy()]
    rows = np.flatnonzero(targets >= 0)
    return Examples(examples.take(rows).inputs, torch.from_numpy(targets[rows])), rows


TEST_SHARE = 0.2
"""Share of the test half where the source is not divided."""


def from_halves(
    name: str, train: Examples | None, test: Examples | None, class_names: tuple[str, ...], split_seed: int
) -> Dataset:
    """The dataset of the two published halves, or of the one that is there, divided by `stratified_split`.

    Raises:
        DataError: the one has too few samples of each class for a test half.
    """
    if train is not None and test is not None:
        return Dataset(name, train, test, class_names)
    whole = train or test
    if whole is None:
        raise ValueError("one half at least is needed")
    train_rows, test_rows = stratified_split(whole.targets.numpy(), TEST_SHARE, split_seed)
    precondition(
        len(test_rows),
        f"{name}: found files of one half with {len(whole)} samples, too few of each class for a test half; allowed: "
        "more, or both halves",
        DataError,
    )
    return Dataset(name, whole.take(train_rows), whole.take(test_rows), class_names)


def stratified_split(
    targets: NDArray[np.int64], test_share: float, split_seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Stratified split of rows into train and test: every class is divided in the same ratio.

    Of a class with n rows, round(n·test_share) go to the test half; which ones depends on ``split_seed`` alone.

    Args:
        targets: (N,) class labels.
        test_share: Between 0 and 1.
        split_seed: The scenario's ``data.split_seed``, which is independent of its ``seed``.

    Returns:
        Train rows and test rows, each ascending: the order of the source is kept.
    """
    by_class = np.lexsort((Streams(split_seed).generator("split").random(len(targets)), targets))
    counts = np.bincount(targets)
    starts = np.cumsum(counts) - counts
    labels = targets[by_class]
    rank = np.arange(len(targets)) - starts[labels]
    is_test = rank < np.rint(test_share * counts)[labels]
    return np.sort(by_class[~is_test]), np.sort(by_class[is_test])
