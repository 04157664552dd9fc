"""Downloads through torchvision, without a network."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import pytest

from tests.learning.data.writers import write_idx_pair
from wirelessfl import load_scenario
from wirelessfl.assembly.data import load_data
from wirelessfl.errors import DataError
from wirelessfl.learning.data import catalogue, load_mnist


def test_nothing_imports_torchvision_before_it_is_asked_for() -> None:
    code = "import sys, wirelessfl.learning.data.catalogue; sys.exit('torchvision' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_published_files_that_are_there_are_not_fetched(shared_data: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for packed in (shared_data / "MNIST" / "raw").glob("*.gz"):
        shutil.copyfile(packed, raw / packed.name)
    catalogue.download("mnist", tmp_path)
    assert len(list(raw.glob("*-ubyte"))) == 4
    assert len(load_mnist(tmp_path).train) == 60_000


@pytest.mark.parametrize(
    "failure", [URLError("no route"), RuntimeError("Error downloading"), PermissionError("read-only")]
)
def test_failures_of_network_and_disk_become_data_errors(
    failure: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def emnist(root: str, **options: Any) -> None:
        asked.append((root, options))
        raise failure

    monkeypatch.setattr(catalogue, "torchvision_module", lambda _: SimpleNamespace(EMNIST=emnist))
    with pytest.raises(DataError, match=r"emnist_letters: the download into .* failed"):
        catalogue.download("emnist_letters", tmp_path)
    assert asked == [(str(tmp_path), {"download": True, "split": "letters"})]


def test_without_torchvision_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torchvision", "torchvision.datasets"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(DataError, match="pip install torchvision"):
        catalogue.download("mnist", tmp_path)


def test_download_asks_for_missing_files_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fetched(root: str, download: bool) -> None:
        asked.append(root)
        write_idx_pair(Path(root) / "MNIST" / "raw", "train", [1, 2, 3] * 5)

    monkeypatch.setattr(catalogue, "torchvision_module", lambda _: SimpleNamespace(MNIST=fetched))
    mnist = {"name": "mnist", "root": str(tmp_path), "download": True, "classes": [1, 2, 3]}
    scenario = load_scenario({"name": "fetched", "data": {"dataset": mnist, "partition": {"scheme": "iid"}}})
    assert load_data(scenario)[0].num_classes == 3 and asked == [str(tmp_path)]
    monkeypatch.delenv("WIRELESSFL_DATA", raising=False)
    nowhere = load_scenario({"name": "fetched", "data": {"dataset": {"name": "svhn", "download": True}}})
    with pytest.raises(DataError, match=r"data\.dataset\.download: found true without a folder"):
        load_data(nowhere)


def test_what_nobody_publishes_that_way_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"allowed are mnist, .* found 'adult'"):
        catalogue.download("adult", tmp_path)
