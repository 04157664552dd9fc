"""Modules that are loaded already, against their files: what runs must be what the file says."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from wirelessfl.errors import ScenarioError

# Loaded modules by name: the spec, which is a new one after a reload, and the digest of the file when it was first seen
_known: dict[str, tuple[object, str]] = {}


def refuse_edited(name: str, file: Path, text: str) -> None:
    """Check that a module, where it is loaded, was loaded from this text.

    Of a module that was loaded before anything asked for it, the functions are compared; from then on, the file.

    Args:
        name: of the module.
        file: that it is loaded from.
        text: of the file now.

    Raises:
        ScenarioError: the file was edited since.
    """
    module = sys.modules.get(name)
    if module is None:
        _known.pop(name, None)
        return
    digest = hashlib.sha256(text.encode()).hexdigest()
    spec = getattr(module, "__spec__", None)
    known = _known.get(name)
    same = _says(module, file, text) if known is None or known[0] is not spec else known[1] == digest
    if not same:
        raise ScenarioError(
            f"{file}: was edited after it was imported, so that what runs is not what the file says; start a new "
            f"process (in a notebook: restart the kernel), or reload it: importlib.reload({name})"
        )
    _known[name] = (spec, digest)


def _says(module: ModuleType, file: Path, text: str) -> bool:
    # Whether the functions of a loaded module are those of a text; other loaders may rewrite them
    if type(getattr(module, "__loader__", None)) is not SourceFileLoader:
        return True
    try:
        whole = compile(text, str(file), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    said = set(_codes(whole))
    return all(code in said for code in _functions(module))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _functions(module: ModuleType) -> Iterator[CodeType]:
    own = [one for one in vars(module).values() if getattr(one, "__module__", None) == module.__name__]
    within = [member for one in own if isinstance(one, type) for member in vars(one).values()]
    for one in (*own, *within):
        plain = one.fget if isinstance(one, property) else getattr(one, "__func__", one)
        if inspect.isfunction(plain) and plain.__code__.co_filename == getattr(module, "__file__", None):
            yield plain.__code__
