"""Public schedules: numbers fixed before the run, one a round."""

from dataclasses import dataclass
from typing import Protocol

from typing_extensions import override

from wirelessfl.errors import precondition
from wirelessfl.privacy.clipping.base import require_positive


class Schedule(Protocol):
    """A number for each round."""

    def at(self, round_index: int) -> float:
        """The value in a round, counted from 1."""


@dataclass(frozen=True)
class Constant(Schedule):
    """Constant schedule: the same number in every round.

    Raises:
        ValueError: If it is negative, infinite or not a number.
    """

    value: float

    def __post_init__(self) -> None:
        precondition(
            0 <= self.value < float("inf"), f"a constant schedule must be finite and not negative, found {self.value}"
        )

    @override
    def at(self, round_index: int) -> float:
        return self.value


@dataclass(frozen=True)
class Geometric(Schedule):
    """Geometric schedule from ``first`` by equal factors: first · ratio^((m − 1)/rounds) in round m.

    Source: Du, Li, Feng, Chen, "Dynamic differential-privacy preserving SGD", arXiv:2111.00173, which lets the
    clipping norm decay as C_t = C_0 ρ_c^(−t/T) and the privacy parameter of a step follow μ_t = μ_0 ρ_μ^(t/T), its
    noise multiplier being 1/μ_t. Here t counts communication rounds, T = ``rounds``, so that every client is on the
    same public schedule however often it takes part. After the last round the value at its end is kept.

    Attributes:
        first: The value in round 1.
        ratio: Value after all rounds over the first one: below 1 decays, above 1 grows.
        rounds: Rounds M of the run.

    Raises:
        ValueError: If a value is not positive and finite.
    """

    first: float
    ratio: float
    rounds: int

    def __post_init__(self) -> None:
        require_positive(first=self.first, ratio=self.ratio, rounds=self.rounds)

    @override
    def at(self, round_index: int) -> float:
        return float(self.first * self.ratio ** (min(round_index - 1, self.rounds) / self.rounds))
