"""Texts of code from outside: the modules that a scenario names, and those of the user's that they import.

The modules are found by the import statements in their text, not by what happens to be loaded, so that the same files
give the same sources in every process. Modules of installed packages count by name and version, those of Python and of
the packages that this one requires not at all: runs without code from outside do not know them either.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from pathlib import Path
from typing import Any, Self

from wirelessfl.errors import ScenarioError, precondition
from wirelessfl.plugins.loaded import refuse_edited
from wirelessfl.plugins.places import PACKAGE, is_installed, is_pythons, searching, top_of

LARGEST = 8 << 20
"""Letters of all sources together."""
_MOST_FILES = 4096
_LONGEST_PATH = 400
_REQUIRED = {
    *("click", "cryptography", "dp_accounting", "h5netcdf", "h5py", "jinja2", "matplotlib", "networkx", "numpy"),
    *("pandas", "pyarrow", "pydantic", "yaml", "rich", "sklearn", "scipy", "simpy", "torch", "torchvision"),
    *("typing_extensions", "xarray"),
}
"""Modules of the packages that this one requires."""


@dataclass(frozen=True)
class Sources:
    """Texts of the modules from outside that a scenario runs.

    Attributes:
        files: text by path, relative to the folder that it is imported from; None where no text is known, as of what
            was typed into an interpreter.
        packages: versions of the installed packages that the scenario or these modules name, by distribution, and
            digests of compiled modules.
    """

    files: Mapping[str, str | None]
    packages: Mapping[str, str]

    @cached_property
    def text(self) -> str:
        """All of it as JSON, the same for equal sources."""
        tree = {"files": dict(self.files), "packages": dict(self.packages)}
        return json.dumps(tree, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """SHA-256 of `text`, in hexadecimal."""
        return digest_of(self.text)

    @property
    def digests(self) -> dict[str, str]:
        """Digest of each file by its path, and version of each package by its name."""
        files = {path: "unknown" if text is None else digest_of(text) for path, text in self.files.items()}
        return {**files, **self.packages}

    @property
    def tops(self) -> set[str]:
        """Top-level packages and modules of the files."""
        return {path.removesuffix(".py").partition("/")[0] for path in self.files}

    @property
    def unknown(self) -> list[str]:
        """Paths of which no text is known."""
        return sorted(path for path, text in self.files.items() if text is None)

    def differences(self, other: Sources) -> list[str]:
        """What is not the same in other sources, in words; also where nobody knows."""
        words = [_difference(path, self.files, other.files) for path in sorted({*self.files, *other.files})]
        names = sorted({*self.packages, *other.packages})
        versions = [(name, self.packages.get(name, "none"), other.packages.get(name, "none")) for name in names]
        return [
            *filter(None, words),
            *(f"{name} {mine} -> {others}" for name, mine, others in versions if mine != others),
        ]

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Sources as `text` says them, of anybody: sizes are bounded, and every path stays in its folder.

        Raises:
            ValueError: they are not, or the text says something else.
        """
        tree = json.loads(text)
        shaped = isinstance(tree, dict) and set(tree) == {"files", "packages"}
        precondition(shaped and all(isinstance(part, dict) for part in tree.values()), "no files and packages")
        files, packages = tree["files"], tree["packages"]
        precondition(len(files) <= _MOST_FILES, f"{len(files)} files")
        precondition(all(isinstance(one, str) for one in packages.values()), "a version that is no text")
        for path, content in files.items():
            precondition(_is_module_path(path), f"the path {path[:80]!r}")
            precondition(content is None or isinstance(content, str), f"{path}: no text")
            precondition("\0" not in (content or ""), f"{path}: letters that are no text")
            (content or "").encode()  # a UnicodeEncodeError is a ValueError
        size = sum(len(content or "") for content in files.values())
        precondition(size <= LARGEST, f"{size:,} letters")
        return cls(files, packages)


def digest_of(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _difference(path: str, mine: Mapping[str, str | None], others: Mapping[str, str | None]) -> str | None:
    if path not in mine:
        missing = others[path] is None and f"{path.removesuffix('.py')}/__init__.py" in mine
        return None if missing else f"{path} (new)"  # of a package that is missing nobody knows that it is one
    if path not in others:  # what a missing module imports is not looked for
        return f"{path} ({'not found here' if None in others.values() else 'no longer used'})"
    if mine[path] is None:
        return f"{path} (its text is not known)"
    if others[path] is None:
        return f"{path} (not found here)"
    if mine[path] == others[path]:
        return None
    return f"{path} (SHA-256 {digest_of(mine[path] or '')[:12]} -> {digest_of(others[path] or '')[:12]})"


def _is_module_path(path: str) -> bool:
    *folders, file = path.removesuffix(".py").split("/")
    return path.endswith(".py") and len(path) <= _LONGEST_PATH and all(part.isidentifier() for part in (*folders, file))


def sources_of(references: Iterable[str]) -> Sources:
    """Sources of what references ``package.module:Name`` name; nothing is imported for that.

    Raises:
        ScenarioError: a module was edited after it was imported, so that it is not what runs; or they are too large.
    """
    files: dict[str, str | None] = {}
    packages: dict[str, str] = {}
    wanted = [(reference.partition(":")[0], reference) for reference in references]
    seen: set[str] = set()
    with searching():
        while wanted:
            name, asked_by = wanted.pop()
            for module in _with_parents(name):
                if module in seen:
                    continue
                seen.add(module)
                found = _find(module, asked_by)
                if isinstance(found, _Installed):
                    packages[found.distribution] = found.version
                elif found is not None:
                    files[found.path] = found.text
                    wanted += [(one, asked_by) for one in _imported(module, found.path, found.text or "")]
            size = sum(len(text or "") for text in files.values())
            precondition(
                size <= LARGEST and len(files) <= _MOST_FILES,
                f"{asked_by}: imports {len(files):,} files of yours with {size:,} letters, which the trace would keep; "
                f"allowed: {_MOST_FILES:,} files and {LARGEST:,} letters. Install code that does not change as a "
                "package",
                ScenarioError,
            )
    return Sources(files, packages)


@dataclass(frozen=True)
class _Own:
    path: str
    text: str | None


@dataclass(frozen=True)
class _Installed:
    distribution: str
    version: str


def _with_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def _find(module: str, asked_by: str) -> _Own | _Installed | None:
    # A module of the user's or of an installed package; None for one of Python's, of a package that this one requires,
    # without a file of its own, and for none at all
    top = top_of(module)
    if module == "__main__":
        return _main(asked_by)
    if top == PACKAGE.name or top in sys.stdlib_module_names or top in _REQUIRED:
        return None
    spec = _spec_of(module)
    if spec is None or not spec.has_location or spec.origin is None:
        return _Own(f"{module.replace('.', '/')}.py", None) if module == asked_by.partition(":")[0] else None
    file = Path(spec.origin).resolve()
    root = file.parents[module.count(".") + (spec.submodule_search_locations is not None)]
    if is_installed(file, root):
        return None if is_pythons(file) else _distribution(top)
    if any(file.name.endswith(one) for one in EXTENSION_SUFFIXES):
        return _Installed(f"{module} ({file.name})", f"SHA-256 {hashlib.sha256(file.read_bytes()).hexdigest()}")
    path = module.replace(".", "/") + ("/__init__.py" if spec.submodule_search_locations is not None else ".py")
    text = _text_of(file)
    if text is not None:
        refuse_edited(module, file, text)
    return _Own(path, text)


def _spec_of(module: str) -> ModuleSpec | None:
    top, *rest = module.split(".")
    with suppress(ImportError, ValueError, AttributeError):
        spec = importlib.util.find_spec(top)
        name = top
        for part in rest:
            if spec is None or spec.submodule_search_locations is None:
                return None
            name = f"{name}.{part}"
            spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
        return spec
    return None


def _text_of(file: Path) -> str | None:
    with suppress(OSError, SyntaxError, UnicodeDecodeError):
        return importlib.util.decode_source(file.read_bytes()) if file.suffix == ".py" else None
    return None


def _main(reference: str) -> _Own:
    # The script, or what was typed of the class or function named
    module = sys.modules.get("__main__")
    file = getattr(module, "__file__", None)
    if file is not None and (text := _text_of(Path(file))) is not None:
        refuse_edited("__main__", Path(file), text)
        return _Own("__main__.py", text)
    found: Any = getattr(module, reference.partition(":")[2], None)
    return _Own("__main__.py", _typed(found))


def _typed(found: Any) -> str | None:
    # Cells of a notebook are known by the line cache, also where a class has no file
    with suppress(OSError, TypeError):
        return inspect.getsource(found)
    methods = [one for one in vars(found).values() if inspect.isfunction(one)] if isinstance(found, type) else []
    with suppress(OSError, TypeError):
        return "\n".join(inspect.getsource(one) for one in methods) or None
    return None


def _imported(module: str, path: str, text: str) -> Iterator[str]:
    package = module if path.endswith("/__init__.py") else module.rpartition(".")[0]
    for level, name, below in _import_statements(text):
        base = name
        if level:
            parents = package.split(".") if package else []
            kept = parents[: len(parents) - (level - 1)]
            base = ".".join([*kept, *([name] if name else [])])
        if base:
            yield base
            yield from (f"{base}.{one}" for one in below if one != "*")


@lru_cache(maxsize=1024)
def _import_statements(text: str) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    # (dots, module, names) of every import, also inside functions and of modules named by a constant
    found: list[tuple[int, str, tuple[str, ...]]] = []
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ()  # what cannot be imported
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            named = node.args[0].value
            if called in ("import_module", "__import__") and isinstance(named, str) and not named.startswith("."):
                found.append((0, named, ()))
    return tuple(found)


@lru_cache(maxsize=256)
def _distribution(top: str) -> _Installed:
    from importlib.metadata import PackageNotFoundError, packages_distributions, version  # slow to import

    with suppress(PackageNotFoundError):
        return _Installed(top, version(top))
    names = packages_distributions().get(top, [])
    return _Installed(names[0], version(names[0])) if names else _Installed(top, "unknown")
