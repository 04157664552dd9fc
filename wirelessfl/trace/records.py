"""What a run announces: its identity, a header, one record per round, and the events of that round.

Records are plain values; they are checked against the schema here and turned into rows by the writer.
"""

import hashlib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wirelessfl.errors import TraceError, VersionWarning, precondition
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace.layout import Group, Status, Variable
from wirelessfl.trace.schema import EVENTS, GROUPS, MODEL, PRIVACY, ROOT, SECAGG
from wirelessfl.version import package_version

Scalar = str | int | float | bool
ANEW = "run again with --overwrite, or into another folder with --out"
"""What to do about a run that cannot be continued."""


@dataclass(frozen=True)
class RunIdentity:
    """What a trace and its checkpoint have in common.

    Attributes:
        run_id: drawn at random when the run began.
        scenario_digest: SHA-256 of the resolved scenario as the trace holds it, in hexadecimal.
        stream_version: of the numbers that a seed gives.
        package_version: of the wirelessfl that began the run.
    """

    run_id: str
    scenario_digest: str
    stream_version: int
    package_version: str

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> Self:
        """The identity among the root attributes of a trace, or as a checkpoint holds it.

        Raises:
            KeyError: one is missing.
            TypeError: one has another type.
        """
        texts = [attributes[name] for name in ("run_id", "scenario_digest", "package_version")]
        stream_version = attributes["stream_version"]
        typed = all(isinstance(text, str) for text in texts) and not isinstance(stream_version, str | bytes)
        precondition(typed, "the attributes of a run's identity are three texts and a number", TypeError)
        return cls(texts[0], texts[1], int(stream_version), texts[2])


def scenario_digest(text: str) -> str:
    """SHA-256 of a resolved scenario's text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def continued_identity(path: Path, attributes: Mapping[str, Any]) -> RunIdentity:
    """The identity of a run that is to be continued, where this version can do so to the same bits.

    Warns of another version of the package whose streams are the same.

    Args:
        path: the trace, for messages.
        attributes: its root attributes.

    Raises:
        TraceError: it has no run id, another scenario than it was begun with, or streams of another version.
    """
    recorded = attributes.get("package_version")
    precondition(
        "run_id" in attributes,
        f"{path}: has no run id (it was recorded by wirelessfl {recorded}, before there were any), so that no "
        f"checkpoint can be known as its own; it can be read and reported, but not continued: {ANEW}",
        TraceError,
    )
    try:
        identity = RunIdentity.of(attributes)
        whole = scenario_digest(attributes["scenario"]) == identity.scenario_digest
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TraceError(f"{path}: damaged (attributes of its identity are missing or no text); {ANEW}") from error
    precondition(
        whole,
        f"{path}: the scenario it holds is not the one it was begun with (its digest differs); {ANEW}",
        TraceError,
    )
    precondition(
        identity.stream_version == STREAM_VERSION,
        f"{path}: begun with stream version {identity.stream_version} (wirelessfl {recorded}), here is "
        f"{STREAM_VERSION} (wirelessfl {package_version()}): the same seed gives other numbers, so that the rest "
        f"would be of another run; continue it with wirelessfl {recorded}, or {ANEW}",
        TraceError,
    )
    if recorded != package_version():
        warnings.warn(
            f"{path}: begun with wirelessfl {recorded}, continued with {package_version()}, whose streams are the same",
            VersionWarning,
            stacklevel=2,
        )
    return identity


@dataclass(frozen=True)
class TraceHeader:
    """What is known before the first round.

    Attributes:
        attributes: Root attributes: scenario, seed, created, package_version, torch_version, device, and further ones.
        privacy: Attributes of ``/privacy``.
        model: Attributes of ``/model``: dimension d, and the parameters' names and shapes.
        secagg: Attributes of ``/secagg``; None for a run without, whose trace lacks that group.
        gain_axes: Sizes of the axes of gains (``GAIN_AXES``) that are longer than 1.
    """

    attributes: Mapping[str, Scalar]
    privacy: Mapping[str, Scalar]
    model: Mapping[str, Scalar]
    secagg: Mapping[str, Scalar] | None = None
    gain_axes: Mapping[str, int] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Mapping[str, Scalar]]:
        """Attributes by the path of their group."""
        secagg = {} if self.secagg is None else {SECAGG.path: self.secagg}
        return {ROOT.path: self.attributes, PRIVACY.path: self.privacy, MODEL.path: self.model, **secagg}

    def check(self) -> None:
        """Check against the schema.

        Raises:
            ValueError: A required attribute is missing, or a value is no text or number.
        """
        all_given = self.given
        for group in (known for known in GROUPS if known.path in all_given):
            given = all_given[group.path]
            missing = [a.name for a in group.attributes if a.required and a.name not in given]
            precondition(not missing, f"trace header: attributes missing in {group.path}: {', '.join(missing)}")
            for name, value in given.items():
                words = f"trace attribute {name}: expected text or a number, found {type(value).__name__}"
                precondition(isinstance(value, str | int | float), words)


@dataclass(frozen=True)
class EventBatch:
    """The events of one round, in order of simulated time.

    Attributes:
        time: (n,) simulated time, s.
        node: (n,) client id, ``SERVER_NODE`` or ``JAMMER_NODE``.
        kind: (n,) codes of ``EventKind``.
        bits: (n,) message size, NaN where there is no message.
    """

    time: ArrayLike
    node: ArrayLike
    kind: ArrayLike
    bits: ArrayLike


@dataclass(frozen=True)
class RoundRecord:
    """Everything recorded about one round.

    Attributes:
        round_index: Communication round; consecutive from record to record.
        values: Root variables per round, by name, or over the axes of gains; absent ones become NaN.
        slots: Root variables per round and slot, each (n,) over the n selected clients in ascending ``client_id``, or
            with the axes of gains behind.
        privacy: Variables of ``/privacy`` per round.
        privacy_slots: Variables of ``/privacy`` per round and slot, each (n,).
        secagg: Variables of ``/secagg`` per round; empty for a run without.
        secagg_stages: Variables of ``/secagg`` per round and stage, each (stages,).
        events: Events since the previous record, or None.
        weights: (d,) flat global model to keep, or None.
    """

    round_index: int
    values: Mapping[str, ArrayLike]
    slots: Mapping[str, ArrayLike]
    privacy: Mapping[str, float] = field(default_factory=dict)
    privacy_slots: Mapping[str, ArrayLike] = field(default_factory=dict)
    secagg: Mapping[str, ArrayLike] = field(default_factory=dict)
    secagg_stages: Mapping[str, ArrayLike] = field(default_factory=dict)
    events: EventBatch | None = None
    weights: ArrayLike | None = None


def columns(
    variables: Iterable[Variable], given: Mapping[str, ArrayLike], place: str
) -> dict[str, NDArray[np.generic]]:
    """Columns in the schema's dtypes, all of one length.

    Args:
        variables: Rows of the schema that may be given.
        given: Values by name, each (n,) (or all scalar).
        place: Where they go, for messages.

    Returns:
        One C-contiguous array for each given name, in the order of the schema.

    Raises:
        ValueError: Unknown names, missing required ones, unequal shapes, or values that the dtype cannot hold.
    """
    known = {variable.name: variable for variable in variables}
    unknown = sorted(set(given) - set(known))
    precondition(not unknown, f"{place}: not in the trace schema: {', '.join(unknown)}")
    missing = [name for name, variable in known.items() if variable.required and name not in given]
    precondition(not missing, f"{place}: missing {', '.join(missing)}")
    result = {name: _cast(variable, given[name], place) for name, variable in known.items() if name in given}
    if len({array.shape for array in result.values()}) > 1:
        raise ValueError(f"{place}: unequal shapes {', '.join(f'{name} {a.shape}' for name, a in result.items())}")
    return result


def _cast(variable: Variable, value: ArrayLike, place: str) -> NDArray[np.generic]:
    array, wanted = np.asarray(value), np.dtype(variable.dtype)
    if array.dtype != wanted:
        array = _converted(array, wanted, f"{place}: {variable.name}")
    known = variable.flags is None or _known_codes(variable.flags)[array].all()
    precondition(known, f"{place}: {variable.name} holds a code that the trace schema does not know")
    return np.asarray(array, order="C")


@cache
def _known_codes(flags: type[IntEnum]) -> NDArray[np.bool_]:
    known = np.zeros(256, dtype=np.bool_)
    known[list(flags)] = True
    return known


def _converted(array: NDArray[Any], wanted: np.dtype[np.generic], place: str) -> NDArray[np.generic]:
    kinds, words = ("S", "bytes") if wanted.kind == "S" else ("iufb", "real numbers")
    precondition(array.dtype.kind in kinds, f"{place} must be {words}, found dtype {array.dtype}")
    with np.errstate(invalid="ignore"):
        result = array.astype(wanted)
    exact = wanted.kind not in "iu" or np.array_equal(result, array)
    precondition(exact, f"{place} must hold whole numbers that fit {wanted}")
    return result


def slot_columns(group: Group, given: Mapping[str, ArrayLike], place: str) -> dict[str, NDArray[np.generic]]:
    """The columns over the selected clients, each (n,).

    Raises:
        ValueError: As for ``columns``; also where they are not one-dimensional.
    """
    gains = {variable.name for variable in group.gains}
    result = columns(group.of("round", "slot"), {n: v for n, v in given.items() if n not in gains}, place)
    precondition(all(array.ndim == 1 for array in result.values()), f"{place}: values per slot must be one-dimensional")
    return result


def gain_columns(
    variables: Iterable[Variable], given: Mapping[str, ArrayLike], shape: tuple[int, ...], place: str
) -> dict[str, NDArray[np.generic]]:
    """The columns over the axes of gains, each of one shape: those axes, behind the selected clients or alone.

    Raises:
        ValueError: As for ``columns``; also where they have another shape.
    """
    names = {variable.name for variable in variables}
    result = columns(variables, {name: value for name, value in given.items() if name in names}, place)
    for name, array in result.items():
        precondition(array.shape == shape, f"{place}: {name} must have the shape {shape}, found {array.shape}")
    return result


def check_selected(slots: Mapping[str, NDArray[np.generic]], place: str) -> None:
    """Check that slots hold distinct clients in ascending order, each with a status.

    Raises:
        ValueError: Otherwise.
    """
    ids = np.asarray(slots["client_id"], dtype=np.int64)
    ascending = (ids[:1] >= 0).all() and (ids[1:] > ids[:-1]).all()
    precondition(ascending, f"{place}: client_id must be ascending, distinct and not negative")
    named = (slots["status"] != Status.EMPTY_SLOT).all()
    precondition(named, f"{place}: a selected client cannot have the status of an empty slot")


def event_columns(events: EventBatch, round_index: int, place: str) -> dict[str, NDArray[np.generic]]:
    """The rows of ``/events`` for one round, each (n,).

    Raises:
        ValueError: Unequal lengths, or codes that ``EventKind`` does not know.
    """
    time = np.asarray(events.time)
    given = {"time": time, "node": events.node, "kind": events.kind, "bits": events.bits}
    result = columns(EVENTS.variables, {**given, "round": np.full(time.shape, round_index)}, place)
    precondition(time.ndim == 1, f"{place}: events must be one-dimensional")
    return result
