"""Errors that are found when data and model are made: file, line and key of the scenario, as of those found earlier."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import wirelessfl as wfl
from tests.simulation.scenarios import small
from wirelessfl.cli import main
from wirelessfl.errors import DataError, ScenarioError
from wirelessfl.scenario import load_scenario

Write = Callable[[Path], Any]

RESNET = "model:\n  name: torchvision:resnet18\n  norm: group\n  head: new\n  channels: summed\n  weights: w.pt\n"
LEAF = "data:\n  dataset:\n    name: leaf\n    task: synthetic\n    root: leaf\n"
ARRAYS = "data:\n  dataset:\n    name: arrays\n    file: a.npz\n"
TABLE = "data:\n  dataset:\n    name: table\n    file: t.csv\n    label: y\n"
IMAGES = "data:\n  dataset:\n    name: image_folder\n    root: images\n"


def nothing(folder: Path) -> None:
    """No file at all."""


def holding(name: str, content: bytes) -> Write:
    def write(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(content)

    return write


def arrays(**given: Any) -> Write:
    return lambda folder: np.savez(folder / "a.npz", **given)


def leaf(samples: dict[str, Any]) -> Write:
    def write(folder: Path) -> None:
        for half in ("train", "test"):
            (folder / "leaf" / half).mkdir(parents=True)
            text = json.dumps({"users": ["a"], "user_data": {"a": samples}})
            (folder / "leaf" / half / "all.json").write_text(text)

    return write


def saved(content: Any) -> Write:
    return lambda folder: torch.save(content, folder / "w.pt")


FLAT = arrays(x=np.ones((200, 2)), y=np.tile([0, 1], 100))

# Text of the scenario below its head of three lines, files beside it, line and key of the error, what it says.
TABLE_OF_ERRORS: list[tuple[str, Write, int, str, str]] = [
    ("model:\n  trainable: none.*", nothing, 5, "model.trainable", "found none.*; allowed: what matches"),
    ("model:\n  lora:\n    rank: 2\n    targets: '9'", nothing, 7, "model.lora.targets", "found 9; allowed"),
    ("model:\n  lora:\n    rank: 65", nothing, 6, "model.lora.rank", "found 65; allowed: at most"),
    ("model:\n  lora:\n    unfrozen: zz", nothing, 6, "model.lora.unfrozen", "found zz; allowed: what matches"),
    ("data:\n  augment:\n    crop: 8", nothing, 6, "data.augment.crop", "found 8 with images of (1, 8, 8); allowed"),
    (
        f"{ARRAYS}  partition: {{scheme: iid}}\nmodel: {{name: cnn_mnist}}",
        FLAT,
        9,
        "model.name",
        "found cnn_mnist, which does not fit inputs",
    ),
    ("model:\n  name: lstm", nothing, 5, "model.name", "found lstm with the dataset digits"),
    (RESNET, nothing, 9, "model.weights", "found no file w.pt"),
    (RESNET, holding("w.pt", b"\x80\x04junk"), 9, "model.weights", "w.pt: not a file of tensors alone; allowed"),
    (RESNET, holding("w.pt/f", b""), 9, "model.weights", "w.pt: cannot be read: Is a directory; allowed"),
    (RESNET, saved({"conv1.weight": torch.ones(1)}), 9, "model.weights", "lacks bn1.bias"),
    (RESNET, saved([torch.ones(1)]), 9, "model.weights", "holds no state dict"),
    (ARRAYS, nothing, 7, "data.dataset.file", "found no file a.npz"),
    (ARRAYS, holding("a.npz", b"PK\x03\x04"), 7, "data.dataset.file", "a.npz: not an NPZ file"),
    (ARRAYS, arrays(x=np.ones((9, 2))), 7, "data.dataset.file", "a.npz: lacks the array y; allowed"),
    (ARRAYS, arrays(x=np.ones((9, 2)), y=-np.ones(9, int)), 7, "data.dataset.file", "labels from -1 to -1; allowed"),
    (ARRAYS, arrays(x=np.full((9, 2), np.nan), y=np.ones(9, int)), 7, "data.dataset.file", "not finite; allowed"),
    (TABLE, holding("t.csv", b"a,b\n1,2\n"), 8, "data.dataset.label", "found 'y', which"),
    (f"{TABLE}    owner: o", holding("t.csv", b"a,y\n1,2\n"), 9, "data.dataset.owner", "found 'o', which"),
    (TABLE, holding("t.csv", b"a,y\n1,2\n,3\n"), 7, "data.dataset.file", "row 1 (from 0) has no value"),
    (f"{TABLE}    test_file: u.csv", holding("t.csv", b"a,y\n1,2\n"), 9, "data.dataset.test_file", "found no file"),
    (IMAGES, nothing, 7, "data.dataset.root", "found no folder images"),
    (IMAGES, holding("images", b""), 7, "data.dataset.root", "images: cannot be read: Not a directory"),
    (IMAGES, holding("images/a/b.png", b"no"), 7, "data.dataset.root", "b.png: not a readable image"),
    (LEAF, holding("leaf/x", b""), 8, "data.dataset.root", "leaf: holds no folders train and test; allowed"),
    (LEAF, leaf({"x": [[1, 2]], "y": [1, 2, 3]}), 8, "data.dataset.root", "user 'a': not samples"),
    ("data:\n  dataset:\n    name: hugging_face\n    root: images", holding("images/x", b""), 0, "data.dataset", ""),
    (ARRAYS, FLAT, 4, "data.partition.classes_per_client", "found 5; allowed: 1 to 2"),
    ("data:\n  validation:\n    fraction: 0.99", nothing, 5, "data.validation, data.test", "none is left to train on"),
]


@pytest.mark.parametrize(("text", "write", "line", "key", "words"), TABLE_OF_ERRORS)
def test_an_error_names_file_line_and_key(
    text: str, write: Write, line: int, key: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(f"name: own\nrounds: 1\nclients: {{count: 100}}\n{text}\n")
    write(tmp_path)
    result = CliRunner().invoke(main, ["validate", str(path)])
    said = " ".join(result.stderr.split())
    assert result.exit_code == 2, said
    assert "Traceback" not in said
    assert said.startswith(f"Error: {path}:{line or ''}"), said
    assert f": {key}" in said and words in said and "found" in said
    assert "allowed" in said, said
    assert said.count(str(path)) == 1


def test_simulate_says_the_same_as_validate(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("name: own\nrounds: 1\nmodel: {trainable: zz}\n")
    outputs = [
        CliRunner().invoke(main, arguments).stderr
        for arguments in (["validate", str(path)], ["simulate", str(path), "--out", str(tmp_path / "run")])
    ]
    assert outputs[0] == outputs[1]
    assert re.match(rf"Error: {re.escape(str(path))}:3: model\.trainable: ", " ".join(outputs[0].split()))


def test_an_override_and_a_mapping_are_the_place(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["validate", "quickstart", "--set", "model.lora.rank=5000"])
    assert " ".join(result.stderr.split()).startswith("Error: --set model.lora.rank=5000: model.lora.rank: found 5000")
    with pytest.raises(ScenarioError, match=r"^scenario: model\.trainable: found zz"):
        wfl.simulate({"name": "own", "model": {"trainable": "zz"}}, tmp_path / "run")


def test_places_are_no_part_of_a_scenario_and_survive_other_folders(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("name: own\nmodel: {trainable: zz}\n")
    one = load_scenario(path)
    assert one == load_scenario({"name": "own", "model": {"trainable": "zz"}})
    moved = one.placed(one.places).model_copy(update={"seed": 3})
    with pytest.raises(DataError, match=rf"^{re.escape(str(path))}:2: model.trainable: of mine"), moved.located():
        raise DataError("model.trainable: of mine")


@pytest.mark.parametrize("message", ["digits: no key", "a.yaml:3: model.name: found", "model", ""])
def test_a_message_that_names_no_key_first_is_left_alone(message: str) -> None:
    with pytest.raises(DataError) as caught, small().located(), small().located():
        raise DataError(message)
    assert str(caught.value) == message
