"""The data: which set, from files or as a stand-in, how much of it, and how it is divided among the clients."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from wirelessfl.inputs import ROOT_VARIABLE, data_folders
from wirelessfl.scenario.base import (
    CoreVariant,
    Count,
    External,
    NonNegative,
    Probability,
    Reference,
    Rule,
    Section,
    key,
)
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.own_data import Arrays, HuggingFace, ImageFolder, Leaf, Table
from wirelessfl.scenario.partition import ClassesPartition, NaturalPartition, Partition
from wirelessfl.scenario.published_data import (
    Adult,
    Cifar10,
    Cifar100,
    EmnistByClass,
    EmnistLetters,
    FashionMnist,
    Kmnist,
    LabelledSet,
    Mnist,
    Svhn,
)


class Digits(LabelledSet, core="wirelessfl.learning.data:load_digits", available=10):
    """scikit-learn's handwritten digits: 1,797 images of 8 by 8, built in."""

    name: Literal["digits"] = key("digits", "Handwritten digits, 8 by 8 pixels, built in.")


class Synthetic(CoreVariant, core="wirelessfl.assembly.data:synthetic"):
    """The synthetic(α, β) classification task of FedProx (Li et al. 2020)."""

    name: Literal["synthetic"] = key("synthetic", "The synthetic(α, β) task of FedProx, logistic labels.")
    alpha: NonNegative = key(1.0, "How much the true models differ between clients: standard deviation of their means.")
    beta: NonNegative = key(1.0, "How much the inputs differ between clients: standard deviation of their means.")
    iid: bool = key(False, "One true model and one input law for all clients; alpha and beta then have no effect.")
    min_samples: Count = key(50, "Minimum samples of a client: n_i = min(min_samples + lognormal(4, 2), max_samples).")
    max_samples: Count = key(500, "Maximum samples of a client, which caps the heavy tail of the published law.")

    @property
    def num_classes(self) -> int:
        """Classes of the task."""
        return 10

    def rules(self) -> list[Rule]:
        """The fewest samples are at most the most."""
        allowed = f"at most max_samples, {self.max_samples}"
        return [(self.min_samples > self.max_samples, "min_samples", str(self.min_samples), allowed)]


class ExternalDataset(
    External,
    family="dataset",
    protocol="wirelessfl.learning:Dataset",
    check="wirelessfl.learning.local_conformance:check_dataset",
    context="wirelessfl.assembly.data:DataContext",
    returned=True,
):
    """A data set of the user's own, made by a function that returns a ``wirelessfl.learning.Dataset``."""

    name: Reference = key(..., "Importable function that makes the data set, as package.module:function.")


Dataset = Annotated[
    Digits
    | Synthetic
    | Mnist
    | FashionMnist
    | Kmnist
    | EmnistLetters
    | EmnistByClass
    | Cifar10
    | Cifar100
    | Svhn
    | Adult
    | Arrays
    | Table
    | ImageFolder
    | Leaf
    | HuggingFace
    | ExternalDataset,
    Family("name", default="digits"),
]


class HeldOut(Section):
    """A part of every client's samples on which nobody trains."""

    fraction: Annotated[float, Field(gt=0, lt=1)] = key(
        0.1, "Part of each client's samples, drawn at random and rounded to whole samples."
    )


class Augment(Section):
    """Random changes of the images of each mini-batch, drawn anew whenever a sample is used."""

    flip: Probability = key(0.5, "Probability that left and right are exchanged.")
    crop: Annotated[int, Field(ge=0, le=4096)] = key(
        0, "Largest shift of rows and of columns, each uniform [pixels]; what is not known is 0."
    )
    rotation: Annotated[float, Field(ge=0, le=180)] = key(
        0.0, "Largest angle of a rotation, uniform [degrees]; bilinear, what is not known is 0."
    )


class Data(Section):
    """The data of the clients and of the test."""

    dataset: Dataset = key(Digits(), "The data set.")
    limit: Count | None = key(None, "Use only this many training samples, from the first on. null: all.")
    split_seed: Annotated[int, Field(ge=0, lt=2**32)] = key(
        0, "Seed of the split into training and test data of sets that have none; independent of the run's seed."
    )
    partition: Partition = key(ClassesPartition(), "How the training samples are divided among the clients.")
    validation: HeldOut | None = key(
        None,
        "Validation samples, taken out of each client's share: validation_accuracy and validation_loss are of them. "
        "null: none.",
    )
    test: HeldOut | None = key(
        None,
        "Test samples out of each client's share; the test half of the set is then divided among the clients as well, "
        "behind the training half. null: the test half of the set.",
    )

    augment: Augment | None = key(None, "Random changes of the images that clients train on. null: none.")

    def rules(self) -> list[Rule]:
        """Something is left to train on, and only samples that were divided are held out."""
        parts = {name: part for name in ("validation", "test") if (part := getattr(self, name)) is not None}
        on_demand = isinstance(self.dataset, Synthetic) and isinstance(self.partition, NaturalPartition)
        where = "with the synthetic set in its natural partition, whose samples are made on demand"
        total = sum(part.fraction for part in parts.values())
        return [
            *((on_demand, name, where, "null, or another partition") for name in parts),
            (
                total >= 1,
                "validation.fraction",
                f"{total:g} together with data.test.fraction",
                "less than 1, so that samples are left to train on",
            ),
        ]


ADULT_FOLDERS = ("adult", "Adult", ".")
ADULT_FILES = ("adult.data", "adult.test")


def settle_source(tree: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A scenario's tree with ``data.dataset.source: auto`` replaced by what it comes to, and a note where that matters.

    A root that the scenario names is a wish for the files: where they are missing there, reading them says so.
    """
    settled, data = dict(tree), tree.get("data")
    if not isinstance(data, dict):
        return settled, []
    dataset = data.get("dataset")
    if not isinstance(dataset, dict) or (dataset.get("name"), dataset.get("source")) != ("adult", "auto"):
        return settled, []
    named = dataset.get("root") is not None
    source = "files" if named or _adult_is_there() else "synthetic"
    settled["data"] = {**data, "dataset": {**dataset, "source": source}}
    if source == "files":
        return settled, []
    return settled, [
        "data.dataset.source: synthetic rows in the form of adult, because its files were not found; "
        f"to read them, set data.dataset.root or {ROOT_VARIABLE} to the folder that holds them"
    ]


def _adult_is_there() -> bool:
    # Whether some folder below one of WIRELESSFL_DATA holds both files, plain or packed.
    folders = [root / name for root in data_folders() for name in ADULT_FOLDERS]
    return any(
        all((folder / name).is_file() or (folder / f"{name}.gz").is_file() for name in ADULT_FILES)
        for folder in folders
    )
