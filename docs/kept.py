"""What takes seconds to compute for a page, kept in .cache/docs/ until something that it may follow from changes.

Not a hook by itself: hooks keep their pictures and tables with it. It follows from all files of the package, the
scenarios, the channel profiles and the hooks, and from the versions of the packages that compute and draw.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from wirelessfl.errors import OutputError
from wirelessfl.outputs import replacing

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".cache" / "docs"
SOURCES = ("wirelessfl", "scenarios", "channels", "docs")
SUFFIXES = (".py", ".c", ".yaml", ".csv")
PACKAGES = ("matplotlib", "numpy", "scipy", "torch")


def kept(name: str, make: Callable[[], bytes]) -> bytes:
    """What was made under a name from the same sources; made now where there is none."""
    folder = FOLDER / digest()
    path = folder / name
    if path.is_file():
        return path.read_bytes()
    content = make()
    with suppress(OSError, OutputError):  # of a checkout that cannot be written the site is built all the same
        for other in FOLDER.glob("*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            part.write_bytes(content)
    return content


@cache
def digest() -> str:
    """Digest of everything that what is kept may follow from."""
    found = hashlib.sha256()
    for path in _sources():
        found.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    for package in PACKAGES:
        found.update(f"{package} {version(package)}\0".encode())
    return found.hexdigest()[:32]


def _sources() -> Iterator[Path]:
    for folder in SOURCES:
        yield from sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES and path.is_file())
