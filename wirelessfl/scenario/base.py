"""Parts of a scenario: frozen sections, keys with a meaning, families of variants.

A *section* is a mapping in the scenario file. A *variant* is one of several that a key tells apart, see ``family``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError, core_schema

Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
LARGEST_SINGLE = 3.4e38
"""Models are trained in single precision, whose largest number this is, rounded down."""

PositiveSingle = Annotated[float, Field(gt=0, le=LARGEST_SINGLE)]
NonNegativeSingle = Annotated[float, Field(ge=0, le=LARGEST_SINGLE)]
Probability = Annotated[float, Field(ge=0, le=1)]
Epsilon = Annotated[float, Field(ge=1e-9, le=1e100)]
"""Noise for less is larger than any signal, and none is left for more; ε² runs out of floating-point numbers."""

LEAST_NORM = 1e-30
Norm = Annotated[float, Field(ge=LEAST_NORM, le=LARGEST_SINGLE)]
"""Of an update that is sent: those of smaller ones, and their gains, run out of floating-point numbers."""

Gain = Annotated[float, Field(ge=1e-100, le=1e100)]
"""Of amplitudes, whose squares still are floating-point numbers."""

Share = Annotated[float, Field(gt=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]
Decibel = Annotated[float, Field(ge=-300, le=300)]
Count = Annotated[int, Field(ge=1, le=10**9)]


def _whole(value: Any) -> Any:
    # Literals are compared by ==, and True and 1.0 equal 1
    if isinstance(value, bool | float):
        raise PydanticCustomError("literal_error", "not a whole number")
    return value


ONE_OF_NUMBERS = BeforeValidator(_whole)
"""Beside a ``Literal`` of whole numbers: booleans are not numbers, and 1.0 is no whole one."""

LIGHT_M_PER_S = 299_792_458.0

Metres = Annotated[float, Field(ge=1e-3, le=1e9)]
Hertz = Annotated[float, Field(ge=1e-3, le=1e15)]
BitsPerSecond = Annotated[float, Field(ge=1e-3, le=1e18)]
Speed = Annotated[float, Field(gt=0, le=LIGHT_M_PER_S)]
Doppler = Annotated[float, Field(ge=0, le=1e12)]
Wait = Annotated[float, Field(gt=0, le=1e12)]
"""Beyond these bounds nothing is built, and products of a few of them still fit into floating-point numbers."""


@dataclass(frozen=True)
class Says:
    """Allowed values in words, where the type alone does not tell a user enough."""

    text: str


Reference = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"),
    Says("package.module:Name, something importable of your own"),
]


def key(default: Any, description: str, *, alias: str | None = None) -> Any:
    """A key of a section: its default (``...`` where it has none) and its meaning, with the unit in brackets."""
    return Field(default, description=description, alias=alias)


Rule = tuple[bool, str, str, str]
"""Whether values do not go together, their key path, what was found, what is allowed."""


class Section(BaseModel):
    """A mapping of the scenario file: frozen, no unknown keys, no conversions between types, finite numbers only."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    exclusive: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs of keys of which exactly one is given."""

    otherwise: ClassVar[Mapping[str, Any]] = {}
    """The value of the first key of a pair where the file gives neither."""

    def __init_subclass__(cls, **stated: Any) -> None:
        """Takes class variables as keywords beside the bases."""
        super().__init_subclass__()
        for name, value in stated.items():
            if not any(name in getattr(base, "__annotations__", {}) for base in cls.__mro__):
                raise TypeError(f"{cls.__name__}: {name} is no class variable of its bases")
            setattr(cls, name, value)

    @model_validator(mode="before")
    @classmethod
    def _fill_otherwise(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        neither = [pair[0] for pair in cls.exclusive if pair[0] in cls.otherwise and not {*pair} & value.keys()]
        return {**value, **{first: cls.otherwise[first] for first in neither}}

    def rules(self) -> list[Rule]:
        """Rules between the keys of the section."""
        return []

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        given = {name: getattr(self, name) is not None for pair in self.exclusive for name in pair}
        pairs = [
            (
                given[first] == given[second],
                first,
                f"both {first} and {second}" if given[first] else f"neither {first} nor {second}",
                f"exactly one of {first} and {second}",
            )
            for first, second in self.exclusive
            if first in self.otherwise
        ]
        if broken := [(path, found, allowed) for bad, path, found, allowed in (*pairs, *self.rules()) if bad]:
            raise contradictions(broken)
        return self


Options = dict[str, JsonValue]
"""Keyword arguments for an object outside this package, whatever it takes."""


class CoreVariant(Section):
    """A variant that stands for one class of the core, just as ``package.module:Class`` stands for one of the user's.

    Both are made by `wirelessfl.assembly.objects.make_object`; a parameter without a default that is no key of the
    variant is filled from the family's context.
    """

    core: ClassVar[str]
    """The class, or the function that makes the object, as ``wirelessfl.package.module:Name``."""

    core_names: ClassVar[Mapping[str, str | None]] = {}
    """Names of the core for keys that it calls otherwise; None for keys that are no argument of it."""

    files: ClassVar[tuple[str, ...]] = ()
    """Keys that name a file or a folder, looked up as `wirelessfl.inputs.Places` says."""

    qualified: ClassVar[str | None] = None
    """Key that a tag of the form ``tag:value`` sets as well, as in ``name: tag:value``; None where there is none."""

    def named_files(self) -> dict[str, str]:
        """The files and folders that its keys name, by key."""
        return {name: text for name in self.files if isinstance(text := getattr(self, name), str)}

    def arguments(self) -> dict[str, Any]:
        """Arguments of the object: every key but the tag, which is the first; dB become linear here."""
        named = {name: self.core_names.get(name, name) for name in list(type(self).model_fields)[1:]}
        return {core: getattr(self, name) for name, core in named.items() if core is not None}


class External(Section):
    """A variant that stands for code outside this package: of each family one, whose only further key is the tag."""

    family: ClassVar[str]
    """The name of the family."""

    protocol: ClassVar[str]
    """Protocol or class of the object, as ``package.module:Name``; checked before it is called."""

    check: ClassVar[str]
    """The family's conformance check, as ``wirelessfl.package.conformance:check_family``."""

    context: ClassVar[str | None] = None
    """Source of parameters without a default that ``options`` leave out, as ``package.module:Name`` of its class."""

    returned: ClassVar[bool] = False
    """Whether the tag names a function that returns the object; otherwise a class whose instance it is."""

    called_with: ClassVar[tuple[str, ...]] = ()
    """Names of the arguments of a function before its options."""

    options: Options = key({}, "Keyword arguments for the object named, passed on as they are.")

    @property
    def tag(self) -> str:
        """The key that names it."""
        return next(name for name in type(self).model_fields if name != "options")

    @property
    def reference(self) -> str:
        """The object named, as ``package.module:Name``."""
        return str(getattr(self, self.tag))

    def arguments(self) -> dict[str, Any]:
        """Arguments of the object."""
        return self.options

    @model_serializer(mode="wrap")
    def _tag_first(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written = write(self)
        return {self.tag: written.pop(self.tag), **written}


RUN = "wirelessfl.assembly.objects:RunFacts"
"""Context of families that need facts of the run alone."""


def contradictions(several: list[tuple[str, str, str]]) -> PydanticCustomError:
    """The refusal of values that do not go together, each as (key path below the section, found, allowed)."""
    text = "; ".join(f"{path}: found {found}; allowed: {allowed}" for path, found, allowed in several)
    return PydanticCustomError("contradiction", "{text}", {"text": text, "contradictions": several})


@dataclass(frozen=True)
class Steps:
    """A quantity that changes at given rounds: ``values[k]`` holds from round ``first_rounds[k]`` on.

    Rounds count from 1, as in the papers.
    """

    first_rounds: tuple[int, ...]
    values: tuple[float, ...]

    def at(self, round_number: int) -> float:
        """The value in a round, counted from 1."""
        return [value for first, value in self.mapping().items() if first <= round_number][-1]

    def mapping(self) -> dict[int, float]:
        """The steps as in the file, {first round: value}."""
        return dict(zip(self.first_rounds, self.values, strict=True))


@dataclass(frozen=True)
class StepsOf:
    """Annotation of a ``Steps`` key, written in the file as a mapping from first round to a value of this type."""

    value: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        mapping = core_schema.dict_schema(
            core_schema.int_schema(ge=1, strict=True), handler.generate_schema(self.value), strict=True, min_length=1
        )
        steps = core_schema.no_info_after_validator_function(_steps_from_mapping, mapping)
        return core_schema.no_info_before_validator_function(
            _mapping_from_steps,
            steps,
            serialization=core_schema.plain_serializer_function_ser_schema(_mapping_from_steps),
        )


def _steps_from_mapping(mapping: dict[int, float]) -> Steps:
    first_rounds = sorted(mapping)
    if first_rounds[0] != 1:
        raise contradictions([("", f"a first step at round {first_rounds[0]}", "steps that begin with round 1")])
    return Steps(tuple(first_rounds), tuple(mapping[first] for first in first_rounds))


def _mapping_from_steps(value: Any) -> Any:
    return value.mapping() if isinstance(value, Steps) else value
