"""Records of a run: its identity, a header, one record per round, and the events of that round.

Records are plain values; they are checked against the schema here and turned into rows by the writer.
"""

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wirelessfl.errors import TraceError, VersionWarning, precondition
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace.schema import GROUPS, MODEL, PRIVACY, ROOT, SECAGG
from wirelessfl.version import package_version

Scalar = str | int | float | bool
ANEW = "run again with --overwrite, or into another folder with --out"
"""Advice on a run that cannot be continued."""


@dataclass(frozen=True)
class RunIdentity:
    """Identity of a run: the attributes that its trace and its checkpoint share.

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
        f"{STREAM_VERSION} (wirelessfl {package_version()}): the same seed gives other numbers here, and the "
        f"run cannot be continued to the same bits; continue it with wirelessfl {recorded}, or {ANEW}",
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
    """Attributes and axes of a trace that are known before the first round.

    Attributes:
        attributes: Root attributes: scenario, seed, created, package_version, torch_version, device, and further ones.
        privacy: Attributes of ``/privacy``.
        model: Attributes of ``/model``: dimension d, and the parameters' names and shapes.
        secagg: Attributes of ``/secagg``; None for a run without, whose trace lacks that group.
        gain_axes: Sizes of the axes of gains (``GAIN_AXES``, and ``JAMMER_AXIS``) that are longer than 1.
        initial: (d,) the model before round 1; None where no models are kept.
    """

    attributes: Mapping[str, Scalar]
    privacy: Mapping[str, Scalar]
    model: Mapping[str, Scalar]
    secagg: Mapping[str, Scalar] | None = None
    gain_axes: Mapping[str, int] = field(default_factory=dict)
    initial: NDArray[np.float32] | None = None

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
        fits = self.initial is None or self.initial.shape == (self.model.get("dimension"),)
        precondition(fits, "trace header: the initial model does not have the dimension of the model")
        all_given = self.given
        for group in (known for known in GROUPS if known.path in all_given):
            given = {"status": "running", **all_given[group.path]}  # the status is the writer's
            missing = [a.name for a in group.attributes if a.required and a.name not in given]
            precondition(not missing, f"trace header: attributes missing in {group.path}: {', '.join(missing)}")
            for name, value in given.items():
                precondition(
                    isinstance(value, str | int | float),
                    f"trace attribute {name}: expected text or a number, found {type(value).__name__}",
                )


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
