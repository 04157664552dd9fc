"""YAML text to a plain tree that remembers where every key stood.

Stricter than YAML 1.1 and free of its traps: only ``true`` and ``false`` are booleans, ``1e-5`` is a number, ``1:30``
and ``010`` are text, a key given twice is an error, and no tag builds an object.
"""

import difflib
import math
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from wirelessfl.errors import ScenarioError
from wirelessfl.scenario.base import Steps

KeyPath = tuple[str | int, ...]

# What begins like a key at the left margin, in a text that need not be YAML
_TOP_KEY = re.compile(r"^(?:\{\s*)?[\"']?([^\s\"'#:{}\[\]]+)[\"']?\s*:(?=\s|$)", re.MULTILINE)

MAX_BYTES = 128 * 1024
MAX_DEPTH = 24
MAX_VALUES = 20_000

_TAG = "tag:yaml.org,2002:"
_SCALARS: dict[str, tuple[str, str]] = {
    # tag: (regular expression, characters it may begin with)
    "null": (r"~|null|Null|NULL|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)", "-+0123456789"),
    "float": (
        r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*(_[0-9]+)*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
}


class StrictLoader(yaml.SafeLoader):
    """A loader that resolves plain words after YAML 1.2, not 1.1."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - the base class declares it so


class StrictDumper(yaml.SafeDumper):
    """Dumper of text that this loader and an ordinary YAML reader take back as the same values."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the base class declares it so
        first: list(resolvers) for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }


for _tag, (_pattern, _first) in _SCALARS.items():
    for _resolver in (StrictLoader, StrictDumper):
        characters = [*_first, ""] if _tag == "null" else list(_first)
        _resolver.add_implicit_resolver(_TAG + _tag, re.compile(rf"^({_pattern})$"), characters)


def plain_value(value: Any) -> Any:
    """A Python value as the reader of a file would have given it: mappings, lists, numbers, words."""
    if isinstance(value, BaseModel):
        value = value.model_dump(by_alias=True)
    if isinstance(value, Mapping):
        return {key: plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if isinstance(value, Steps):
        return value.mapping()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.tolist() if hasattr(value, "tolist") else value


def is_finite(value: Any) -> bool:
    """False for NaN and the infinities, true for everything else."""
    return not isinstance(value, float) or math.isfinite(value)


def dump_yaml(tree: Any) -> str:
    """Plain values as YAML text: block style, innermost lists and mappings on one line."""
    text: str = yaml.dump(tree, Dumper=StrictDumper, sort_keys=False, default_flow_style=None, width=120)
    return text


def inline_yaml(value: Any, limit: int = 60) -> str:
    """A value as a user would write it, on one line and not longer than ``limit``."""
    if not isinstance(value, str | int | float | list | tuple | dict | type(None)):
        return repr(value)[:limit]
    plain = list(value) if isinstance(value, tuple) else value
    text = yaml.dump(plain, Dumper=StrictDumper, sort_keys=False, default_flow_style=True, width=float("inf"))
    text = " ".join(text.removesuffix("\n").removesuffix("\n...").split("\n"))
    return text if len(text) <= limit else text[: limit - 3] + "..."


@dataclass(frozen=True)
class Document:
    """A tree of plain values and the place of each key path in it, such as ``scenario.yaml:12``."""

    tree: Any
    places: dict[KeyPath, str] = field(default_factory=dict)

    def place(self, path: KeyPath) -> str:
        """Place of a key path, or else of its nearest ancestor."""
        while path not in self.places and path:
            path = path[:-1]
        return self.places.get(path, "scenario")


def read_text(path: Path) -> str:
    """The text of a scenario file.

    Raises:
        ScenarioError: unreadable, no regular file (a pipe may never end), too large or not UTF-8.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise ScenarioError(f"{path}: found a pipe, socket or device; allowed: a regular file")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(raw) > MAX_BYTES:
        raise ScenarioError(
            f"{path}: found more than {MAX_BYTES // 1024} KiB; allowed: a scenario file of at most that"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ScenarioError(f"{path}:{line}: found the byte 0x{raw[error.start]:02x}; allowed: UTF-8 text") from error


def read_document(path: Path, kind: str, keys: Collection[str], needs: str) -> Document:
    """The tree of a file that was named as a scenario, a study or the like.

    Where less than half of its keys are known it is some other file, named by mistake or by somebody else: then nothing
    of its content gets into the message.

    Args:
        path: The file.
        kind: What it should be, for messages.
        keys: The keys that such a file may have.
        needs: What it has at least, for messages.

    Raises:
        ScenarioError: It cannot be read, is not YAML, or is something else.
    """
    text = read_text(path)
    other = ScenarioError(f"{path}:1: found almost no key of a {kind}; allowed: a mapping with at least {needs}")
    try:
        document = parse_yaml(text, lambda number: f"{path}:{number}")
    except ScenarioError:
        if not _mostly_known(_TOP_KEY.findall(text), keys):
            raise other from None
        raise
    if document.tree is None or (isinstance(document.tree, dict) and _mostly_known(document.tree, keys)):
        return document
    raise other


def _mostly_known(found: Iterable[Any], keys: Collection[str]) -> bool:
    # Whether at least half of some keys are known, or nearly so: a slip of the finger is no reason to say nothing.
    known = [bool(difflib.get_close_matches(str(name), keys, n=1, cutoff=0.8)) for name in found]
    return 2 * sum(known) >= len(known) > 0


_PROBLEMS = {
    "mapping values are not allowed here": "a key where none can stand: a line that is indented more than its "
    "neighbours, or a colon in a text without quotes",
    "expected <block end>, but found '<block": "a line whose indentation fits none of the lines above",
    "character '\\t'": "a tab where a line begins; indent with spaces",
    "could not find expected ':'": "a line that is neither a key with a colon nor a further line of a text",
}
"""The commonest faults of layout in words, by what the parser says of them."""


def parse_yaml(text: str, place: Callable[[int], str], above: KeyPath = ()) -> Document:
    """One YAML document as plain values.

    Args:
        text: The YAML text.
        place: Where a line number lies, in words.
        above: Keys below which the document stands.

    Raises:
        ScenarioError: not YAML, more than one document, an object tag, a duplicate key, a number that is not finite,
            or more than a scenario could need.
    """
    if len(text) > MAX_BYTES:
        raise ScenarioError(f"{place(1)}: found more than {MAX_BYTES // 1024} KiB; allowed: at most that")
    try:
        root = yaml.compose(text, Loader=StrictLoader)
    except yaml.reader.ReaderError as error:
        where = place(text.count("\n", 0, error.position) + 1)
        raise ScenarioError(f"{where}: found a control character; allowed: plain text") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = place(mark.line + 1 if mark else 1)
        problem = next((words for part, words in _PROBLEMS.items() if part in str(error.problem)), error.problem)
        raise ScenarioError(f"{where}: not valid YAML ({problem}); allowed: one valid YAML document") from error
    except RecursionError:
        raise ScenarioError(f"{place(1)}: found nesting without end; allowed: at most {MAX_DEPTH} levels") from None
    if root is None:
        return Document(None, {above: place(1)})
    builder = _Builder(place)
    tree = builder.build(root, above)
    return Document(tree, builder.places)


# Builder of plain values from YAML nodes, with their places; aliases are expanded under a cap.
class _Builder:
    def __init__(self, place: Callable[[int], str]) -> None:
        self.places: dict[KeyPath, str] = {}
        self._place = place
        self._values = 0

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._refuse(node, path, f"more than {MAX_VALUES} values, aliases expanded", "at most that")
        if len(path) > MAX_DEPTH:
            raise self._refuse(node, (), f"more than {MAX_DEPTH} levels of nesting", "at most that")
        self.places.setdefault(path, self._place(node.start_mark.line + 1))
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        raise self._refuse_tag(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str | int, Any]:
        result: dict[str | int, Any] = {}
        for key_node, value_node in node.value:
            name = self._scalar(key_node, path) if isinstance(key_node, yaml.ScalarNode) else None
            if isinstance(name, bool) or not isinstance(name, str | int):
                raise self._refuse(key_node, path, "a key that is neither text nor a whole number", "plain keys")
            here = (*path, name)
            if name in result:
                first = f"the key a second time, after {self.places[here]}"
                raise self._refuse(key_node, here, first, "every key once")
            self.places[here] = self._place(key_node.start_mark.line + 1)
            result[name] = self.build(value_node, here)
        return result

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        text, kind = node.value, node.tag.removeprefix(_TAG)
        try:
            value = _construct(kind, text)
        except ValueError:
            raise self._refuse(node, path, inline_yaml(text), f"a value of the type !!{kind}") from None
        except KeyError:
            raise self._refuse_tag(node, path) from None
        if not is_finite(value):
            raise self._refuse(node, path, text, "a finite number")
        return value

    def _refuse_tag(self, node: yaml.Node, path: KeyPath) -> ScenarioError:
        tag = node.tag.replace(_TAG, "!!")
        return self._refuse(node, path, f"the tag {tag}", "plain values: no tag builds an object")

    def _refuse(self, node: yaml.Node, path: KeyPath, found: str, allowed: str) -> ScenarioError:
        where = self._place(node.start_mark.line + 1)
        name = f"{'.'.join(map(str, path))}: " if path else ""
        return ScenarioError(f"{where}: {name}found {found}; allowed: {allowed}")


def _construct(kind: str, text: str) -> Any:
    # The value of a scalar; a ValueError where the text is not of that kind, a KeyError where there is no such kind.
    if kind == "str":
        return text
    pattern, _ = _SCALARS[kind]
    if not re.fullmatch(pattern, text):
        raise ValueError(text)
    number = text.replace("_", "")
    if kind == "int":
        return int(number)
    if kind == "float":
        return float(number.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return None if kind == "null" else text.lower() == "true"
