"""Places of dataset files: a folder the user names, in the layouts in which the datasets are published."""

import os
from collections.abc import Sequence
from pathlib import Path

from wirelessfl.errors import MissingDataError

ROOT_VARIABLE = "WIRELESSFL_DATA"


def data_root(root: str | Path | None, dataset: str) -> Path:
    """The folder with the datasets: ``root``, else the environment variable WIRELESSFL_DATA.

    Raises:
        MissingDataError: neither is given, or it is no folder.
    """
    chosen = root if root is not None else os.environ.get(ROOT_VARIABLE)
    if not chosen:
        raise MissingDataError(
            f"{dataset} is read from files: set data.dataset.root to the folder that holds them "
            f"(or the environment variable {ROOT_VARIABLE})"
        )
    path = Path(chosen).expanduser()
    if not path.is_dir():
        raise MissingDataError(f"data.dataset.root: {path} is not a folder; {dataset} is read from there")
    return path


def find_files(root: Path, folders: Sequence[str], names: Sequence[str]) -> list[Path] | None:
    """All of ``names`` in the first of ``folders`` below ``root`` that has them all, plain or as .gz; None if none has.

    The files may lie in a read-only folder; nothing is unpacked to disk.
    """
    for folder in folders:
        found = [_plain_or_packed(root / folder / name) for name in names]
        if all(found):
            return [path for path in found if path is not None]
    return None


def _plain_or_packed(path: Path) -> Path | None:
    packed = path.with_name(path.name + ".gz")
    return path if path.is_file() else packed if packed.is_file() else None


def not_found(dataset: str, root: Path, folders: Sequence[str], names: Sequence[str]) -> MissingDataError:
    """The error that says which files were looked for, and where."""
    places = ", ".join(str(root / folder) for folder in folders)
    return MissingDataError(
        f"{dataset}: found none of {', '.join(names)} (plain or .gz) in {places}; set data.dataset.root"
    )
