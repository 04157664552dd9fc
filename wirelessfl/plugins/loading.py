"""Import of what a scenario names, and what it must be before it is called."""

from __future__ import annotations

import importlib
import inspect
import sys
import typing
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from wirelessfl.errors import ScenarioError, defined_at, instance_of
from wirelessfl.plugins.blame import remember, their_errors
from wirelessfl.plugins.places import (
    LIBRARY,
    LIBRARY_FOLDERS,
    PACKAGE,
    folders,
    found_later,
    places_of,
    searching,
    top_of,
)
from wirelessfl.plugins.sources import sources_of


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
        what = f"a class without {', '.join(missing)}" if isinstance(found, type) else instance_of(type(found))
        raise ScenarioError(
            f"{key}: {reference} is no {protocol.__name__}: found {what}; allowed: a class with {', '.join(methods)}"
        )
    for name in methods:
        _check_parameters(key, reference, found, name, getattr(protocol, name))
    remember(reference)
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
        what = f"the class {plain.__name__}" if isinstance(plain, type) else instance_of(type(plain))
        raise ScenarioError(f"{key}: {reference} is {what}; allowed: a function that returns {instance_of(result)}")
    remember(reference)
    return typing.cast("Callable[..., Any]", found)


def make(key: str, reference: str, factory: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Object made by a plug-in's class or function.

    Raises:
        ScenarioError: It does not take the options, or raises.
    """
    try:
        inspect.signature(factory).bind(*arguments, **options)
    except TypeError as error:
        raise ScenarioError(f"{key}: {reference} refuses its options {options}: {error}{defined_at(factory)}") from None
    except ValueError:  # a class of compiled code has no signature
        pass
    with searching(), their_errors(key, reference):
        return factory(*arguments, **options)


def _load(key: str, reference: str) -> Any:
    (module_name, _, name), top = reference.partition(":"), top_of(reference)
    if top in sys.stdlib_module_names or LIBRARY in [place.parent for place in places_of(top)]:
        raise ScenarioError(
            f"{key}: {reference} belongs to Python's own library; allowed: package.module:Name of your own"
        )
    found_later(sources_of([reference]).tops)  # before the import: no compiled file of another text is imported then
    with searching(), their_errors(key, reference):
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
    sources_of([reference])  # refused where a file was edited since it was imported
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
    top = top_of(reference)
    loaded, found = getattr(sys.modules.get(top), "__file__", None), PathFinder.find_spec(top)
    if loaded and found and found.origin and Path(loaded).resolve() != Path(found.origin).resolve():
        raise ScenarioError(
            f"{key}: {reference} is in {found.origin}, and {loaded} is loaded already; allowed: other names, or a new "
            "process"
        )


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
            f"{key}: {reference}: {name} cannot be called as {name}({takes}): {error}{defined_at(method)}"
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
    own = function.__module__.partition(".")[0] == PACKAGE.name
    installed = own or LIBRARY_FOLDERS & set(Path(function.__code__.co_filename).parts)
    if not isinstance(said, type) and installed:
        raise ScenarioError(
            f"{key}: {reference} does not say what it returns; allowed: a function of an installed library with the "
            f"annotation -> {result.__name__}"
        )
