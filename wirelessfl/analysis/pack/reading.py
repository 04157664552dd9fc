"""Reading of an untrusted archive: every part is checked before it is used, and no code of it is run."""

import hashlib
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from wirelessfl.analysis.pack.layout import (
    LARGEST_MANIFEST,
    MANIFEST,
    MOST_FILES,
    MOST_RATIO,
    Manifest,
    PackedRun,
    is_bounded,
    is_safe,
)
from wirelessfl.errors import ArchiveError, InputError, OutputError, precondition
from wirelessfl.outputs import FULL
from wirelessfl.trace import refuse_irregular

_CHUNK = 1 << 20
_ENCRYPTED = 1
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

OnBytes = Callable[[int], None]


def looks_like_archive(path: Path) -> bool:
    """Whether a file is a ZIP file, by its first bytes or its name; nothing else is known of it then."""
    try:
        if not path.is_file():  # a named pipe would be waited for
            return False
        with path.open("rb") as file:
            return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06") or path.suffix == ".zip"
    except OSError:
        return False


@dataclass(frozen=True, eq=False)
class Archive:
    """An archive whose names and sizes are those of its manifest.

    Attributes:
        path: The file.
        manifest: What it says of itself.
        entries: Its files by name.
    """

    path: Path
    manifest: Manifest
    entries: dict[str, zipfile.ZipInfo]
    _zip: zipfile.ZipFile

    @property
    def size(self) -> int:
        """Size of all files together."""
        return sum(facts.bytes for facts in self.manifest.files.values())

    def run(self, wanted: str) -> PackedRun:
        """The run of a name, an id, the beginning of an id, or a label.

        Raises:
            InputError: there is none, or more than one.
        """
        runs = self.manifest.runs
        exact = [run for run in runs if wanted in (run.name, run.id, run.label)]
        found = exact or [run for run in runs if run.id.startswith(wanted)]
        if len(found) != 1:
            known = ", ".join(run.id for run in runs[:10]) + (", …" if len(runs) > 10 else "")
            raise InputError(f"--run: found {len(found)} runs for {wanted} in {self.path}; allowed: {known}")
        return found[0]

    def check(self, on_bytes: OnBytes = lambda count: None) -> None:
        """Check of every file against its hash in the manifest.

        Raises:
            ArchiveError: naming the first that is another.
        """
        for name in self.manifest.files:
            self._copy(name, None, on_bytes)

    def extract(self, folder: Path, below: str = "", on_bytes: OnBytes = lambda count: None) -> None:
        """Files of the archive below one of its folders, written into a folder that holds none of them.

        Raises:
            ArchiveError: one of them is damaged.
            OutputError: there is no room for them.
        """
        names = [name for name in self.manifest.files if name.startswith(f"{below}/") or not below]
        needed, free = sum(self.manifest.files[name].bytes for name in names), shutil.disk_usage(folder).free
        precondition(
            needed < free,
            f"{folder}: {self.path} needs {needed / 1e9:.3g} GB there, found {free / 1e9:.3g} GB free; set TMPDIR to a "
            "folder with more",
            OutputError,
        )
        for name in names:
            file = folder.joinpath(*name.split("/"))
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("xb") as into:
                    self._copy(name, into, on_bytes)
            except OSError as error:
                if error.errno in FULL:
                    raise OutputError(f"{file.parent} cannot be written: {error.strerror}") from error
                raise ArchiveError(f"{self.path}: {name} cannot be unpacked: {error.strerror}") from error

    def _copy(self, name: str, into: BinaryIO | None, on_bytes: OnBytes) -> None:
        facts, digest, size = self.manifest.files[name], hashlib.sha256(), 0
        for chunk in self._chunks(name):
            size += len(chunk)
            precondition(
                size <= facts.bytes, (f"{self.path}: damaged ({name} is longer than the manifest says)"), ArchiveError
            )
            digest.update(chunk)
            if into is not None:
                into.write(chunk)
            on_bytes(len(chunk))
        precondition(
            (size, digest.hexdigest()) == (facts.bytes, facts.sha256),
            f"{self.path}: damaged ({name} has another SHA-256 than the manifest says)",
            ArchiveError,
        )

    def _chunks(self, name: str) -> Iterator[bytes]:
        with _damage(self.path), self._zip.open(self.entries[name]) as file:
            while chunk := file.read(_CHUNK):
                yield chunk


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """An archive, of which names, kinds and sizes are checked.

    Raises:
        ArchiveError: it is none, is damaged, or would write elsewhere or too much.
    """
    refuse_irregular(path)
    with _damage(path), zipfile.ZipFile(path) as opened:
        entries = _checked(path, opened)
        with opened.open(entries.pop(MANIFEST)) as file:
            text = file.read(LARGEST_MANIFEST + 1)
        precondition(len(text) <= LARGEST_MANIFEST, f"{MANIFEST} is too large", ValueError)
        manifest = Manifest.of_text(text.decode())
        sizes = {name: entry.file_size for name, entry in entries.items()}
        stated = {name: facts.bytes for name, facts in manifest.files.items()}
        other = sorted(name for name in {*sizes, *stated} if sizes.get(name) != stated.get(name))
        precondition(not other, f"files that are not as listed in its manifest: {', '.join(other[:3])}", ValueError)
        archive = Archive(path, manifest, entries, opened)
    with zipfile.ZipFile(path) as opened:
        yield Archive(path, archive.manifest, archive.entries, opened)


def _checked(path: Path, opened: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    # Entries by name: regular files with safe names, each once, that together have a bounded size
    infos = opened.infolist()
    precondition(len(infos) <= MOST_FILES, f"{len(infos):,} files; allowed: {MOST_FILES:,}", ValueError)
    entries: dict[str, zipfile.ZipInfo] = {}
    spellings: set[str] = set()
    for info in infos:
        name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
        precondition(is_safe(name) and info.orig_filename == name, f"the name {name[:80]!r}", ValueError)
        precondition(kind in (0, stat.S_IFREG), f"{name} is not a regular file", ValueError)
        precondition(not info.flag_bits & _ENCRYPTED, f"{name} is encrypted", ValueError)
        precondition(info.compress_type in _PACKINGS, f"{name} is compressed by an unknown method", ValueError)
        precondition(name.casefold() not in spellings, f"{name} is there twice", ValueError)
        spellings.add(name.casefold())
        entries[name] = info
    folders = {name[:at] for name in spellings for at, letter in enumerate(name) if letter == "/"}
    precondition(not folders & spellings, "a file with the name of a folder", ValueError)
    precondition(MANIFEST in entries, f"it is not an archive of runs, because it has no {MANIFEST}", ValueError)
    total, size = sum(info.file_size for info in infos), path.stat().st_size
    precondition(
        is_bounded(total, size),
        f"{total / 1e9:.3g} GB in a file of {size / 1e9:.3g} GB; allowed: {MOST_RATIO} times as much",
        ValueError,
    )
    return entries


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    # Whatever a damaged file does to the reader, as one line
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        OverflowError,
        RecursionError,
        RuntimeError,
        ValueError,
    ) as error:
        raise ArchiveError(f"{path}: not a readable archive of runs ({' '.join(str(error).split())})") from error
    except OSError as error:
        raise ArchiveError(f"{path}: cannot be read: {error.strerror or error}") from error


@contextmanager
def unpacking(archive: Archive) -> Iterator[Path]:
    """Temporary folder for files of an archive, removed afterwards, also after Ctrl-C."""
    with tempfile.TemporaryDirectory(prefix="wirelessfl-archive-", ignore_cleanup_errors=True) as place:
        yield Path(place)
