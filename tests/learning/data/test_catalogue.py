"""Datasets by name: roots, filters, limits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.learning.data.writers import write_idx_pair
from wirelessfl.errors import DataError
from wirelessfl.inputs import ROOT_VARIABLE
from wirelessfl.learning import data
from wirelessfl.learning.data import LOADERS, load_dataset

NEED_FILES = [name for name in LOADERS if name not in ("digits", "synthetic")]


def test_exports_exist() -> None:
    assert sorted(set(data.__all__)) == sorted(data.__all__)
    assert all(hasattr(data, name) for name in data.__all__)


@pytest.mark.parametrize("name", ["digits", "synthetic"])
def test_built_in_sets_need_no_root(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    assert load_dataset(name).name == name


@pytest.mark.parametrize("name", NEED_FILES)
def test_without_a_root_the_error_says_what_to_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    with pytest.raises(DataError, match=rf"{name} .*data\.dataset\.root.*WIRELESSFL_DATA"):
        load_dataset(name)


@pytest.mark.parametrize("name", NEED_FILES)
def test_an_empty_root_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{name}: found none of .*{tmp_path}"):
        load_dataset(name, root=tmp_path)


def test_a_root_that_is_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="absent is not a folder"):
        load_dataset("mnist", root=tmp_path / "absent")


def test_the_environment_variable_is_the_default_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_idx_pair(tmp_path, "train", [1, 2, 3] * 5)
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    assert len(load_dataset("mnist").train) == 12
    with pytest.raises(DataError, match="is not a folder"):
        load_dataset("mnist", root=tmp_path / "absent")  # what the user wrote wins


def test_a_read_only_folder_is_enough(tmp_path: Path) -> None:
    write_idx_pair(tmp_path / "MNIST/raw", "train", [1, 2, 3] * 5, ".gz")
    (tmp_path / "MNIST/raw").chmod(0o555)
    before = sorted(tmp_path.rglob("*"))
    assert len(load_dataset("mnist", root=str(tmp_path)).train) == 12
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "MNIST/raw").chmod(0o755)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(DataError, match=r"allowed are digits, .* found 'imagenet'"):
        load_dataset("imagenet")


def test_classes_are_chosen_before_the_limit() -> None:
    dataset = load_dataset("digits", classes=[7, "3"], limit=50, split_seed=4)
    assert dataset.class_names == ("7", "3")
    assert len(dataset.train) == 50
    whole = load_dataset("digits", split_seed=4)
    wanted = (whole.train.targets == 7) | (whole.train.targets == 3)
    assert torch.equal(dataset.train.inputs, whole.train.inputs[wanted][:50])
    assert torch.equal(dataset.train.targets, (whole.train.targets[wanted][:50] == 3).long())
