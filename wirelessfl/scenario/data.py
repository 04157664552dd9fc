"""The data: which set, from files or as a stand-in, how much of it, and how it is divided among the clients."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from wirelessfl.inputs import ROOT_VARIABLE, data_folders
from wirelessfl.scenario.base import (
    CoreVariant,
    Count,
    External,
    Family,
    NonNegative,
    Positive,
    Reference,
    Rule,
    Section,
    key,
)
from wirelessfl.scenario.shape import ByShape

Label = Annotated[int, Field(ge=0)] | Annotated[str, Field(min_length=1)]
"""A class, by its number or its name."""


class LabelledSet(CoreVariant, core_names={"classes": None}):
    """A set with a fixed number of classes, of which some may be selected."""

    available: ClassVar[int]
    """Classes of the whole set."""

    name: str = key("", "The data set.")
    classes: Annotated[tuple[Annotated[Label, ByShape()], ...], Field(strict=False)] | None = key(
        None, "Use only these classes [list of numbers from 0 or names]; they are renumbered in this order. null: all."
    )

    def rules(self) -> list[Rule]:
        """Classes are different ones of the set."""
        if self.classes is None:
            return []
        largest = max((label for label in self.classes if isinstance(label, int)), default=0)
        wrong = len(set(self.classes)) < max(2, len(self.classes)) or largest >= self.available
        allowed = f"at least two different classes, numbered from 0 to {self.available - 1}"
        return [(wrong, "classes", str(list(self.classes)), allowed)]

    @property
    def num_classes(self) -> int:
        """Classes in use."""
        return self.available if self.classes is None else len(self.classes)


class Digits(LabelledSet, core="wirelessfl.learning.data:load_digits", available=10):
    """scikit-learn's handwritten digits: 1,797 images of 8 by 8, built in."""

    name: Literal["digits"] = key("digits", "Handwritten digits, 8 by 8 pixels, built in.")


class Synthetic(CoreVariant, core="wirelessfl.assembly.learning:synthetic"):
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


class FileSet(LabelledSet, files=("root",)):
    """A set that is read from files."""

    root: Annotated[str, Field(min_length=1)] | None = key(
        None,
        "Folder that holds the files as published; it may be read-only. Relative to the scenario file, the current "
        "folder, or one of WIRELESSFL_DATA. null: the folders of WIRELESSFL_DATA.",
    )


class Mnist(FileSet, core="wirelessfl.learning.data.mnist:load_mnist", available=10):
    """MNIST: 60,000 + 10,000 images of 28 by 28."""

    name: Literal["mnist"] = key("mnist", "Handwritten digits, 28 by 28 pixels.")


class FashionMnist(FileSet, core="wirelessfl.learning.data.mnist:load_fashion_mnist", available=10):
    """Fashion-MNIST: 60,000 + 10,000 images of 28 by 28."""

    name: Literal["fashion_mnist"] = key("fashion_mnist", "Articles of clothing, 28 by 28 pixels.")


class EmnistLetters(FileSet, core="wirelessfl.learning.data.mnist:load_emnist_letters", available=26):
    """EMNIST letters: 26 classes, upper and lower case together."""

    name: Literal["emnist_letters"] = key("emnist_letters", "Letters, both cases in one class; a is class 0.")


class EmnistByClass(FileSet, core="wirelessfl.learning.data.mnist:load_emnist_byclass", available=62):
    """EMNIST by class: digits 0-9, upper case 10-35, lower case 36-61."""

    name: Literal["emnist_byclass"] = key(
        "emnist_byclass", "Digits (classes 0-9), upper case (10-35) and lower case (36-61) letters."
    )


class Cifar10(FileSet, core="wirelessfl.learning.data.cifar:load_cifar10", available=10):
    """CIFAR-10: 50,000 + 10,000 colour images of 32 by 32."""

    name: Literal["cifar10"] = key("cifar10", "Colour photographs, 32 by 32 pixels.")


class Adult(FileSet, core="wirelessfl.assembly.learning:adult", available=2):
    """UCI Adult: 32,561 + 16,281 rows of census data, income above 50,000 or not."""

    name: Literal["adult"] = key("adult", "Census records with the income class.")
    source: Literal["files", "synthetic", "auto"] = key(
        "files",
        "files: as published; synthetic: as many random rows of the same form, for trials; auto: the files "
        "where root is given or WIRELESSFL_DATA holds them, else synthetic, and the run says so.",
    )

    fnlwgt: bool = key(False, "Keep the column fnlwgt, how many people a row stands for, as a sixth numeric feature.")
    scaling: Literal["public", "none"] = key(
        "public", "Numeric features: public: scaled by public constants to about −1 … 1; none: as in the files."
    )

    @override
    def named_files(self) -> dict[str, str]:
        return super().named_files() if self.source == "files" else {}


class ExternalDataset(
    External,
    family="dataset",
    protocol="wirelessfl.learning:Dataset",
    check="wirelessfl.learning.local_conformance:check_dataset",
    context="wirelessfl.assembly.learning:DataContext",
    returned=True,
):
    """A data set of the user's own, made by a function that returns a ``wirelessfl.learning.Dataset``."""

    name: Reference = key(..., "Importable function that makes the data set, as package.module:function.")


Dataset = Annotated[
    Digits | Synthetic | Mnist | FashionMnist | EmnistLetters | EmnistByClass | Cifar10 | Adult | ExternalDataset,
    Family("name", default="digits"),
]


class IidPartition(CoreVariant, core="wirelessfl.learning.partition:iid_partition"):
    """Random partition into equal shares."""

    scheme: Literal["iid"] = key("iid", "Random partition into equal shares.")


class ClassesPartition(CoreVariant, core="wirelessfl.learning.partition:classes_partition"):
    """Every client holds a few classes only."""

    scheme: Literal["classes"] = key("classes", "Every client holds samples of a few classes only.")
    classes_per_client: Count = key(5, "Number of classes that a client holds.")


class DirichletPartition(CoreVariant, core="wirelessfl.learning.partition:dirichlet_partition"):
    """Label shares drawn from a Dirichlet law (Hsu et al. 2019)."""

    scheme: Literal["dirichlet"] = key("dirichlet", "Label shares of the clients drawn from a Dirichlet law.")
    alpha: Positive = key(
        0.5, "Concentration: a small value gives each client few labels, a large one is close to iid."
    )


class SizesPartition(CoreVariant, core="wirelessfl.learning.partition:power_law_partition"):
    """iid labels, unequal sizes after a power law."""

    scheme: Literal["sizes"] = key("sizes", "iid labels, and shares whose sizes follow a power law.")
    exponent: NonNegative = key(
        1.0, "The client of rank r gets a share proportional to r^-exponent; 0 means equal shares."
    )


class NaturalPartition(CoreVariant, core="wirelessfl.learning.partition:natural_partition"):
    """The division that the data come with."""

    scheme: Literal["natural"] = key(
        "natural",
        "As the data come: generated on demand per client (synthetic set), or by the owners that your own set names.",
    )


class ExternalPartition(
    External,
    family="partition",
    protocol="wirelessfl.learning.partition:PartitionRule",
    check="wirelessfl.learning.local_conformance:check_partition",
):
    """A division of the user's own."""

    scheme: Reference = key(..., "Importable rule that divides the samples, as package.module:Class.")


Partition = Annotated[
    IidPartition | ClassesPartition | DirichletPartition | SizesPartition | NaturalPartition | ExternalPartition,
    Family("scheme", default="classes"),
]


class HeldOut(Section):
    """A part of every client's samples on which nobody trains."""

    fraction: Annotated[float, Field(gt=0, lt=1)] = key(
        0.1, "Part of each client's samples, drawn at random and rounded to whole samples."
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
