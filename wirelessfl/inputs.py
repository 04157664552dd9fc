"""Files and folders that a scenario names: where a relative path is looked up, and hashes of what is there."""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wirelessfl.errors import DataError, MissingDataError

CHANNEL_FILE, LINK_LOG = "channel.fading.file", "uplink.rate.file"
"""Keys of a file of gains and of a log of links; one that comes with the package is found last, by its name alone."""
ROOT_VARIABLE = "WIRELESSFL_DATA"
"""Environment variable: folders that hold data, separated as in PATH."""
_LONGEST_NAME = 100  # letters of a file name that a message shows


def data_folders() -> tuple[Path, ...]:
    """Folders that WIRELESSFL_DATA names, in its order."""
    given = os.environ.get(ROOT_VARIABLE, "").split(os.pathsep)
    return tuple(Path(one).expanduser() for one in given if one)


@dataclass(frozen=True)
class Places:
    """Places in which what a scenario names is looked up; two are equal, for they are no part of what it says.

    Attributes:
        own: Absolute folders that come first: that of the scenario file, or those of a trace.
    """

    own: tuple[Path, ...] = field(default=(), compare=False)

    @classmethod
    def beside(cls, *folders: Path) -> "Places":
        """Places of a scenario that lies in a folder, or belongs to several, the first first."""
        return cls(tuple(dict.fromkeys(folder.resolve() for folder in folders)))

    def folders(self) -> tuple[Path, ...]:
        """All of them in their order: the scenario's own, the current folder, those of WIRELESSFL_DATA."""
        others = (folder.resolve() for folder in (Path(), *data_folders()))
        return tuple(dict.fromkeys((*self.own, *others)))

    def candidates(self, name: str) -> tuple[Path, ...]:
        """The paths that a name may mean; of an absolute one there is one."""
        path = Path(name).expanduser()
        return (path,) if path.is_absolute() else tuple(folder / path for folder in self.folders())

    def find(self, key: str, name: str, what: Literal["file", "folder"] = "file") -> Path:
        """The first of them that is there.

        Args:
            key: The scenario key, for messages.
            name: A relative or absolute path.
            what: Whether it is a file or a folder, for messages.

        Raises:
            MissingDataError: No such folder is there, with the places that were looked at.
            DataError: No such file is, or the system refuses the name.
        """
        further = _shipped(name) if key in (CHANNEL_FILE, LINK_LOG) else ()
        try:
            candidates = self.candidates(name)
            found = next((path for path in (*candidates, *further) if path.exists()), None)
        except (OSError, ValueError, RuntimeError) as error:  # too long, with a null character, or of nobody's home
            why = getattr(error, "strerror", None) or error
            raise DataError(f"{key}: {name[:_LONGEST_NAME]}... cannot be read: {why}") from error
        if found is None:
            places = "" if candidates == (Path(name),) else f"; looked for {_listed(candidates)}"
            missing = MissingDataError if what == "folder" else DataError
            raise missing(f"{key}: found no {what} {name}{places}")
        return found


def _shipped(name: str) -> tuple[Path, ...]:
    # Where a file of this name would come with the package: in an installed wheel, or the checkout
    package = Path(__file__).resolve().parent
    installed = package / "shipped" / "channels"
    folder = installed if installed.is_dir() else package.parent / "channels"
    return (folder / name,) if Path(name).name == name else ()


def _listed(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))


def file_fingerprint(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal.

    Raises:
        DataError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
