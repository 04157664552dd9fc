"""Sets that the library datasets has saved, read through a stand-in for it: kinds of pixels, and what is refused."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wirelessfl.errors import DataError
from wirelessfl.learning.data.examples import Dataset
from wirelessfl.learning.data.hugging_face import load_hugging_face

pillow = pytest.importorskip("PIL.Image")
RNG = np.random.default_rng(5)
Load = Callable[..., Dataset]


class Torn:
    """An image that cannot be decoded, which the library finds when it comes to it."""


class Split:
    """As ``datasets.Dataset``: columns whose values are decoded one by one."""

    def __init__(self, columns: dict[str, Any], format: str | None = "numpy") -> None:
        self.columns, self.format = columns, format

    @property
    def column_names(self) -> list[str]:
        return list(self.columns)

    def with_format(self, format: None) -> Split:
        return Split(self.columns, format)

    def __getitem__(self, name: str) -> Any:
        for value in self.columns[name]:
            if isinstance(value, Torn):
                raise pillow.UnidentifiedImageError("cannot identify image file")
            yield np.asarray(value) if self.format else value


class SplitDict(dict[str, Split]):
    """As ``datasets.DatasetDict``."""


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    def of_columns(train: dict[str, Any], test: dict[str, Any] | None = None, **options: Any) -> Dataset:
        splits = SplitDict(train=Split(train), **({} if test is None else {"test": Split(test)}))
        library = SimpleNamespace(load_from_disk=lambda root: splits, DatasetDict=SplitDict)
        monkeypatch.setitem(sys.modules, "datasets", library)
        return load_hugging_face("set", **options)

    return of_columns


def noise(*shape: int) -> Any:
    return pillow.fromarray(RNG.integers(0, 256, shape, dtype=np.uint8))


def columns(images: list[Any], **more: Any) -> dict[str, Any]:
    return {"image": images, "label": [at % 2 for at in range(len(images))], **more}


def test_grey_images_have_one_channel(load: Load) -> None:
    """Two-coloured ones had none, those with transparency two, and those of 16 bits values up to 65,535."""
    wide = (np.arange(24).reshape(4, 6) * 2800).astype(np.uint16)
    images = [noise(4, 6), noise(4, 6, 2), pillow.fromarray(np.eye(4, 6) > 0), pillow.fromarray(wide)]
    assert [one.mode for one in images] == ["L", "LA", "1", "I;16"]
    inputs = load(columns(images), columns(images)).train.inputs.numpy()
    first, second = np.asarray(images[0]) / 255, np.asarray(images[1])[..., 0] / 255
    assert np.allclose(inputs, np.stack([first, second, np.eye(4, 6), wide / 65_535])[:, None], atol=1e-7)


def test_images_have_three_channels_where_one_of_both_halves_has_colours(load: Load) -> None:
    """Palettes were read as the numbers of their colours, and grey images among colours were refused."""
    palette, grey = noise(4, 6, 3).quantize(9), noise(4, 6)
    clear, print_ = noise(4, 6, 4), noise(4, 6, 3).convert("CMYK")
    dataset = load(columns([grey, grey]), columns([palette, clear, print_, grey]))
    assert np.allclose(dataset.train.inputs[0].numpy(), np.stack([np.asarray(grey) / 255] * 3), atol=1e-7)
    wanted = [np.asarray(one.convert("RGB")).transpose(2, 0, 1) / 255 for one in (palette, clear, print_, grey)]
    assert np.allclose(dataset.test.inputs.numpy(), wanted, atol=1e-7)


def test_numbers_are_taken_as_they_are(load: Load) -> None:
    values = RNG.integers(0, 300, (10, 2, 3)).tolist()
    dataset = load(columns(values, who=list("abcde" * 2)), columns(values, who=list("edcba" * 2)), owner="who")
    assert np.array_equal(dataset.train.inputs.numpy(), np.array(values))
    assert dataset.owners is not None and dataset.test_owners is not None
    assert (dataset.owners.tolist(), dataset.test_owners.tolist()) == ([0, 1, 2, 3, 4] * 2, [4, 3, 2, 1, 0] * 2)
    scalars = load(columns([1.5, 2, 3] * 4), columns([True, False]))
    assert scalars.feature_shape == (1,) and scalars.test.inputs.tolist() == [[1], [0]]


TWO = [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("train", "says"),
    [
        (columns([noise(4, 6), None]), r"set/train: row 1 \(from 0\) has no value in column 'image'; allowed: a value"),
        (
            columns([noise(4, 6), Torn()]),
            r"row 1 \(from 0\), or one behind it, cannot be decoded in column 'image': can",
        ),
        (columns([noise(4, 6), noise(6, 4)]), r"row 1 .* of shape \(1, 6, 4\) in column 'image'; allowed: \(1, 4, 6\)"),
        (columns([noise(4, 6), [1, 2]]), "row 1 .* in column 'image' another kind than before it; allowed: images or"),
        (columns([pillow.new("F", (3, 3))] * 2), "row 0 .* none of images or lists of numbers: pixels of the mode F"),
        (columns([pillow.new("I", (3, 3))] * 2), "row 0 .* none of images or lists of numbers: pixels of the mode I"),
        (columns([[1, 2], [3]]), r"row 1 .* of shape \(1,\) in column 'image'; allowed: \(2,\), as in row 0"),
        (columns([[[1, 2], [3]]] * 2), "row 0 .* has in column 'image' what is none of images or lists of numbers"),
        (columns([[1, 2], [3, None]]), r"row 1 .* none of images or lists of numbers: '\[3, None\]', of the type obj"),
        (columns(["1.5", "2"]), "row 0 .* none of images or lists of numbers: '1.5', of the type <U3"),
        (columns([{"bytes": b"x"}] * 2), "row 0 .* none of images or lists of numbers"),
        (columns([[1, np.inf], [1, 2]]), r"set/train: sample 0 \(from 0\) has a value that is not finite"),
        ({"image": [], "label": []}, "set/train: holds no sample"),
        ({"image": TWO, "label": [0, None]}, r"set/train: row 1 \(from 0\) has no value in column 'label'"),
        ({"image": TWO, "label": [[0], [1]]}, r"row 0 .* has '\[0\]' in column 'label'; allowed: whole numbers, words"),
        ({"image": TWO, "label": [0, 1.5]}, r"row 1 .* has '1.5' in column 'label'; allowed: whole numbers, words"),
        (columns(TWO, who=["a", None]), r"row 1 \(from 0\) has no value in column 'who'"),
        (columns(TWO, who=[datetime(2020, 1, 1)] * 2), "row 0 .* has '2020-01-01 00:00:00' in column 'who'; allowed"),
    ],
)
def test_columns_of_another_kind_are_refused(load: Load, train: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        load(train, owner="who" if "who" in train else None)


def test_columns_that_are_missing_are_named(load: Load) -> None:
    for key in ("input", "label", "owner"):
        with pytest.raises(
            DataError, match=rf"{key}: found 'absent', which set/train has not; allowed: .* image, label"
        ):
            load(columns(TWO), **{key: "absent"})


def test_what_the_library_cannot_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(root: str) -> Any:
        raise AttributeError("no such type of feature")

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_from_disk=fails, DatasetDict=SplitDict))
    with pytest.raises(DataError, match="set: not a folder that save_to_disk wrote: no such type of feature"):
        load_hugging_face("set")


def test_saved_datasets_need_their_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DataError, match=r"wirelessfl\[huggingface\]"):
        load_hugging_face(tmp_path)


def test_sets_of_the_library_itself_are_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    torn = io.BytesIO()
    noise(6, 6).save(torn, "PNG")
    pictures = [noise(6, 6) for _ in range(10)]
    whole = datasets.Dataset.from_dict({**columns(pictures), "writer": list("abcde" * 2)})
    whole = whole.cast_column("image", datasets.Image())
    datasets.DatasetDict({"train": whole.with_format("numpy"), "test": whole}).save_to_disk(str(tmp_path / "set"))
    dataset = load_hugging_face(tmp_path / "set", owner="writer")
    assert dataset.feature_shape == (1, 6, 6) and dataset.owners is not None
    assert np.allclose(dataset.train.inputs[3, 0].numpy() * 255, np.asarray(pictures[3]), atol=1e-4)
    with pytest.raises(DataError, match="input: found 'pixels', which"):
        load_hugging_face(tmp_path / "set", input="pixels")
    content = {"bytes": torn.getvalue()[:50], "path": None}
    broken = datasets.Dataset.from_dict(columns([content] * 4)).cast_column("image", datasets.Image())
    broken.save_to_disk(str(tmp_path / "broken"))
    with pytest.raises(DataError, match=r"broken/train: row 0 \(from 0\), or one behind it, cannot be decoded"):
        load_hugging_face(tmp_path / "broken")
