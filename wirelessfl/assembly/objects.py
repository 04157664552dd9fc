"""Objects that a scenario names as ``package.module:Name``: the core's own and the user's."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from wirelessfl import plugins
from wirelessfl.errors import ScenarioError
from wirelessfl.scenario.base import CoreVariant, External


def make_object(key: str, variant: CoreVariant | External, protocol: type) -> Any:
    """An instance of the class that a variant stands for, of which the family's protocol is known to hold.

    Args:
        key: the scenario key, for messages.
        variant: one of the package's own, or the user's.
        protocol: what the object must be.

    Raises:
        ScenarioError: the class cannot be imported or made, or lacks a part of the protocol.
    """
    if isinstance(variant, External):
        factory = plugins.load_class(key, variant.reference, protocol)
        made = plugins.make(key, variant.reference, factory, **variant.arguments())
    else:
        made = _of_the_core(key, variant.reference, variant.arguments())
    if not isinstance(made, protocol):
        needed = ", ".join(sorted(name for name in dir(protocol) if not name.startswith("_")))
        raise ScenarioError(f"{key}: {variant.reference} is no {protocol.__name__}; it needs {needed}")
    return made


def _of_the_core(key: str, reference: str, arguments: Mapping[str, Any]) -> Any:
    module_name, _, name = reference.partition(":")
    try:
        return getattr(importlib.import_module(module_name), name)(**arguments)
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"{key}: {reference} refuses {dict(arguments)}: {error}") from error
