"""Objects that a scenario names as ``package.module:Name``: the core's own and the user's."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

from wirelessfl.errors import ScenarioError


def load_object(key: str, reference: str) -> Any:
    """Import the object that ``reference`` names; the current folder is searched too.

    Args:
        key: the scenario key, for messages.
        reference: ``package.module:Name``.

    Raises:
        ScenarioError: it cannot be imported.
    """
    module_name, _, attribute = reference.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        raise ScenarioError(f"{key}: cannot import {module_name!r} of {reference!r}: {error}") from error
    except AttributeError as error:
        raise ScenarioError(f"{key}: the module {module_name!r} has no {attribute!r}") from error


def make_object(key: str, reference: str, options: Mapping[str, Any], protocol: type) -> Any:
    """Make an instance of the class named and check it against the family's protocol.

    Raises:
        ScenarioError: it cannot be imported or made, or lacks a method of the protocol.
    """
    factory = load_object(key, reference)
    try:
        made = factory(**options)
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"{key}: {reference} refuses its options {dict(options)}: {error}") from error
    if not isinstance(made, protocol):
        needed = ", ".join(sorted(name for name in dir(protocol) if not name.startswith("_")))
        raise ScenarioError(f"{key}: {reference} is no {protocol.__name__}; it needs {needed}")
    return made
