"""Data sets of a user's own files, in formats that many tools write."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import CoreVariant, Rule, key

Path = Annotated[str, Field(min_length=1)]
_LOOKED_UP = "Relative to the scenario file, the current folder, or one of WIRELESSFL_DATA."


class OwnData(CoreVariant):
    """A set whose classes, shape and owners are known once it is read."""

    name: str = key("", "The data set.")


class Arrays(OwnData, core="wirelessfl.learning.data.arrays:load_arrays", files=("file",)):
    """Arrays in a NumPy archive."""

    name: Literal["arrays"] = key(
        "arrays", "Arrays x, y and perhaps owners of a NumPy archive, or those of two halves."
    )
    file: Path = key(
        ..., f"NPZ file with x and y, or x_train, y_train, x_test and y_test; owners beside them. {_LOOKED_UP}"
    )


class Table(OwnData, core="wirelessfl.learning.data.tables:load_table", files=("file", "test_file")):
    """A table with a column of labels."""

    name: Literal["table"] = key("table", "Rows of a table, CSV or Parquet, with a column of labels.")
    file: Path = key(..., f"CSV with a head line, or Parquet. {_LOOKED_UP}")
    label: Path = key(..., "Column of the labels: whole numbers from 0 on, or words.")
    test_file: Path | None = key(None, "Table of the test half. null: a fifth of every class.")
    owner: Path | None = key(None, "Column of the owners, for data.partition natural. null: none.")
    scaling: Literal["none", "standard"] = key(
        "none",
        "Numbers: none: as they are; standard: less their mean, over their standard deviation, both of the training "
        "half and so of all clients, which no ε covers.",
    )


class ImageFolder(OwnData, core="wirelessfl.learning.data.image_folder:load_image_folder", files=("root",)):
    """Images in one folder for each class."""

    name: Literal["image_folder"] = key("image_folder", "Image files in one folder for each class.")
    root: Path = key(..., f"Folder with train and test, or with the folders of the classes themselves. {_LOOKED_UP}")
    size: Annotated[int, Field(ge=1, le=4096)] = key(32, "Side to which images are scaled [pixels].")
    grey: bool = key(False, "One channel of luminance in place of three colours.")


class Leaf(OwnData, core="wirelessfl.learning.data.leaf:load_leaf", files=("root", "vocabulary")):
    """A task of the LEAF benchmark (Caldas et al. 2018)."""

    name: Literal["leaf"] = key("leaf", "A task of the LEAF benchmark, with its users as owners.")
    root: Path = key(..., f"Folder with train and test, as preprocess.sh of LEAF makes them. {_LOOKED_UP}")
    task: Literal["femnist", "shakespeare", "sent140", "synthetic"] = key("femnist", "Which task.")
    vocabulary: Path | None = key(None, "Text file with a word in each line, for sent140 alone.")

    def rules(self) -> list[Rule]:
        """Words need a vocabulary, and nothing else does."""
        words = self.task == "sent140"
        found = "null" if self.vocabulary is None else self.vocabulary
        allowed = "a text file with a word in each line" if words else "null"
        return [((self.vocabulary is not None) != words, "vocabulary", f"{found} with the task {self.task}", allowed)]


class HuggingFace(OwnData, core="wirelessfl.learning.data.hugging_face:load_hugging_face", files=("root",)):
    """A set that the library datasets of Hugging Face has saved."""

    name: Literal["hugging_face"] = key("hugging_face", "A set that save_to_disk of the library datasets wrote.")
    root: Path = key(..., f"Folder that save_to_disk wrote. {_LOOKED_UP}")
    input: Path = key("image", "Column of the inputs: images, or lists of numbers.")
    label: Path = key("label", "Column of the labels.")
    owner: Path | None = key(None, "Column of the owners, for data.partition natural. null: none.")
