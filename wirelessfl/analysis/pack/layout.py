"""Layout of an archive: the names that it may hold, and its manifest."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from wirelessfl.errors import precondition

FORMAT = "wirelessfl-archive"
VERSION = 1
MANIFEST, README, PACKAGES = "manifest.json", "README.txt", "packages.txt"
PLUGINS = "plugins"
"""Folder of a run's sources from outside the package, beside its trace."""
DATA = "data"
"""Folder of the data that runs name by relative paths, beside the trace of a run, or in the folder of a study."""
MOST_FILES = 100_000
LARGEST_MANIFEST = 64 << 20
MOST_RATIO = 100
SMALL = 1 << 30
"""Bytes that any archive may unpack to; a larger one at most `MOST_RATIO` times its own size."""
_LONGEST_NAME = 400
_ABOVE = ("", ".", "..")


def is_safe(name: str) -> bool:
    """Whether a name means a file below the folder that it is unpacked in, on any system."""
    plain = len(name) <= _LONGEST_NAME and name.isprintable() and "\\" not in name and ":" not in name
    return plain and not any(part in _ABOVE for part in name.split("/"))


def is_bounded(total: int, size: int) -> bool:
    """Whether an archive of a size may unpack to so many bytes."""
    return total <= max(SMALL, MOST_RATIO * size)


@dataclass(frozen=True)
class PackedRun:
    """One run of an archive.

    Attributes:
        name: Folder of the run in the archive.
        label: Scenario and seed, or point and seed of a study, in words.
        status: Complete or diverged.
        rounds: Rounds in its trace.
        scenario_digest: SHA-256 of its resolved scenario.
        data: Fingerprints of its data by key path; empty where its trace has none.
        outside: What it runs of code from outside the package, as ``package.module:Name``.
    """

    name: str
    label: str
    status: str
    rounds: int
    scenario_digest: str
    data: Mapping[str, str]
    outside: tuple[str, ...] = ()

    @property
    def trace(self) -> str:
        """Its trace in the archive."""
        return f"{self.name}/trace.h5"

    @property
    def data_folder(self) -> str:
        """Its data in the archive, which all runs of a study share."""
        return f"{self.name.partition('/')[0]}/{DATA}"

    @property
    def id(self) -> str:
        """The last part of its name: in a study the id of the run."""
        return self.name.rpartition("/")[2]


@dataclass(frozen=True)
class FileFacts:
    """Size in bytes and SHA-256 in hexadecimal of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """Content of an archive.

    Attributes:
        packed: The folders of the archive that were packed, a run or a study each.
        runs: Every run.
        left_out: Runs of a study that have not ended, and data that are not in the archive, in words.
        machine: Where it was packed: python, platform, version of the package and its commit where that is known.
        packages: Installed packages with their versions.
        files: Every file but the manifest.
    """

    packed: tuple[str, ...]
    runs: tuple[PackedRun, ...]
    left_out: tuple[str, ...]
    machine: Mapping[str, str]
    packages: Mapping[str, str]
    files: Mapping[str, FileFacts]

    def text(self) -> str:
        """The manifest as JSON, the same for equal ones."""
        tree = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def of_text(cls, text: str) -> Self:
        """The manifest in an untrusted text.

        Raises:
            ValueError: It is not of this form, or of another version.
        """
        tree = json.loads(text)
        known = isinstance(tree, dict) and tree.pop("format", None) == FORMAT
        precondition(known, f"{MANIFEST} is not that of a {FORMAT}")
        version = tree.pop("version", None)
        precondition(version == VERSION, f"{MANIFEST} has version {version!r}; known here: {VERSION}")
        try:
            manifest = cls(
                packed=_texts(tree.pop("packed")),
                runs=tuple(_run(one) for one in tree.pop("runs")),
                left_out=_texts(tree.pop("left_out")),
                machine=_mapping(tree.pop("machine")),
                packages=_mapping(tree.pop("packages")),
                files={name: FileFacts(**facts) for name, facts in tree.pop("files").items()},
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"entries of {MANIFEST} are missing or of another type") from error
        sizes = all(type(one.bytes) is int and one.bytes >= 0 for one in manifest.files.values())
        precondition(sizes and not tree and manifest.runs, f"{MANIFEST} has unknown or invalid entries")
        missing = [run.trace for run in manifest.runs if run.trace not in manifest.files]
        precondition(not missing, f"{MANIFEST} names a run without trace, {missing}")
        return manifest


def _texts(value: Any) -> tuple[str, ...]:
    precondition(isinstance(value, list) and all(isinstance(one, str) for one in value), "no list of texts", TypeError)
    return tuple(value)


def _mapping(value: Any) -> dict[str, str]:
    both = isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    precondition(both, "no mapping to texts", TypeError)
    return dict(value)


def _run(value: Any) -> PackedRun:
    given = {**value, "data": _mapping(value["data"]), "outside": _texts(value["outside"])}
    run = PackedRun(**given)
    texts = (run.name, run.label, run.status, run.scenario_digest)
    precondition(all(isinstance(one, str) for one in texts) and type(run.rounds) is int, "no run", TypeError)
    return run
