"""Arrays that members of families return: what conformance checks require of them, and what a run refuses."""

from typing import Any, TypeVar

import numpy as np

from wirelessfl.errors import ScenarioError, defined_at, instance_of, require

ROUNDING = 1e-9
"""Relative error that double precision may leave."""

Array = TypeVar("Array")

Thing = TypeVar("Thing")

KEYS = {
    "algorithm": "training.algorithm.name",
    "availability": "faults.availability.model",
    "clipping": "training.privacy.clipping.name",
    "codec": "uplink.codec.name",
    "correlation": "channel.correlation.model",
    "fading": "channel.fading.model",
    "mechanism": "training.privacy.mechanism",
    "modulation": "uplink.modulation.scheme",
    "optimizer": "training.optimizer.name",
    "path_loss": "channel.pathloss.model",
    "placement": "channel.placement.scheme",
    "power_control": "uplink.power_control.policy",
    "receiver": "uplink.receiver.combiner",
    "robust": "training.robust.rule",
    "selection": "clients.selection.scheme",
    "server_optimizer": "training.server_optimizer.name",
}
"""Key of each family whose members return something in a run."""
_TYPES = {"bool": "truth values", "bool_": "truth values", "number": "complex"}  # real gains are taken as well


def check_array(source: str, values: Any, shape: tuple[int, ...], kind: type[np.generic] = np.floating) -> None:
    """Check of an array that a member of a family returned: its shape, its type, and that its numbers are finite.

    Args:
        source: the method or field, for the message.
        values: what it returned.
        shape: of the array.
        kind: a type of NumPy, or an abstract one such as ``np.complexfloating``.

    Raises:
        CheckFailed: with what was promised and what was found.
    """
    found = getattr(values, "shape", None)
    require(found == shape, f"{source} has shape {found}, not {shape}")
    require(np.issubdtype(values.dtype, kind), f"{source} holds {values.dtype}, not {kind.__name__}")
    require(bool(np.all(np.isfinite(values))), f"{source} is not finite")


def returned(
    family: str,
    member: object,
    method: str,
    values: Array,
    shape: tuple[int, ...],
    least: float | None = None,
    most: float = np.inf,
    kind: type[np.generic] | None = None,
    *,
    finite: bool = False,
) -> Array:
    """The array that a member of a family returned in a run, once its shape, range and type are known to be right.

    Args:
        family: of the member.
        member: the object that was asked.
        method: by which it was asked; behind a blank may follow which of its results.
        values: what it returned.
        shape: that the protocol promises.
        least: the smallest number allowed; None where they are not compared.
        most: the largest.
        kind: a type of NumPy; None where any is taken, a tensor also.
        finite: whether numbers that are not finite are refused.

    Raises:
        ScenarioError: it has another shape or type, or values outside the range.
    """
    shaped = getattr(values, "shape", None) == shape
    typed = kind is None or (isinstance(values, np.ndarray) and np.issubdtype(values.dtype, kind))
    if not shaped or not typed:
        words = "" if kind is None else f" {_TYPES.get(kind.__name__, kind.__name__)}"
        raise misfit(family, member, method, _form(values, typed), f"{tuple(shape)}{words}")
    if least is not None and not np.all(((numbers := np.asarray(values)) >= least) & (numbers <= most)):
        found = f"numbers from {numbers.min()} to {numbers.max()}"
        raise misfit(family, member, method, found, f"numbers from {least:g} to {most:g}")
    if finite and not np.isfinite(values).all():  # type: ignore[call-overload]
        raise misfit(family, member, method, "numbers that are not finite", "finite ones")
    return values


def given(family: str, member: object, method: str, value: object, kind: type[Thing]) -> Thing:
    """The object that a member of a family returned in a run, once its type is known to be right.

    Raises:
        ScenarioError: it is of another.
    """
    if not isinstance(value, kind):
        raise misfit(family, member, method, instance_of(type(value)), instance_of(kind))
    return value


def pair(family: str, member: object, method: str, value: object) -> tuple[Any, Any]:
    """The two results of a method that returns two.

    Raises:
        ScenarioError: it returned something else.
    """
    if not isinstance(value, tuple) or len(value) != 2:
        found = f"a tuple of {len(value)}" if isinstance(value, tuple) else instance_of(type(value))
        raise misfit(family, member, method, found, "a tuple of 2")
    return value


def misfit(family: str, member: object, method: str, found: str, needed: str) -> ScenarioError:
    """The refusal of what a method returned, with file and line of the method."""
    said = f"{type(member).__module__}:{type(member).__qualname__}.{method} returned {found}, needs {needed}"
    return ScenarioError(f"{KEYS[family]}: {said}{method_at(member, method.partition(' ')[0])}")


def method_at(member: object, method: str) -> str:
    """Where a method of a member is defined, as `` (file:line)``; nothing where Python does not know."""
    return defined_at(getattr(type(member), method, None))


def _form(values: object, typed: bool) -> str:
    shape = getattr(values, "shape", None)
    if shape is None:
        return instance_of(type(values))
    if typed:
        return f"{tuple(shape)}"
    return f"{tuple(shape)} {values.dtype}" if isinstance(values, np.ndarray) else instance_of(type(values))
