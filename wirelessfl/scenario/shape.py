"""Shape of a scenario, read off its models: the keys of a place and what each allows, in words.

Error messages, overrides, profiles and the reference page all read it from here, hence from the models themselves.
"""

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, core_schema

from wirelessfl.scenario.base import Says, Section, Steps, StepsOf
from wirelessfl.scenario.family import Family


def key_of(name: str, field: FieldInfo) -> str:
    """The key in the file of a field of a section."""
    return field.alias or name


def keys_of(section: type[Section]) -> dict[str, FieldInfo]:
    """The fields of a section by their key in the file, the one that names the variant first and free options last."""
    fields = sorted(section.model_fields.items(), key=lambda item: item[0] == "options")
    return {key_of(name, field): field for name, field in fields}


def type_of(field: FieldInfo) -> Any:
    """The full type of a field, with its annotations."""
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def peel(tp: Any) -> tuple[Any, list[Any]]:
    """A type without its annotations, and the annotations."""
    if get_origin(tp) is not Annotated:
        return tp, []
    bare, *notes = get_args(tp)
    flat = [inner for note in notes for inner in (note.metadata if isinstance(note, FieldInfo) else [note])]
    return bare, flat


def alternatives(tp: Any) -> list[Any]:
    """The members of a union that is no family, those of unions within it too, else the type itself."""
    bare, notes = peel(tp)
    if family_of(notes) is None and get_origin(bare) in (Union, types.UnionType):
        return [one for member in get_args(bare) for one in alternatives(member)]
    return [tp]


def family_of(notes: list[Any]) -> Family | None:
    """The family among the annotations of a type."""
    return next((note for note in notes if isinstance(note, Family)), None)


def family_at(tp: Any) -> tuple[Family, Any] | None:
    """The family that a place of this type holds, with its union, or None."""
    for member in alternatives(tp):
        bare, notes = peel(member)
        family = family_of(notes)
        if family is not None:
            return family, bare
    return None


def section_at(tp: Any, value: Any) -> type[Section] | None:
    """The section that ``value`` is at a place of this type; None if the type has none or the variant is unknown."""
    if not isinstance(value, Mapping):
        return None
    family = family_at(tp)
    if family is not None:
        return family[0].variant(family[1], value)
    sections = [m for m in alternatives(tp) if isinstance(m, type) and issubclass(m, Section)]
    return sections[0] if sections else None


def child_at(tp: Any, value: Any, segment: str | int) -> Any:
    """The type of what lies under ``segment`` of ``value`` at a place of this type.

    Returns:
        None where there is no such key, ``Any`` where everything goes.
    """
    if tp is Any:
        return Any
    section = section_at(tp, value)
    if section is not None:
        field = keys_of(section).get(str(segment))
        return None if field is None else type_of(field)
    return next((child for member in alternatives(tp) if (child := _item_of(member, segment)) is not None), None)


def _item_of(member: Any, segment: str | int) -> Any:
    bare, notes = peel(member)
    if bare is Steps and isinstance(segment, int):
        return next(note.value for note in notes if isinstance(note, StepsOf))
    if get_origin(bare) is dict:
        return Any
    if get_origin(bare) is tuple and isinstance(segment, int):
        items = get_args(bare)
        return items[0] if items[-1] is Ellipsis else items[segment] if segment < len(items) else None
    return None


@dataclass(frozen=True)
class ByShape:
    """Annotation of a union whose members a reader tells apart at sight: a word, a mapping, a list, a number."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        choices = {f"@{_shape_of(member)}": handler.generate_schema(member) for member in get_args(source)}
        return core_schema.tagged_union_schema(choices, _shape_of_value, strict=True)


def _shape_of(member: Any) -> str:
    if get_origin(member) is Literal:
        return "word"
    bare = peel(member)[0]
    if get_origin(bare) is tuple:
        return "list"
    return "word" if bare is str else "number" if bare in (int, float) else "mapping"


def _shape_of_value(value: Any) -> str | None:
    if isinstance(value, str):
        return "@word"
    if isinstance(value, Mapping | Steps | BaseModel):
        return "@mapping"
    if isinstance(value, list | tuple):
        return "@list"
    return "@number" if isinstance(value, int | float) else None


def type_along(root: type[Section], tree: Any, path: tuple[str | int, ...]) -> Any:
    """The type of a key path of a tree, None if the path leads nowhere."""
    tp: Any = root
    value = tree
    for segment in path:
        tp = child_at(tp, value, segment)
        if tp is None:
            return None
        value = step_into(value, segment)
    return tp


def value_along(tree: Any, path: tuple[str | int, ...]) -> Any:
    """The value under a key path of a tree, None where there is nothing."""
    for segment in path:
        tree = step_into(tree, segment)
    return tree


def step_into(value: Any, segment: str | int) -> Any:
    """The value under a segment of a key path, None where there is nothing."""
    if isinstance(value, Mapping):
        return value.get(segment)
    if isinstance(value, list | tuple) and isinstance(segment, int) and 0 <= segment < len(value):
        return value[segment]
    return None


def is_schedule(tp: Any) -> bool:
    """Whether a place of this type may hold a mapping from rounds to values."""
    return any(peel(member)[0] is Steps for member in alternatives(tp))


def is_nullable(tp: Any) -> bool:
    """Whether a place of this type may hold null."""
    return type(None) in alternatives(tp)


def words_of(tp: Any) -> list[str]:
    """The words that a place of this type allows."""
    return [word for member in alternatives(tp) for word in _literals(peel(member)[0])]


def _literals(bare: Any) -> list[str]:
    return [str(word) for word in get_args(bare)] if get_origin(bare) is Literal else []


def tags_of(family: Family, union: Any) -> list[str]:
    """The tags of a family as a user writes them."""
    return [tag or "package.module:Name" for tag in family.variants(union)]


def allowed(tp: Any) -> str:
    """Values that a place of this type allows, in words."""
    members = alternatives(tp)
    if len(members) > 1:
        return " or ".join(allowed(member) for member in members)
    bare, notes = peel(tp)
    said = next((note.text for note in notes if isinstance(note, Says)), None)
    family = family_of(notes)
    if said is not None:
        return said
    if family is not None:
        return (
            f"a mapping such as {{{family.key}: {family.default}}}; {family.key}: {' | '.join(tags_of(family, bare))}"
        )
    return _allowed_bare(bare, notes)


def _allowed_bare(bare: Any, notes: list[Any]) -> str:
    if bare in (int, float):
        return ("a whole number" if bare is int else "a number") + _bounds(notes)
    if get_origin(bare) is Literal:
        return " | ".join(_literals(bare))
    if get_origin(bare) is tuple:
        return _allowed_list(get_args(bare), notes)
    if isinstance(bare, type) and issubclass(bare, Section):
        return f"a mapping with keys of {', '.join(keys_of(bare))}"
    simple = {
        bool: "true or false",
        str: "text",
        type(None): "null",
        Steps: "a mapping {first round: value, ...} from 1",
    }
    return simple.get(bare, "a mapping of plain values")


def _allowed_list(items: tuple[Any, ...], notes: list[Any]) -> str:
    if items[-1] is Ellipsis:
        least = next((note.min_length for note in notes if hasattr(note, "min_length")), 0)
        return f"a list{f' of at least {least}' if least else ''}, each item {allowed(items[0])}"
    return f"a list of {len(items)}, each {allowed(items[0])}"


def _bounds(notes: list[Any]) -> str:
    bound = {name: getattr(note, name) for note in notes for name in ("gt", "ge", "lt", "le") if hasattr(note, name)}
    words = {"gt": "above", "ge": "of at least", "lt": "below", "le": "of at most"}
    if "ge" in bound and "le" in bound:
        return f" from {bound['ge']} to {bound['le']}"
    return "".join(f" {'and ' * (i > 0)}{words[name]} {bound[name]}" for i, name in enumerate(bound))


@dataclass(frozen=True)
class KeyInfo:
    """One key of the scenario format, for reference pages and hints.

    Attributes:
        path: Key path, e.g. ``channel.fading.k_db``.
        variant: The variants it belongs to, outermost first, e.g. ``model: rician``; "" where it is always there.
        allowed: What may stand there, in words.
        default: The default as a plain value, or None where the key is required.
        required: Whether there is no default.
        description: Meaning and unit.
    """

    path: str
    variant: str
    allowed: str
    default: Any
    required: bool
    description: str


def all_keys(section: type[Section], path: str = "", variant: str = "") -> Iterator[KeyInfo]:
    """Every key of a section and of all variants below it, depth first; of a list of sections its first item."""
    for name, field in keys_of(section).items():
        here = f"{path}.{name}" if path else name
        tp = type_of(field)
        required = field.default is PydanticUndefined
        default = None if required else field.default
        yield KeyInfo(here, variant, allowed(tp), default, required, field.description or "")
        family = family_at(tp)
        if family is not None:
            for tag, member in zip(tags_of(*family), family[0].variants(family[1]).values(), strict=True):
                below = f"{family[0].key}: {tag}"
                yield from all_keys(member, here, f"{variant}, {below}" if variant else below)
        elif (below_section := section_at(tp, {})) is not None:
            yield from all_keys(below_section, here, variant)
        elif (item := child_at(tp, [], 0)) is not None and (item_section := section_at(item, {})) is not None:
            yield from all_keys(item_section, f"{here}.0", variant)
