"""Families of variants: unions of sections that one key tells apart (``kind``, ``model``, ...).

Each variant has its own keys only, and the union of the variants is the registry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from wirelessfl.scenario.base import Section


@dataclass(frozen=True)
class Family:
    """Annotation of a union of sections: ``key`` names the variant, and a mapping without it means ``default``."""

    key: str
    default: str

    def variants(self, union: Any) -> dict[str, type[Section]]:
        """The variants of the union by tag; an external variant has the tag ``""``."""
        members = get_args(union) or (union,)
        return {_tag_of(member, self.key): member for member in members}

    def variant(self, union: Any, value: Mapping[Any, Any]) -> type[Section] | None:
        """The variant that a mapping means, or None if its tag is unknown."""
        tag = value.get(self.key, self.default)
        variants = self.variants(union)
        return variants.get(_known_tag(tag, variants)) if isinstance(tag, str) else None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        variants = self.variants(source)
        choices = {f"@{tag}": handler.generate_schema(member) for tag, member in variants.items()}

        def choice(value: Any) -> str | None:
            return self._choice(variants, value)

        return core_schema.tagged_union_schema(choices, choice, strict=True)

    def _choice(self, variants: Mapping[str, type[Section]], value: Any) -> str | None:
        if not isinstance(value, BaseModel | Mapping):
            return None
        tag = getattr(value, self.key, None) if isinstance(value, BaseModel) else value.get(self.key, self.default)
        return f"@{_known_tag(tag, variants)}" if isinstance(tag, str) else "unknown"

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """All variants but the default one need their tag; else a mapping without it would match several."""
        result = handler(schema)
        if "oneOf" not in result:
            return result
        default = f"@{self.default}"
        tags = list(schema["choices"])
        result["oneOf"] = [
            choice if tag == default else {**choice, "required": [self.key]}
            for tag, choice in zip(tags, result["oneOf"], strict=True)
        ]
        return result


def _tag_of(member: type[Section], tag_key: str) -> str:
    annotation = member.model_fields[tag_key].annotation
    return str(get_args(annotation)[0]) if get_origin(annotation) is Literal else ""


def _known_tag(tag: str, variants: Mapping[str, type[Section]]) -> str:
    # The tag of the variant that a tag in the file means: of ``tag:value`` the part before the colon where that has
    # such values, else the external variant's
    first, colon, _ = tag.partition(":")
    return tag if not colon else first if getattr(variants.get(first), "qualified", None) else ""
