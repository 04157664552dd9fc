"""Code from outside the package: where it is looked for, what it must be before it is called, and whose line failed.

A scenario names it as ``package.module:Name``. Importing runs it, so whoever calls this has made sure that the user
wants that (`wirelessfl.scenario.scenario`). What was imported is then held against the protocol of its family before
anything of it is called: a class with the methods, or a function with the parameters, and nothing of Python's own
library. Whatever goes wrong in the user's code is told with the file and line of that code.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import sysconfig
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import PathFinder
from pathlib import Path
from types import TracebackType
from typing import Any

from wirelessfl.errors import ScenarioError

RAISED = (Exception, SystemExit, GeneratorExit)
"""Whatever code from outside raises, also to end the process; not what the user's signals raise."""
_TEXT_LIMIT = 300
_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()  # sys.stdlib_module_names leaves out its tests
_LIBRARY_FOLDERS = {"site-packages", "dist-packages"}

_searched: list[Path] = []
# Plug-ins in use, as ``package.module:Name``, and where their code lies, by which a line of theirs is known
_loaded: dict[str, list[Path]] = {}


def search(folder: Path) -> None:
    """Folder in which modules that a scenario names are looked up first, after everything that is installed."""
    with suppress(ValueError):
        _searched.remove(folder.resolve())
    _searched.insert(0, folder.resolve())


def folders() -> list[Path]:
    """The folders that are searched while a plug-in is loaded: of scenario files, the latest first, then the current.

    The current one may be somebody else's: a module of that name beside the scenario comes first.
    """
    current = Path.cwd()
    return [*_searched, *([] if current in _searched else [current])]


def load_class(key: str, reference: str, protocol: type) -> type:
    """The class that ``reference`` names, which has every method of the protocol; it is not called.

    Args:
        key: The scenario key, for messages.
        reference: ``package.module:Name``.
        protocol: What its objects have to be; further attributes are only known of an object.

    Raises:
        ScenarioError: It cannot be imported, is no such class, or a method takes other parameters.
    """
    found = _load(key, reference)
    methods = _methods(protocol)
    missing = [name for name in methods if not isinstance(found, type) or not callable(getattr(found, name, None))]
    if missing or not isinstance(found, type):
        what = f"class without {', '.join(missing)}" if isinstance(found, type) else type(found).__name__
        raise ScenarioError(
            f"{key}: {reference} is no {protocol.__name__}: found a {what}; allowed: a class with {', '.join(methods)}"
        )
    for name in methods:
        _check_parameters(key, reference, found, name, getattr(protocol, name))
    _remember(reference)
    return found


def load_function(key: str, reference: str, result: type) -> Callable[..., Any]:
    """The function that ``reference`` names, or the class of its result; it is not called.

    A function says what it returns by an annotation; one without is only taken from modules that are not installed as
    libraries, where any function could be named.

    Raises:
        ScenarioError: It cannot be imported, or is no such function.
    """
    found = _load(key, reference)
    plain = inspect.unwrap(found) if callable(found) else found
    if inspect.isfunction(plain):
        _check_result(key, reference, plain, result)
    elif not isinstance(plain, type) or not issubclass(plain, result):
        what = f"the class {plain.__name__}" if isinstance(plain, type) else f"a {type(plain).__name__}"
        raise ScenarioError(f"{key}: {reference} is {what}; allowed: a function that returns a {result.__name__}")
    _remember(reference)
    return typing.cast("Callable[..., Any]", found)


def make(key: str, reference: str, factory: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Object made by a plug-in's class or function.

    Raises:
        ScenarioError: It does not take the options, or raises.
    """
    try:
        inspect.signature(factory).bind(*arguments, **options)
    except TypeError as error:
        raise ScenarioError(f"{key}: {reference} refuses its options {options}: {error}{_at(factory)}") from None
    except ValueError:  # a class of compiled code has no signature
        pass
    with _searching(), _their_errors(key, reference):
        return factory(*arguments, **options)


def failure(error: BaseException) -> str | None:
    """An error in words where plug-ins are in use; else None.

    Below a line of a plug-in: its file and line, kind and text. Else what one of them gave may be what does not fit:
    the line of this package that raised it, and the plug-ins.
    """
    place = place_of(error)
    if place is not None:
        return f"{place}: {_in_words(error)}"
    own = _last_line(error.__traceback__, [Path(__file__).parent.resolve()])
    if not _loaded or own is None:
        return None
    return (
        f"{own}: {_in_words(error)}; code from outside is in use and may have given what does not fit: "
        f"{', '.join(_loaded)}. `wirelessfl families NAME` names the conformance check of each family"
    )


def place_of(error: BaseException) -> str | None:
    """The last line of a plug-in that an error went through, as ``file:line``; None where it went through none."""
    places = [place for several in _loaded.values() for place in several]
    cause = error.__cause__  # of a generator that its StopIteration ended
    own = _last_line(error.__traceback__, places)
    return own if own or cause is None else _last_line(cause.__traceback__, places)


def _load(key: str, reference: str) -> Any:
    (module_name, _, name), top = reference.partition(":"), _top(reference)
    if top in sys.stdlib_module_names or _LIBRARY in [place.parent for place in _places(top)]:
        raise ScenarioError(
            f"{key}: {reference} belongs to Python's own library; allowed: package.module:Name of your own"
        )
    with _searching(), _their_errors(key, reference):
        _refuse_namesake(key, reference)
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise  # a module that theirs imports
            where = ", ".join(map(str, folders()))
            raise ScenarioError(
                f"{key}: cannot import {module_name!r} of {reference!r}: no module named {error.name!r} is installed, "
                f"or lies in {where}"
            ) from None
    try:
        found = getattr(module, name)
    except AttributeError:
        where = f" ({module.__file__})" if getattr(module, "__file__", None) else ""
        raise ScenarioError(f"{key}: the module {module_name!r}{where} has no {name!r}") from None
    home = str(getattr(inspect.unwrap(found) if callable(found) else found, "__module__", "") or top)
    if home.partition(".")[0] != top:
        raise ScenarioError(
            f"{key}: {reference} is {home}:{getattr(found, '__name__', name)}, which {top} only imports; allowed: "
            "what is made in the package that is named"
        )
    return found


def _refuse_namesake(key: str, reference: str) -> None:
    # Checks that no other module of this name is loaded, which Python would take without looking: a
    # ScenarioError where one is, from another folder.
    top = _top(reference)
    loaded, found = getattr(sys.modules.get(top), "__file__", None), PathFinder.find_spec(top)
    if loaded and found and found.origin and Path(loaded).resolve() != Path(found.origin).resolve():
        raise ScenarioError(
            f"{key}: {reference} is in {found.origin}, and {loaded} is loaded already; allowed: other names, or a new "
            "process"
        )


def _remember(reference: str) -> None:
    if (top := _top(reference)) != __package__:
        _loaded[reference] = _places(top)


def _top(reference: str) -> str:
    return reference.partition(":")[0].partition(".")[0]


def _places(top: str) -> list[Path]:
    # Where the code of a top-level package or module lies; it is not imported for that
    with suppress(ImportError, ValueError):
        if (spec := importlib.util.find_spec(top)) is not None:
            found = list(spec.submodule_search_locations or ()) or [spec.origin or top]
            return [Path(place).resolve() for place in found]
    file = getattr(sys.modules.get(top), "__file__", None)
    return [] if file is None else [Path(file).resolve()]


@contextmanager
def _searching() -> Iterator[None]:
    # The plug-ins' folders at the end of the module search path, where they shadow nothing that is installed
    sys.path.extend(added := [str(folder) for folder in folders() if str(folder) not in sys.path])
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for entry in added:
            with suppress(ValueError):
                sys.path.remove(entry)


@contextmanager
def _their_errors(key: str, reference: str) -> Iterator[None]:
    # Whatever a plug-in raises, also that it ends the process, as a ScenarioError with file and line of the plug-in.
    try:
        yield
    except ScenarioError:
        raise
    except RAISED as error:
        below = _last_line(error.__traceback__, _places(_top(reference)))
        place = f"{error.filename}:{error.lineno}" if isinstance(error, SyntaxError) else below
        raise ScenarioError(f"{key}: {reference}: {f'{place}: ' if place else ''}{_in_words(error)}") from error


def _in_words(error: BaseException) -> str:
    text = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    return f"{type(error).__name__}: {text}"[:_TEXT_LIMIT].removesuffix(": ")


def _last_line(traceback: TracebackType | None, roots: list[Path]) -> str | None:
    last = None
    while traceback is not None:
        file = Path(traceback.tb_frame.f_code.co_filename)
        if any(file.resolve().is_relative_to(root) for root in roots):
            last = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return last


def _methods(protocol: type) -> list[str]:
    names = (name for name in dir(protocol) if not name.startswith("_"))
    return [name for name in names if inspect.isfunction(inspect.getattr_static(protocol, name))]


def _check_parameters(key: str, reference: str, found: type, name: str, expected: Callable[..., Any]) -> None:
    # Checks that a method can be called as its protocol says, by the parameters that it takes.
    parameters = [one for one in inspect.signature(expected).parameters.values() if one.default is one.empty]
    bound = isinstance(inspect.getattr_static(found, name), staticmethod | classmethod)
    method = getattr(found, name)
    try:
        inspect.signature(method).bind(*parameters[1:] if bound else parameters)
    except TypeError as error:
        takes = ", ".join(one.name for one in parameters)
        raise ScenarioError(
            f"{key}: {reference}: {name} cannot be called as {name}({takes}): {error}{_at(method)}"
        ) from None
    except ValueError:  # compiled code
        return


def _check_result(key: str, reference: str, function: Callable[..., Any], result: type) -> None:
    # Checks that a function says nothing else of what it returns, and something if it belongs to an installed library.
    try:
        said = typing.get_type_hints(function).get("return")
    except Exception:
        said = None  # an annotation that only a type checker can resolve
    if isinstance(said, type) and not issubclass(said, result):
        raise ScenarioError(f"{key}: {reference} says that it returns {said.__name__}; allowed: {result.__name__}")
    own = function.__module__.partition(".")[0] == __package__
    installed = own or _LIBRARY_FOLDERS & set(Path(function.__code__.co_filename).parts)
    if not isinstance(said, type) and installed:
        raise ScenarioError(
            f"{key}: {reference} does not say what it returns; allowed: a function of an installed library with the "
            f"annotation -> {result.__name__}"
        )


def _at(thing: Any) -> str:
    # Where something of a plug-in is defined, as `` (file:line)``; nothing where Python does not know
    with suppress(TypeError, OSError):
        plain = inspect.unwrap(thing)
        return f" ({inspect.getsourcefile(plain)}:{inspect.getsourcelines(plain)[1]})"
    return ""
