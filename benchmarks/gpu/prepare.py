"""What a bare machine lacks: packages from a folder of wheels, and the compiled kernel of the noise.

Nothing but the standard library is imported here, and no package index is asked. ``torch`` and ``numpy`` are never
installed: the ones that the machine has were built for its GPU. What is added lies in a folder of its own, and holds
nothing that the interpreter had already.
"""

from __future__ import annotations

import importlib
import importlib.metadata as metadata
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build" / "gpu-packages" / f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
"""Where packages from wheels go: what was compiled for one Python is of no use to another."""

NEVER_INSTALLED = {"torch", "numpy"}
_PYTHONS = ((3, 11), (3, 13))
_TORCH = (2, 6)


class NotReadyError(Exception):
    """The machine cannot run the benchmarks; the text says what is missing."""


def prepare(wheels: Path | None) -> list[str]:
    """Make the package importable and its noise fast; gives notes on what was done.

    Args:
        wheels: Folder of wheels for packages that are missing.

    Raises:
        NotReadyError: interpreter or torch are too old or too new, or packages are missing.
    """
    _check_interpreter()
    for place in (str(ROOT), str(PACKAGES)):
        if place not in sys.path:
            sys.path.append(place)
    importlib.invalidate_caches()
    return [*_add_packages(wheels), *(f"may fail: {told}" for told in unsuitable(_asked_for())), *_compile_kernels()]


def _check_interpreter() -> None:
    lowest, highest = _PYTHONS
    if not lowest <= sys.version_info[:2] <= highest:
        found = ".".join(map(str, sys.version_info[:2]))
        raise NotReadyError(f"Python: found {found}; allowed is 3.11 to 3.13, as in make gpu PYTHON=python3.12")
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        raise NotReadyError(f"torch: {sys.executable} has none; allowed is 2.6 or newer, built for CUDA") from None
    if tuple(int(part) for part in torch.split("+")[0].split(".")[:2]) < _TORCH:
        raise NotReadyError(f"torch: found {torch}; allowed is 2.6 or newer")


# --- packages ------------------------------------------------------------------------------------------------------


def _add_packages(wheels: Path | None) -> list[str]:
    """Install what is missing, and what that asks for in its turn."""
    added: list[str] = []
    while lacking := missing(_asked_for()):
        if wheels is None or (again := [name for name in lacking if name in added]):
            raise NotReadyError(_missing_text(lacking if wheels is None else again, wheels))
        if blocked := NEVER_INSTALLED.intersection(lacking):
            raise NotReadyError(f"{', '.join(sorted(blocked))}: missing, and never installed by this command")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
        command += ["--no-deps", "--no-compile", "--find-links", str(wheels), "--target", str(PACKAGES), *lacking]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotReadyError(f"{_missing_text(lacking, wheels)}\n{done.stderr.strip()}")
        added += lacking
        importlib.invalidate_caches()
    return [f"from {wheels}: {', '.join(added)}"] if added else []


def _missing_text(names: Iterable[str], wheels: Path | None) -> str:
    where = "give a folder of wheels, as in make gpu WHEELS=folder" if wheels is None else f"not found in {wheels}"
    return f"packages are missing: {', '.join(names)}; {where}"


def _asked_for() -> Iterator[str]:
    """Requirements of this package, as written."""
    import tomllib  # not before the interpreter was looked at: Python 3.10 has none

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield from project["dependencies"]
    yield "pytest"  # runs the tests of the first part


def missing(requirements: Iterable[str]) -> list[str]:
    """Names of packages that are not installed, of ``requirements`` and of whatever these ask for, each once."""
    requirement_of = _packaging("requirements").Requirement
    waiting, seen, found = list(requirements), set[str](), list[str]()
    while waiting:
        requirement = requirement_of(waiting.pop(0))
        name = requirement.name.lower().replace("_", "-")
        if name in seen or not _applies(requirement):
            continue
        seen.add(name)
        try:
            waiting += metadata.distribution(name).requires or []
        except metadata.PackageNotFoundError:
            found.append(name)
    return found


def unsuitable(requirements: Iterable[str]) -> list[str]:
    """Packages that are installed in a version that ``requirements`` exclude: found and asked for, in words."""
    requirement_of = _packaging("requirements").Requirement
    told = []
    for requirement in filter(_applies, map(requirement_of, requirements)):
        found = metadata.version(requirement.name)
        if not requirement.specifier.contains(found, prereleases=True):
            told.append(f"{requirement.name}: found {found}; asked for is {requirement.specifier}")
    return told


def _applies(requirement: Any) -> bool:
    return requirement.marker is None or bool(requirement.marker.evaluate({"extra": ""}))


def _packaging(name: str) -> ModuleType:
    """A module of ``packaging``, or of pip's copy of it where there is no other."""
    try:
        return importlib.import_module(f"packaging.{name}")
    except ModuleNotFoundError:
        pass
    try:
        return importlib.import_module(f"pip._vendor.packaging.{name}")
    except ModuleNotFoundError:
        raise NotReadyError(f"packages are missing: packaging; {sys.executable} has neither it nor pip") from None


# --- the kernels ---------------------------------------------------------------------------------------------------


def _compile_kernels() -> list[str]:
    """Compile the kernels in C that are not there or older than their source."""
    hatch_build = importlib.import_module("hatch_build")
    told = list[str]()
    for source in (ROOT / path for path in hatch_build.SOURCES):
        library, name = source.with_suffix(".bin"), source.parent.name
        if library.exists() and library.stat().st_mtime >= source.stat().st_mtime:
            continue
        try:
            hatch_build.compile_kernel(source, library)
            told.append(f"compiled the kernel of {name}")
        except (OSError, subprocess.CalledProcessError) as error:
            told.append(f"no compiled kernel of {name}, the CPU will be slow at it: {error}")
    return told
