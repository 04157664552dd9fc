"""The outcome of a comparison of two traces: counts, what was left out and why, and the first difference."""

from dataclasses import asdict, dataclass, field
from typing import Any


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
    """Something that was not compared.

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
    """What came of a comparison.

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
        """Note that something was not compared."""
        self.left_out.append(LeftOut(name, numbers, reason))
