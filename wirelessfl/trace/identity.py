"""Which run a trace and a checkpoint are of, and whether this version can continue it to the same bits."""

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from wirelessfl.errors import TraceError, VersionWarning, precondition
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.version import package_version

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
