"""What the ``meta`` device cannot show of a program that is to run on a GPU, found in its text.

A number that Python makes a tensor of on its way to a GPU is copied there, and a value that Python reads is waited for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

MADE_OF_NUMBERS = {"tensor", "as_tensor", "asarray", "new_tensor", "from_numpy", "cuda"}
READ = {"item", "tolist", "cpu", "numpy", "equal", "synchronize"}
SHAPED_BY_VALUES = {"nonzero", "unique", "unique_consecutive", "masked_select", "repeat_interleave", "argwhere"}
CONVERSIONS = {"bool", "float", "int"}
OF_NUMPY = {"np", "numpy"}


class Finding(NamedTuple):
    """One construct: in which function or class, and which."""

    place: str
    what: str


def findings(source: str) -> list[Finding]:
    """All suspicious constructs of a module, in their order."""
    return list(_within(ast.parse(source), ""))


def _within(node: ast.AST, place: str) -> Iterator[Finding]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        place = f"{place}.{node.name}" if place else node.name
    what = _suspicion(node)
    if what is not None:
        yield Finding(place, what)
    for child in ast.iter_child_nodes(node):
        yield from _within(child, place)


def _suspicion(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner))) if owner in OF_NUMPY:
            return None
        case ast.Call(func=ast.Attribute(attr=name)) if name in MADE_OF_NUMBERS | READ | SHAPED_BY_VALUES:
            return name
        case ast.Call(func=ast.Name(id=name), args=[argument, *_]) if name in CONVERSIONS:
            return None if isinstance(argument, ast.Constant) else name
        case ast.Subscript(value=ast.Name(id="Callable")):  # a type
            return None
        case ast.Subscript(slice=index) if any(_is_list(part) for part in _parts(index)):
            return "index by a list"
        case ast.Assign(targets=[ast.Subscript()], value=value) if _is_number(value):
            return "number into a tensor"
        case ast.AugAssign(target=ast.Subscript(), value=value) if _is_number(value):
            return "number into a tensor"
    return None


def _parts(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _is_list(node: ast.expr) -> bool:
    return isinstance(node, ast.List | ast.ListComp)


def _is_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int | float)
