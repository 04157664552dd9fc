"""Data sets of one's own files: arrays, tables, folders of images, LEAF, and what is damaged."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.io import savemat

import wirelessfl as wfl
from wirelessfl.errors import DataError, ScenarioError
from wirelessfl.learning.data.arrays import load_arrays
from wirelessfl.learning.data.cifar import load_cifar100
from wirelessfl.learning.data.image_folder import load_image_folder
from wirelessfl.learning.data.leaf import LETTERS, load_leaf
from wirelessfl.learning.data.svhn import MEAN, STD, load_svhn
from wirelessfl.learning.data.tables import load_table

RNG = np.random.default_rng(1)


LEAF = {"name": "leaf", "root": "x"}
HALF = {"x_train": np.ones((5, 2)), "y_train": np.arange(5)}


def write_arrays(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_arrays_of_one_half_are_divided_with_their_owners(tmp_path: Path) -> None:
    x, y = RNG.integers(0, 256, (50, 3, 4, 4), dtype=np.uint8), np.repeat(["cat", "ant", "bee", "dog", "eel"], 10)
    owners = np.array([f"writer {at % 7}" for at in range(50)])
    dataset = load_arrays(write_arrays(tmp_path / "a.npz", x=x, y=y, owners=owners), split_seed=3)
    assert dataset.class_names == ("ant", "bee", "cat", "dog", "eel")
    assert torch.bincount(dataset.test.targets).tolist() == [2] * 5
    assert dataset.owners is not None and dataset.test_owners is not None
    seen = {}
    halves = ((dataset.train, dataset.owners), (dataset.test, dataset.test_owners))
    for half, own in halves:
        for inputs, target, owner in zip(half.inputs, half.targets.tolist(), own.tolist(), strict=True):
            seen[inputs.numpy().tobytes()] = (dataset.class_names[target], owner)
    scaled = (x.astype(np.float32) / np.float32(255)).reshape(50, -1)
    wanted = {row.tobytes(): (word, at % 7) for at, (row, word) in enumerate(zip(scaled, y, strict=True))}
    assert seen == wanted


def test_arrays_of_two_halves_stay_as_they_are(tmp_path: Path) -> None:
    halves = {**HALF, "x_test": RNG.random((4, 2)), "y_test": np.arange(4)}
    dataset = load_arrays(write_arrays(tmp_path / "a.npz", **halves))
    assert dataset.num_classes == 5 and dataset.owners is None
    assert np.array_equal(dataset.test.inputs.numpy(), halves["x_test"].astype(np.float32))
    assert dataset.train.targets.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"x": np.ones((5, 2))}, "lacks the array y"),
        ({"x": np.ones((5, 2)), "y": np.arange(4)}, "4 labels for 5 inputs"),
        ({"x": np.ones(5), "y": np.arange(5)}, r"of shape \(5,\)"),
        ({"x": np.ones((5, 2)), "y": np.arange(5) - 1}, "labels from -1 to 3; allowed: whole numbers from 0"),
        (
            {"x": np.ones((5, 2)), "y": np.ones(5)},
            "labels of the type float64; allowed: whole numbers from 0 on, or words",
        ),
        ({"x": np.full((5, 2), np.nan), "y": np.arange(5)}, "sample 0 .* not finite"),
        ({"x": np.ones((0, 2)), "y": np.arange(0)}, "holds no sample"),
        ({"x": np.ones((5, 2)), "y": np.arange(5), "z": np.ones(1)}, "an array 'z'"),
        ({"x": np.ones((5, 2)), "y": np.arange(5), "owners": np.arange(3)}, "3 owners for 5"),
        ({"x": np.ones((5, 2)), "y": np.arange(5)}, "too few samples of each class"),
        ({"x": np.array([object()] * 5)[:, None], "y": np.arange(5)}, "not an NPZ file of plain arrays"),
        (
            {"x_train": np.ones((5, 2)), "y_train": np.arange(5), "x_test": np.ones((5, 3)), "y_test": np.arange(5)},
            "shape",
        ),
        (
            {"x": np.ones((5, 2)), "y": np.arange(5), "x_test": np.ones((5, 2)), "y_test": np.arange(5)},
            "has x_test beside x",
        ),
        ({"x_train": np.ones((5, 2)), "y_train": np.arange(5), "owners": np.arange(5)}, "has owners beside x_train"),
        ({"x_train": np.ones((5, 2)), "y_train": np.arange(5), "y_test": np.arange(5)}, "has y_test beside x_train"),
    ],
)
def test_arrays_that_do_not_go_together_are_refused(tmp_path: Path, arrays: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        load_arrays(write_arrays(tmp_path / "a.npz", **arrays))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 torn", b"\x93NUMPY\x01\x00v\x00{}"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.npz"):
        load_arrays(tmp_path / "a.npz")


def test_a_damaged_stream_is_refused(tmp_path: Path) -> None:
    """Bytes within the compressed data, of which zlib complains before a checksum can."""
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.random.default_rng(0).random((400, 5)), y=np.arange(400) % 2)
    whole = path.read_bytes()
    for at in range(100, 1100, 100):
        path.write_bytes(whole[:at] + bytes(8 * [0xFF]) + whole[at + 8 :])
        with pytest.raises(DataError, match=r"a\.npz: not an NPZ file"):
            load_arrays(path)


def people(count: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": RNG.integers(18, 80, count),
            "town": RNG.choice(["Ulm", "Aachen", "Bonn"], count),
            "member": RNG.random(count) < 0.5,
            "bank": [f"bank {at % 4}" for at in range(count)],
            "income": np.where(np.arange(count) % 2 == 0, "high", "low"),
        }
    )


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_a_table_becomes_numbers_and_one_hot_vectors(tmp_path: Path, ending: str) -> None:
    table, test = people(20), people(6)
    for name, rows in (("train", table), ("test", test)):
        path = tmp_path / f"{name}.{ending}"
        rows.to_parquet(path) if ending == "parquet" else rows.to_csv(path, index=False)
    dataset = load_table(tmp_path / f"train.{ending}", "income", tmp_path / f"test.{ending}", "bank")
    wanted = [
        [row.age, row.town == "Aachen", row.town == "Bonn", row.town == "Ulm", row.member] for row in table.itertuples()
    ]
    assert np.array_equal(dataset.train.inputs.numpy(), np.array(wanted, dtype=np.float32))
    assert dataset.class_names == ("high", "low") and dataset.train.targets.tolist() == [0, 1] * 10
    assert dataset.owners is not None and dataset.owners.tolist() == [at % 4 for at in range(20)]
    scaled = load_table(tmp_path / f"train.{ending}", "income", tmp_path / f"test.{ending}", "bank", "standard")
    age = (table.age - table.age.mean()) / table.age.std(ddof=0)
    assert np.allclose(scaled.train.inputs[:, 0].numpy(), age, atol=1e-6)
    assert torch.equal(scaled.train.inputs[:, 1:4], dataset.train.inputs[:, 1:4])


def test_words_that_only_the_test_half_has_are_no_category(tmp_path: Path) -> None:
    people(20).to_csv(tmp_path / "a.csv", index=False)
    people(4).assign(town="Rome").to_csv(tmp_path / "b.csv", index=False)
    dataset = load_table(tmp_path / "a.csv", "income", tmp_path / "b.csv", "bank")
    assert not dataset.test.inputs[:, 1:4].any()


def test_tables_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    people(20).to_csv(tmp_path / "a.csv", index=False)
    people(20).drop(columns="age").to_csv(tmp_path / "b.csv", index=False)
    holes = people(20)
    holes.loc[7, "town"] = None
    holes.to_csv(tmp_path / "c.csv", index=False)
    (tmp_path / "d.parquet").write_bytes(b"PAR1 torn")
    (tmp_path / "e.csv").write_bytes(b"")
    for file, label, test, says in (
        ("a.csv", "wages", None, r"label: found 'wages', which .*a\.csv has not; allowed: one of its columns, age"),
        ("a.csv", "income", "b.csv", "has the columns town"),
        ("c.csv", "income", None, "row 7 .* no value in column 'town'"),
        ("d.parquet", "income", None, "not a readable Parquet file"),
        ("e.csv", "income", None, "not a readable CSV file"),
        ("absent.csv", "income", None, "cannot be read"),
    ):
        with pytest.raises(DataError, match=says):
            load_table(tmp_path / file, label, None if test is None else tmp_path / test)


def write_images(folder: Path, colours: dict[str, tuple[int, int, int]], count: int = 5) -> None:
    image = pytest.importorskip("PIL.Image")
    for name, colour in colours.items():
        (folder / name).mkdir(parents=True)
        for at in range(count):
            image.new("RGB", (20, 10 + at), colour).save(folder / name / f"{at}.png")


def test_folders_of_images_are_classes(tmp_path: Path) -> None:
    write_images(tmp_path / "train", {"red": (255, 0, 0), "blue": (0, 0, 255)})
    write_images(tmp_path / "test", {"red": (128, 0, 0)})
    dataset = load_image_folder(tmp_path, size=8)
    assert dataset.class_names == ("blue", "red") and dataset.feature_shape == (3, 8, 8)
    assert dataset.train.inputs[0, :, 3, 3].tolist() == [0, 0, 1]
    assert dataset.test.inputs[0, :, 0, 0].tolist() == pytest.approx([128 / 255, 0, 0])
    grey = load_image_folder(tmp_path / "train", size=4, grey=True)
    assert grey.feature_shape == (1, 4, 4) and len(grey.test) == 2


def test_folders_without_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no images"):
        load_image_folder(tmp_path)
    pytest.importorskip("PIL.Image")
    (tmp_path / "red").mkdir()
    (tmp_path / "red" / "a.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"a\.png: not a readable image"):
        load_image_folder(tmp_path)


def write_leaf(root: Path, samples: dict[str, tuple[list[Any], list[Any]]], packed: bool = False) -> Path:
    for half in ("train", "test"):
        (root / half).mkdir(parents=True, exist_ok=True)
        data = {user: {"x": x, "y": y} for user, (x, y) in samples.items()}
        counts = [len(x) for x, _ in samples.values()]
        text = json.dumps({"users": list(samples), "num_samples": counts, "user_data": data}).encode()
        (root / half / f"all_data_0.json{'.gz' if packed else ''}").write_bytes(gzip.compress(text) if packed else text)
    return root


@pytest.mark.parametrize("packed", [False, True])
def test_leaf_femnist_has_images_of_writers(tmp_path: Path, packed: bool) -> None:
    samples = {f"f{user}_0": ([RNG.random(784).tolist() for _ in range(3)], [user, 10, 61]) for user in (4, 2)}
    dataset = load_leaf(write_leaf(tmp_path, samples, packed), "femnist")
    assert dataset.feature_shape == (1, 28, 28) and dataset.num_classes == 62 and dataset.vocabulary is None
    assert dataset.owners is not None and dataset.owners.tolist() == [1, 1, 1, 0, 0, 0]
    assert np.allclose(dataset.train.inputs[0].numpy().ravel(), samples["f4_0"][0][0])
    assert dataset.test.targets.tolist() == [4, 10, 61, 2, 10, 61]


def test_leaf_shakespeare_has_the_numbers_of_letters(tmp_path: Path) -> None:
    line = ("To be, or not to be: that is the question. ¶" * 3)[:80]
    dataset = load_leaf(write_leaf(tmp_path, {"HAMLET": ([line, "a" * 80], ["T", "}"])}), "shakespeare")
    assert len(LETTERS) == 80 == dataset.num_classes == len(dataset.vocabulary or ())
    letters = "".join(LETTERS[int(number)] for number in dataset.train.inputs[0].tolist())
    assert letters == line.replace("¶", " ")
    assert [dataset.class_names[at] for at in dataset.train.targets.tolist()] == ["T", "}"]


def test_leaf_sent140_has_the_numbers_of_words(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("<unk>\ni\nlove\nradio\n!\n")
    tweets = [["1", "Mon", "NO_QUERY", "ann", "I love love this Radio !"], ["2", "Tue", "NO_QUERY", "ann", ""]]
    dataset = load_leaf(write_leaf(tmp_path, {"ann": (tweets, [1, 0])}), "sent140", tmp_path / "words.txt")
    assert dataset.train.inputs[0].tolist() == [1, 2, 2, 0, 3, 4] + [0] * 19
    assert dataset.class_names == ("negative", "positive") and not dataset.train.inputs[1].any()


@pytest.mark.parametrize(
    ("samples", "task", "says"),
    [
        ({"a": ([[1.0, 2.0]], [0])}, "femnist", "images of 2 pixels"),
        ({"a": (["short"], ["x"])}, "shakespeare", "not 80 letters"),
        ({"a": ([[1.0]], [0, 1])}, "synthetic", "1 inputs and 2 labels"),
        ({"a": ([[1.0]], [0.5])}, "synthetic", "no whole numbers"),
        ({"a": ([[0.0] * 784], [62])}, "femnist", "labels of another task"),
        ({"a": ([], [])}, "synthetic", "user 'a': not samples|holds no sample"),
        ({"a": ([[1.0]], [0]), "b": ([[1.0, 2.0]], [0])}, "synthetic", "inputs of different shapes"),
    ],
)
def test_leaf_files_of_another_kind_are_refused(
    tmp_path: Path, samples: dict[str, tuple[list[Any], list[Any]]], task: Any, says: str
) -> None:
    with pytest.raises(DataError, match=says):
        load_leaf(write_leaf(tmp_path, samples), task)


def test_leaf_users_that_are_named_twice_are_refused(tmp_path: Path) -> None:
    """Their samples counted twice, and those of a client were twice in its share."""
    write_leaf(tmp_path, {"a": ([[1.0], [2.0]], [0, 1])})
    path = tmp_path / "train" / "all_data_0.json"
    path.write_text(path.read_text().replace('"users": ["a"]', '"users": ["a", "a"]'))
    with pytest.raises(DataError, match=r"all_data_0\.json: names user 'a' twice; allowed: each once"):
        load_leaf(tmp_path, "synthetic")


@pytest.mark.parametrize(("x", "y", "says"), [(1e39, 0, "not finite"), (1, float("inf"), "are no whole numbers")])
@pytest.mark.filterwarnings("error")
def test_leaf_numbers_beyond_what_counts_are_refused_without_warnings(
    tmp_path: Path, x: float, y: float, says: str
) -> None:
    with pytest.raises(DataError, match=says):
        load_leaf(write_leaf(tmp_path, {"a": ([[x], [2.0]], [y, 1])}), "synthetic")


def test_a_vocabulary_may_begin_with_a_mark_of_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\ufeffradio\nlove\n")
    write_leaf(tmp_path, {"ann": ([["1", "Mon", "NO_QUERY", "ann", "love radio"]] * 2, [1, 0])})
    assert load_leaf(tmp_path, "sent140", tmp_path / "words.txt").vocabulary == ("radio", "love")


def test_leaf_folders_without_halves_or_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no folders train and test"):
        load_leaf(tmp_path, "femnist")
    write_leaf(tmp_path, {"a": ([[1.0]], [0])})
    with pytest.raises(DataError, match=r"vocabulary: found null with the task sent140"):
        load_leaf(tmp_path, "sent140")
    (tmp_path / "train" / "all_data_0.json").write_text('{"users": ["a"]}')
    with pytest.raises(DataError, match="not a JSON file of LEAF"):
        load_leaf(tmp_path, "synthetic")


def test_users_of_leaf_are_clients_with_test_samples_of_their_own(tmp_path: Path) -> None:
    users = {f"u{at}": (RNG.random((8, 5)).tolist(), (np.arange(8) % 3).tolist()) for at in range(6)}
    write_leaf(tmp_path / "leaf", users)
    scenario = wfl.load_scenario(
        {
            "name": "leaf",
            "rounds": 2,
            "clients": {"count": 4, "selection": {"scheme": "all"}},
            "data": {
                "dataset": {"name": "leaf", "root": str(tmp_path / "leaf"), "task": "synthetic"},
                "partition": {"scheme": "natural"},
            },
            "uplink": {"kind": "ideal"},
            "training": {"batch_size": 4},
        }
    )
    trace = wfl.simulate(scenario, tmp_path / "run", pictures=False).dataset
    assert trace["samples"].values.tolist() == [8] * 4
    assert np.isfinite(trace["local_accuracy"].values).all() and np.isfinite(trace["accuracy_worst10"].values).all()


def test_test_samples_of_others_than_the_clients_are_nobody_s(tmp_path: Path) -> None:
    """As preprocess.sh of LEAF divides by users (-t user): the run ended in a traceback after its first round."""
    arrays = {"x_train": RNG.random((30, 4)), "y_train": np.arange(30) % 3, "owners_train": np.arange(30) % 5}
    arrays |= {"x_test": RNG.random((6, 4)), "y_test": np.arange(6) % 3, "owners_test": np.arange(6) + 9}
    write_arrays(tmp_path / "a.npz", **arrays)
    scenario = {
        "name": "users",
        "rounds": 1,
        "clients": {"count": 5},
        "data": {
            "dataset": {"name": "arrays", "file": str(tmp_path / "a.npz")},
            "partition": {"scheme": "natural"},
        },
        "uplink": {"kind": "ideal"},
    }
    trace = wfl.simulate(scenario, tmp_path / "run", pictures=False).dataset
    assert np.isfinite(trace["test_accuracy"].values).all()
    assert np.isnan(trace["accuracy_worst10"].values).all() and np.isnan(trace["local_accuracy"].values).all()
    ditto = scenario | {"training": {"algorithm": {"name": "ditto"}}}
    with pytest.raises(ScenarioError, match=r"training\.algorithm\.name: found ditto"):
        wfl.simulate(ditto, tmp_path / "ditto", pictures=False)


@pytest.mark.parametrize(
    ("dataset", "says"),
    [
        (
            {"name": "leaf", "root": "x", "task": "femnist", "vocabulary": "w.txt"},
            r"data\.dataset\.vocabulary: found w\.txt",
        ),
        ({**LEAF, "task": "words"}, r"data\.dataset\.task: found words; allowed: femnist"),
        ({"name": "arrays"}, r"data\.dataset\.file: found nothing"),
        ({"name": "mnist", "download": "yes"}, r"data\.dataset\.download"),
    ],
)
def test_keys_that_are_wrong_are_named(dataset: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        wfl.load_scenario({"name": "own", "data": {"dataset": dataset}})


def test_svhn_calls_the_digit_zero_ten(tmp_path: Path) -> None:
    images = RNG.integers(0, 256, (32, 32, 3, 20), dtype=np.uint8)
    digits = np.tile(np.arange(1, 11, dtype=np.uint8), 2)[:, None]
    for name in ("train", "test"):
        savemat(tmp_path / f"{name}_32x32.mat", {"X": images, "y": digits})
    dataset = load_svhn(tmp_path)
    assert dataset.train.targets.tolist() == [*range(1, 10), 0] * 2
    green = dataset.train.inputs[4, 1].numpy() * STD[1] + MEAN[1]
    assert np.allclose(green * 255, images[:, :, 1, 4], atol=1e-3)
    (tmp_path / "train_32x32.mat").write_bytes(b"torn")
    with pytest.raises(DataError, match="not a readable MATLAB file"):
        load_svhn(tmp_path)


def test_cifar_100_has_fine_labels(tmp_path: Path) -> None:
    data = RNG.integers(0, 256, (200, 3072), dtype=np.uint8)
    batch = {"data": data, "fine_labels": [at % 100 for at in range(200)], "coarse_labels": [0] * 200}
    for name in ("train", "test"):
        (tmp_path / name).write_bytes(pickle.dumps(batch, protocol=3))
    dataset = load_cifar100(tmp_path)
    assert dataset.num_classes == 100 == len(set(dataset.class_names)) and dataset.class_names[30] == "dolphin"
    assert dataset.train.targets.tolist() == batch["fine_labels"]
    (tmp_path / "test").write_bytes(pickle.dumps({**batch, "fine_labels": [100] * 200}, protocol=3))
    with pytest.raises(DataError, match="`fine_labels` must be a list of 200 numbers 0 to 99"):
        load_cifar100(tmp_path)
