"""The list of what a repeated run need not repeat, each with its reason; whatever is not listed has to be the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from wirelessfl.trace import CLOSING

FREE_DATASETS: Mapping[str, str] = {"/wall_time": "how long the machine took"}
"""Datasets by their path."""

FREE_ATTRIBUTES: Mapping[str, str] = {
    "created": "the date of the run",
    "run_id": "drawn anew for every run",
    "torch_version": "of the machine; a note says where it is another",
    "package_version": "of the machine; a note says where it is another",
}
"""Attributes of the root."""

TOTALS = "known at the end of the whole run, of which a part was repeated"
OUTSIDE = "of rounds that were not asked for"
STOPPED = "what stopped the run is not repeated"
OTHER_LAYOUT = "another version of the package recorded the run"
"""Reasons that hold for some comparisons alone."""

# Texts that another version of the package may write in other words; the repeated run follows what they say, and has
# every number of a release beside its settings.
_RESOLVED = ("scenario", "scenario_digest", "plan", "release_settings")


@dataclass(frozen=True)
class Rules:
    """What may differ between two traces, by their root attributes and by how much of them is compared.

    Attributes:
        other_version: whether different versions of the package recorded them.
        stopped: whether the recorded run failed, and the repeated one was stopped after the same round.
        partial: whether the recorded run went on after the rounds that are compared.
    """

    other_version: bool
    stopped: bool
    partial: bool

    @classmethod
    def between(cls, found: Mapping[str, Any], expected: Mapping[str, Any], *, partial: bool) -> Self:
        """The rules for two traces with these root attributes."""
        stopped = found.get("status") == "failed" and expected.get("status") == "interrupted"
        return cls(found.get("package_version") != expected.get("package_version"), stopped, partial)

    def of_attribute(self, path: str, name: str, *, missing: bool) -> str | None:
        """Why an attribute may differ, or be in one of the traces alone; None where it may not."""
        if path == "/" and name in FREE_ATTRIBUTES and not missing:
            return FREE_ATTRIBUTES[name]
        if path == "/" and name == "status" and self.stopped:
            return STOPPED
        if path == "/" and name in (*CLOSING, "status") and self.partial and not missing:
            return TOTALS
        describes = path != "/" or name in ("long_name", *_RESOLVED)
        return OTHER_LAYOUT if self.other_version and (missing or describes) else None
