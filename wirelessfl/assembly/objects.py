"""Objects that a scenario names as ``package.module:Name``, and what the families of variants are made of."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pkgutil import resolve_name
from typing import Any, Self

from wirelessfl import plugins
from wirelessfl.errors import ScenarioError, defined_at, instance_of
from wirelessfl.scenario import Scenario, all_keys
from wirelessfl.scenario.base import CoreVariant, External, Section
from wirelessfl.scenario.scenario import FamilyInfo, families
from wirelessfl.scenario.yamltree import plain_value


@dataclass(frozen=True)
class RunFacts:
    """Facts of a run before anything of it is made.

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
        found, allowed = f"returned {instance_of(type(made))}", f"allowed is a {variant.protocol.replace(':', '.')}"
    else:
        names = ", ".join(sorted(name for name in dir(protocol) if not name.startswith("_")))
        found, allowed = f"is no {protocol.__name__}", f"it needs {names}"
    raise ScenarioError(f"{key}: {variant.reference} {found}; {allowed}{defined_at(factory)}")


def _filled(
    factory: Callable[..., Any], variant: CoreVariant | External, arguments: tuple[Any, ...], context: object
) -> dict[str, Any]:
    # The variant's own arguments, and what the factory asks of the context by the names of its parameters. One of the
    # core gets all that it names, one from outside what it cannot be called without. A member of another family among
    # the arguments is handed on as a function that makes it.
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


def describe(name: str) -> dict[str, Any]:
    """A family by its name: key paths, tag, default, members with their keys, and what code from outside must be.

    Raises:
        ScenarioError: there is no family of this name.
    """
    if name not in families():
        raise ScenarioError(f"NAME: found {name}; allowed: {' | '.join(families())}")
    family: FamilyInfo = families()[name]
    return {
        "name": name,
        "paths": list(family.paths),
        "tag": family.tag,
        "default": family.default,
        "members": {tag: _member(section, family.tag) for tag, section in family.members.items()},
        "outside": None if family.external is None else _outside(family.external, family.tag),
    }


def _member(section: type[Section], tag: str) -> dict[str, Any]:
    # The meaning of a member, and its own keys with default, allowed values and meaning.
    own = [one for one in all_keys(section) if "." not in one.path]
    keys = {
        one.path: {
            **({} if one.required else {"default": plain_value(one.default)}),
            "allowed": one.allowed,
            "meaning": one.description,
        }
        for one in own
    }
    return {"meaning": keys.pop(tag)["meaning"], "keys": keys}


def _outside(external: type[External], tag: str) -> dict[str, Any]:
    # What code from outside must be, what it is told, and how it is checked.
    protocol, check = resolve_name(external.protocol), resolve_name(external.check)
    context = {} if external.context is None else _attributes(resolve_name(external.context))
    signatures = _methods(protocol)
    if external.returned:
        signatures = [f"({', '.join((*external.called_with, '**options'))}) -> {protocol.__name__}"]
    return {
        "protocol": external.protocol,
        "meaning": (inspect.getdoc(protocol) or "").partition("\n")[0],
        "signatures": signatures,
        "context": context,
        "check": f"{external.check}{_signature(check)}",
        "keys": _member(external, tag)["keys"],
    }


def _methods(protocol: type) -> list[str]:
    members = [(name, inspect.getattr_static(protocol, name)) for name in _public(protocol)]
    return [
        f"{name}: {_annotation(one.fget)}" if isinstance(one, property) else f"{name}{_signature(one)}"
        for name, one in members
        if isinstance(one, property) or inspect.isfunction(one)
    ]


def _attributes(context: type) -> dict[str, str]:
    # The attributes that a context offers, with their types.
    declared = getattr(context, "__dataclass_fields__", {}).items()
    fields = {name: _short(inspect.formatannotation(field.type)) for name, field in declared}
    members = {name: inspect.getattr_static(context, name) for name in _public(context)}
    computed = {name: one for name, one in members.items() if isinstance(one, property | cached_property)}
    getters = {name: one.fget if isinstance(one, property) else one.func for name, one in computed.items()}
    return {**fields, **{name: _annotation(getter) for name, getter in getters.items()}}


def _public(thing: type) -> list[str]:
    # Names without an underscore, in the order of their declaration, those of bases first.
    names = [name for base in reversed(thing.__mro__) for name in vars(base) if not name.startswith("_")]
    return list(dict.fromkeys(names))


def _annotation(function: Callable[..., Any] | None) -> str:
    return _short(inspect.formatannotation(getattr(function, "__annotations__", {}).get("return", Any)))


def _signature(function: Callable[..., Any]) -> str:
    # Parameters and result, without `self`.
    return _short(str(inspect.signature(function))).replace("(self, ", "(").replace("(self)", "()")


def _short(annotation: str) -> str:
    # Types as they are written in code: no modules, no quotation marks, `NDArray` by its name.
    names = re.sub(r"\b(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w*)", r"\1", annotation.replace("'", ""))
    return re.sub(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]", r"NDArray[np.\1]", names)
