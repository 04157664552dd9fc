"""Modules that are loaded already, against their files: what runs must be what the file says."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import marshal
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from wirelessfl.errors import ScenarioError

# Loaded modules by name: the spec, which is a new one after a reload, and the digest of the file when it was first seen
_known: dict[str, tuple[object, str]] = {}

_HEADER = 16  # bytes of a compiled file before the code: version, flags, second and size of the text
_WORD = 0xFFFFFFFF


def refuse_edited(name: str, file: Path, text: str) -> None:
    """Check that a module, where it is loaded, was loaded from this text.

    Of a module that was loaded before anything asked for it, the functions and the compiled file are compared; from
    then on, the file. Where it is not loaded, a compiled file of another text is removed: Python takes it for one of
    this text where both have one size and were written in one second.

    Args:
        name: of the module.
        file: that it is loaded from.
        text: of the file now.

    Raises:
        ScenarioError: the file was edited since, or a compiled file of another text cannot be removed.
    """
    module = sys.modules.get(name)
    if module is None:
        _known.pop(name, None)
        _remove_stale(file, text)
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
    cached = getattr(getattr(module, "__spec__", None), "cached", None)
    stale = cached is not None and _compiled_is_other(Path(cached), file, whole)
    return not stale and all(code in said for code in _functions(module))


def _compiled_is_other(cached: Path, file: Path, whole: CodeType) -> bool:
    # Whether the module was loaded from another text, as its compiled file says. Only of modules that are loaded: to
    # read such a file is safe where Python has read it before.
    with suppress(OSError, ValueError, EOFError, TypeError):
        compiled = cached.read_bytes()
        if not _is_of_this_python(compiled) or marshal.loads(compiled[_HEADER:]) == whole:
            return False
        return _is_taken(compiled, file) or (not sys.dont_write_bytecode and os.access(cached.parent, os.W_OK))
    return False


def _remove_stale(file: Path, text: str) -> None:
    # It is compared as bytes, so that nothing of it is read; to remove one too many costs that it is written again
    cached = Path(importlib.util.cache_from_source(str(file)))
    with suppress(OSError, SyntaxError, ValueError):  # what Python reads or imports neither
        compiled = cached.read_bytes()
        other = marshal.dumps(compile(text, str(file), "exec", dont_inherit=True)) != compiled[_HEADER:]
        if other and _is_of_this_python(compiled) and _is_taken(compiled, file):
            try:
                cached.unlink(missing_ok=True)
            except OSError as error:
                raise ScenarioError(
                    f"{cached}: is of another text than {file.name}, and cannot be removed: {error.strerror}"
                ) from error


def _is_of_this_python(compiled: bytes) -> bool:
    return len(compiled) > _HEADER and compiled.startswith(importlib.util.MAGIC_NUMBER)


def _is_taken(compiled: bytes, file: Path) -> bool:
    # Whether Python takes a compiled file for that of a text: by flags, or by second and size
    words = [int.from_bytes(compiled[at : at + 4], "little") for at in range(4, _HEADER, 4)]
    facts = file.stat()
    return words[0] != 0 or words[1:] == [int(facts.st_mtime) & _WORD, facts.st_size & _WORD]


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
