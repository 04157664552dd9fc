"""A comparison of two traces: what may differ, each with its reason, and the outcome.

Whatever a repeated run need not repeat is listed here; all the rest has to be the same.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from wirelessfl.trace import CLOSING

FREE_DATASETS: Mapping[str, str] = {"/wall_time": "how long the computation took"}
"""Datasets by their path."""

FREE_ATTRIBUTES: Mapping[str, str] = {
    "created": "the date of the run",
    "run_id": "drawn anew for every run",
    "torch_version": "that of this machine; a note says where it differs",
    "package_version": "that of this machine; a note says where it differs",
    "processor": "that of this machine; a note says where it differs",
    "kernels": "those of this machine; a note says where they differ",
    "data_folders": "those of this machine; what was found there is compared by its fingerprint",
}
"""Attributes of the root."""

TOTALS = "known at the end of the whole run, of which a part was repeated"
OUTSIDE = "of rounds that were not asked for"
STOPPED = "what stopped the run is not repeated"
OTHER_PACKAGES = "the packages that code from outside uses are those of this machine; a note says where one differs"
WITHOUT_SOURCES = "the trace keeps none: an earlier version recorded it"
OTHER_LAYOUT = "another version of the package recorded the run"
"""Reasons that hold for some comparisons alone."""

_SOURCES = ("sources", "sources_digest")
# Texts that another version of the package may write in other words; the repeated run follows what they say, and has
# every number of a release beside its settings.
_RESOLVED = ("scenario", "scenario_digest", "plan", "release_settings")


@dataclass(frozen=True)
class Rules:
    """Differences that two traces may have, by their root attributes and by how much of them is compared.

    Attributes:
        other_version: whether different versions of the package recorded them.
        stopped: whether the recorded run failed, and the repeated one was stopped after the same round.
        partial: whether the recorded run went on after the rounds that are compared.
        other_packages: whether code from outside is the same, and the installed packages that it uses are others.
        without_sources: whether the recorded trace keeps none.
    """

    other_version: bool
    stopped: bool
    partial: bool
    other_packages: bool
    without_sources: bool

    def of_attribute(self, path: str, name: str, *, missing: bool) -> str | None:
        """Why an attribute may differ, or be in one of the traces alone; None where it may not."""
        if path == "/" and name in FREE_ATTRIBUTES and (not missing or name == "data_folders"):
            return FREE_ATTRIBUTES[name]
        if path == "/" and name in _SOURCES and (self.other_packages or self.without_sources):
            return OTHER_PACKAGES if self.other_packages else WITHOUT_SOURCES
        if path == "/" and name == "status" and self.stopped:
            return STOPPED
        if path == "/" and name in (*CLOSING, "status") and self.partial and not missing:
            return TOTALS
        describes = path != "/" or name in ("long_name", *_RESOLVED)
        return OTHER_LAYOUT if self.other_version and (missing or describes) else None


@dataclass(frozen=True)
class Difference:
    """A recorded value that the repeated run does not give.

    Attributes:
        variable: its name, with its group where that is not the root.
        place: round, client or event that it belongs to, in words.
        found: what the trace holds.
        expected: what the repeated run gives.
    """

    variable: str
    place: str
    found: Any
    expected: Any

    def __str__(self) -> str:
        """In words, with every digit."""
        return f"{self.variable}{self.place}: found {self.found!r} in the trace, expected {self.expected!r}"


@dataclass(frozen=True)
class LeftOut:
    """Part of a trace that was not compared.

    Attributes:
        name: a dataset or an attribute.
        numbers: how many numbers of the dataset; 0 for an attribute.
        reason: why it may differ.
    """

    name: str
    numbers: int
    reason: str


@dataclass
class Comparison:
    """Outcome of a comparison.

    Attributes:
        numbers: how many numbers were compared, in datasets.
        of_numbers: how many the recorded trace holds.
        attributes: how many attributes were compared.
        of_attributes: how many the recorded trace holds.
        left_out: what was not compared, with the reason.
        notes: what the user should know beside that.
        difference: the first in the order of rounds, then of the file; None where all are equal.
    """

    numbers: int = 0
    of_numbers: int = 0
    attributes: int = 0
    of_attributes: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    difference: Difference | None = None

    def as_mapping(self) -> dict[str, Any]:
        """Counts, what was left out and the notes, for JSON."""
        return {
            "numbers": self.numbers,
            "of_numbers": self.of_numbers,
            "attributes": self.attributes,
            "of_attributes": self.of_attributes,
            "not_compared": [asdict(one) for one in self.left_out],
            "notes": list(self.notes),
        }

    def leave_out(self, name: str, reason: str, numbers: int = 0) -> None:
        """Entry for what was not compared."""
        self.left_out.append(LeftOut(name, numbers, reason))
