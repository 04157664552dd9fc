"""Arrays that members of families return: what conformance checks require of them, and what a run refuses."""

from typing import Any, TypeVar

import numpy as np

from wirelessfl.errors import ScenarioError, require

ROUNDING = 1e-9
"""Relative error that double precision may leave."""

Array = TypeVar("Array")

_KEYS = {
    "availability": "faults.availability.model",
    "clipping": "training.privacy.clipping.name",
    "mechanism": "training.privacy.mechanism",
    "modulation": "uplink.modulation.scheme",
    "path_loss": "channel.pathloss.model",
    "placement": "channel.placement.scheme",
    "receiver": "uplink.receiver.combiner",
}


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
) -> Array:
    """The array that a member of a family returned in a run, once its shape, range and type are known to be right.

    Args:
        family: of the member.
        member: the object that was asked.
        method: by which it was asked.
        values: what it returned.
        shape: that the protocol promises.
        least: the smallest number allowed; None where they are not compared.
        most: the largest.
        kind: a type of NumPy; None where any is taken, a tensor also.

    Raises:
        ScenarioError: it has another shape or type, or values outside the range.
    """
    found = getattr(values, "shape", None)
    asked = f"{_KEYS[family]}: {family} {type(member).__module__}:{type(member).__qualname__}: {method} returned"
    if found != shape:
        what = f"a {type(values).__name__}" if found is None else f"shape {found}"
        raise ScenarioError(f"{asked} {what}; allowed: an array of shape {shape}")
    if kind is not None and not (isinstance(values, np.ndarray) and np.issubdtype(values.dtype, kind)):
        what = f"a {type(values).__name__} of {getattr(values, 'dtype', None)}"
        raise ScenarioError(f"{asked} {what}; allowed: an array of {kind.__name__}")
    if least is not None and not np.all(((numbers := np.asarray(values)) >= least) & (numbers <= most)):
        raise ScenarioError(f"{asked} numbers from {numbers.min()} to {numbers.max()}; allowed: {least:g} to {most:g}")
    return values
