"""Writing of an archive: streamed, with the same bytes for the same content, and there only when it is complete."""

import hashlib
import stat
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from wirelessfl.analysis.pack.contents import Contents, collect
from wirelessfl.analysis.pack.layout import MANIFEST, PACKAGES, README, FileFacts, Manifest, is_bounded
from wirelessfl.analysis.pack.machine import installed_packages, this_machine
from wirelessfl.analysis.pack.readme import readme_text
from wirelessfl.errors import OutputError, precondition
from wirelessfl.outputs import refuse_inputs, replacing

_CHUNK = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that the format knows
_MODE = stat.S_IFREG | 0o644
_UNIX = 3

OnBytes = Callable[[int], None]


@dataclass(frozen=True)
class Packed:
    """An archive on disk.

    Attributes:
        path: The file.
        manifest: What is in it.
        sha256: Of the whole file, in hexadecimal.
    """

    path: Path
    manifest: Manifest
    sha256: str


def write_archive(
    paths: Sequence[Path],
    out: Path | None = None,
    *,
    with_data: bool = False,
    begin: Callable[[int], OnBytes] = lambda total: lambda count: None,
) -> Packed:
    """Archive of runs and studies.

    Args:
        paths: The folder of a run or its trace, or the folder of a study, each.
        out: The file; by default the name of the first path with .zip, in the current folder.
        with_data: Whether files of data go along that a scenario names by a relative path.
        begin: Called with the number of bytes to come; what it returns is called with those that were packed since.

    Raises:
        InputError: a path holds neither, or a run that has not ended.
        OutputError: the place cannot be written, or holds another file than an archive.
    """
    contents = collect(paths, with_data=with_data)
    name = f"{contents.packed[0]}.zip"
    target = Path(name) if out is None else out
    refuse_inputs([target], contents.sources)
    precondition(
        not target.is_file() or _is_archive(target),
        f"{target}: found a file there that is not an archive of runs; choose another with --out",
        OutputError,
    )
    packages, machine = installed_packages(), this_machine()
    contents.add(PACKAGES, "".join(f"{name}=={version}\n" for name, version in packages.items()).encode())
    contents.add(README, readme_text(name, contents, machine, packages).encode())
    on_bytes = begin(sum(_size(source) for source in contents.files.values()))
    with replacing(target) as new:
        manifest = _write_all(new, contents, machine, packages, zipfile.ZIP_DEFLATED, on_bytes)
        if not is_bounded(sum(facts.bytes for facts in manifest.files.values()), new.stat().st_size):
            # Readers take so much from so little for a bomb
            manifest = _write_all(new, contents, machine, packages, zipfile.ZIP_STORED, on_bytes)
        digest = _digest(new) if new.is_file() else ""
    return Packed(target, manifest, digest)


def _write_all(
    target: Path,
    contents: Contents,
    machine: Mapping[str, str],
    packages: Mapping[str, str],
    packing: int,
    on_bytes: OnBytes,
) -> Manifest:
    facts: dict[str, FileFacts] = {}
    with zipfile.ZipFile(target, "w", packing) as archive:
        for name, source in sorted(contents.files.items()):
            facts[name] = _write(archive, name, source, on_bytes)
        manifest = Manifest(
            tuple(contents.packed), tuple(contents.runs), tuple(contents.left_out), machine, packages, facts
        )
        _write(archive, MANIFEST, manifest.text().encode(), on_bytes)
    return manifest


def _write(archive: zipfile.ZipFile, name: str, source: Path | bytes, on_bytes: OnBytes) -> FileFacts:
    # One file with its hash, as it is read: what stands in the manifest is what stands in the archive
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.create_system, entry.external_attr = _UNIX, _MODE << 16
    entry.compress_type = zipfile.ZIP_STORED if name.endswith(".png") else archive.compression
    entry.file_size = _size(source)
    digest, size = hashlib.sha256(), 0
    with _opened(source) as file, archive.open(entry, "w", force_zip64=entry.file_size >= zipfile.ZIP64_LIMIT) as into:
        while chunk := file.read(_CHUNK):
            into.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            on_bytes(len(chunk))
    return FileFacts(size, digest.hexdigest())


def _opened(source: Path | bytes) -> BinaryIO:
    return BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def _size(source: Path | bytes) -> int:
    return len(source) if isinstance(source, bytes) else source.stat().st_size


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_archive(path: Path) -> bool:
    # Whether an earlier one lies there, which may be replaced
    try:
        with zipfile.ZipFile(path) as archive:
            return MANIFEST in archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False
