"""Objects that a scenario names as ``package.module:Name``: the core's own and the user's."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import Any, Self

from wirelessfl import plugins
from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.base import CoreVariant, External


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run before anything of it is made.

    Attributes:
        rounds: M.
        clients: K, the registered clients.
        jammer: whether the object is that of an external jammer and not of the clients.
    """

    rounds: int
    clients: int
    jammer: bool = False

    @classmethod
    def of(cls, scenario: Scenario, jammer: bool = False) -> Self:
        """Facts of a scenario."""
        return cls(scenario.rounds, scenario.clients.count, jammer)


def make_object(key: str, variant: CoreVariant | External, *arguments: Any, context: object = None) -> Any:
    """The object that a variant stands for, of which the family's protocol is known to hold.

    Code of the user's own is held against the protocol before it is called, and what it makes again.

    Args:
        key: the scenario key, for messages.
        variant: one of the package's own, or the user's.
        arguments: what the family's members are called with, before their own keys.
        context: what fills parameters without a default that the keys leave out, by the names of its attributes.

    Raises:
        ScenarioError: the object cannot be imported or made, or lacks a part of the protocol.
    """
    if not isinstance(variant, External):
        factory = resolve_name(variant.core)
        given = _filled(factory, variant, arguments, context)
        try:
            return factory(*arguments, **given)
        except (TypeError, ValueError) as error:
            if arguments:  # what does not fit them is for the caller to tell
                raise
            if str(error).partition(":")[0] in type(variant).model_fields:  # then it says which key and why
                raise ScenarioError(f"{key.rpartition('.')[0]}.{error}") from error
            raise ScenarioError(f"{key}: {variant.core} refuses {variant.arguments()}: {error}") from error
    protocol = resolve_name(variant.protocol)
    load = plugins.load_function if variant.returned else plugins.load_class
    factory = load(key, variant.reference, protocol)
    given = _filled(factory, variant, arguments, context)
    made = plugins.make(key, variant.reference, factory, *arguments, **given)
    if isinstance(made, protocol):
        return made
    if variant.returned:
        found, allowed = f"returned a {type(made).__name__}", f"allowed is a {variant.protocol.replace(':', '.')}"
    else:
        names = ", ".join(sorted(name for name in dir(protocol) if not name.startswith("_")))
        found, allowed = f"is no {protocol.__name__}", f"it needs {names}"
    raise ScenarioError(f"{key}: {variant.reference} {found}; {allowed}")


def _filled(
    factory: Callable[..., Any], variant: CoreVariant | External, arguments: tuple[Any, ...], context: object
) -> dict[str, Any]:
    """The variant's own arguments, and what the factory asks of the context by the names of its parameters.

    One of the core gets all that it names, one from outside what it cannot be called without. A member of another
    family among the arguments is handed on as a function that makes it.
    """
    given = variant.arguments()
    made = {name: partial(make_object, name, one) for name, one in given.items() if isinstance(one, CoreVariant)}
    try:
        parameters = list(inspect.signature(factory).parameters.values())[len(arguments) :]
    except ValueError:  # a class of compiled code has no signature
        parameters = []
    of_the_core = isinstance(variant, CoreVariant)
    names = [one.name for one in parameters if of_the_core or one.default is one.empty]
    asked = {*names} & {name for name in dir(context) if not name.startswith("_")} - given.keys()
    return {**given, **made, **{name: getattr(context, name) for name in asked}}
