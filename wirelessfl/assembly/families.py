"""What the families of variants are made of, in plain values: members with their keys, protocol, context and check."""

import inspect
import re
from collections.abc import Callable
from functools import cached_property
from pkgutil import resolve_name
from typing import Any

from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import all_keys
from wirelessfl.scenario.base import External, Section
from wirelessfl.scenario.scenario import FamilyInfo, families
from wirelessfl.scenario.yamltree import plain_value


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
        "meaning": _summary(protocol),
        "signatures": signatures,
        "context": context,
        "check": f"{external.check}{_signature(check)}",
        "keys": _member(external, tag)["keys"],
    }


def _methods(protocol: type) -> list[str]:
    found = []
    for name in _public(protocol):
        member = inspect.getattr_static(protocol, name)
        if isinstance(member, property):
            found.append(f"{name}: {_annotation(member.fget)}")
        elif inspect.isfunction(member):
            found.append(f"{name}{_signature(member)}")
    return found


def _attributes(context: type) -> dict[str, str]:
    # The attributes that a context offers, with their types.
    declared = getattr(context, "__dataclass_fields__", {}).items()
    fields = {name: _short(inspect.formatannotation(field.type)) for name, field in declared}
    computed = {name: inspect.getattr_static(context, name) for name in _public(context)}
    for name, member in computed.items():
        if isinstance(member, property | cached_property):
            fields[name] = _annotation(member.fget if isinstance(member, property) else member.func)
    return fields


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


def _summary(thing: type) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]
