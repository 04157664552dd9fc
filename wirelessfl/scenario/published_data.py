"""Published data sets, read from their files."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from wirelessfl.scenario.base import CoreVariant, Rule, key
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


class FileSet(LabelledSet, files=("root",)):
    """A set that is read from files."""

    root: Annotated[str, Field(min_length=1)] | None = key(
        None,
        "Folder that holds the files as published; it may be read-only. Relative to the scenario file, the current "
        "folder, or one of WIRELESSFL_DATA. null: the folders of WIRELESSFL_DATA.",
    )


class DownloadedSet(FileSet, core_names={"classes": None, "download": None}):
    """A set whose files torchvision can fetch."""

    download: bool = key(
        False,
        "Fetch files that are missing into root, or into the first folder of WIRELESSFL_DATA; checked by their hashes, "
        "kept there for later runs.",
    )


class Mnist(DownloadedSet, core="wirelessfl.learning.data.mnist:load_mnist", available=10):
    """MNIST: 60,000 + 10,000 images of 28 by 28."""

    name: Literal["mnist"] = key("mnist", "Handwritten digits, 28 by 28 pixels.")


class FashionMnist(DownloadedSet, core="wirelessfl.learning.data.mnist:load_fashion_mnist", available=10):
    """Fashion-MNIST: 60,000 + 10,000 images of 28 by 28."""

    name: Literal["fashion_mnist"] = key("fashion_mnist", "Articles of clothing, 28 by 28 pixels.")


class Kmnist(DownloadedSet, core="wirelessfl.learning.data.mnist:load_kmnist", available=10):
    """KMNIST: 60,000 + 10,000 images of 28 by 28."""

    name: Literal["kmnist"] = key("kmnist", "Cursive Japanese characters, 28 by 28 pixels.")


class EmnistLetters(DownloadedSet, core="wirelessfl.learning.data.mnist:load_emnist_letters", available=26):
    """EMNIST letters: 26 classes, upper and lower case together."""

    name: Literal["emnist_letters"] = key("emnist_letters", "Letters, both cases in one class; a is class 0.")


class EmnistByClass(DownloadedSet, core="wirelessfl.learning.data.mnist:load_emnist_byclass", available=62):
    """EMNIST by class: digits 0-9, upper case 10-35, lower case 36-61."""

    name: Literal["emnist_byclass"] = key(
        "emnist_byclass", "Digits (classes 0-9), upper case (10-35) and lower case (36-61) letters."
    )


class Cifar10(DownloadedSet, core="wirelessfl.learning.data.cifar:load_cifar10", available=10):
    """CIFAR-10: 50,000 + 10,000 colour images of 32 by 32."""

    name: Literal["cifar10"] = key("cifar10", "Colour photographs, 32 by 32 pixels.")


class Cifar100(DownloadedSet, core="wirelessfl.learning.data.cifar:load_cifar100", available=100):
    """CIFAR-100: 50,000 + 10,000 colour images of 32 by 32."""

    name: Literal["cifar100"] = key("cifar100", "Colour photographs of 100 classes, 32 by 32 pixels.")


class Svhn(DownloadedSet, core="wirelessfl.learning.data.svhn:load_svhn", available=10):
    """SVHN: 73,257 + 26,032 colour images of 32 by 32."""

    name: Literal["svhn"] = key("svhn", "House numbers in photographs, 32 by 32 pixels.")


class Adult(FileSet, core="wirelessfl.assembly.data:adult", available=2):
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
