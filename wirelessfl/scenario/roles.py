"""Roles of clients that do not follow the protocol, and what they cannot be combined with."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import Probability, Rule, Section, key

RoleName = Literal["label_flip", "sign_flip", "scaled", "free_rider", "power_cheat", "silent"]
DEFAULT_FACTOR = 10.0
"""Of ``scaled`` and ``power_cheat``."""
_WITH_FACTOR = ("scaled", "power_cheat")


class MaliciousRole(Section, exclusive=(("count", "fraction"),), otherwise={"count": 1}):
    """One behaviour of some clients, the same ones in all rounds."""

    role: RoleName = key(
        "label_flip",
        "label_flip: trains on C - 1 - y in place of the label y of C classes. sign_flip: sends -Δ. scaled: sends "
        "factor times its clipped update. free_rider: sends zeros without training. power_cheat: sends with factor "
        "times its amplitude. silent: never sends.",
    )
    count: Annotated[int, Field(ge=0, le=10**9)] | None = key(
        None, "Clients with this role, drawn from the seed once for the run; 1 where fraction is not given."
    )
    fraction: Probability | None = key(
        None, "Share of the registered clients with this role, rounded to whole clients, instead of count."
    )
    factor: Annotated[float, Field(gt=0, le=1e9)] | None = key(
        None, f"Factor of scaled (on the update) and power_cheat (on the amplitude). null: {DEFAULT_FACTOR:g}."
    )

    def rules(self) -> list[Rule]:
        """A factor belongs to two of the roles."""
        idle = self.factor is not None and self.role not in _WITH_FACTOR
        return [(idle, "factor", f"{self.factor} with the role {self.role}", f"null, or {' | '.join(_WITH_FACTOR)}")]

    def held_by(self, registered: int) -> int:
        """The number of clients with this role, of so many; halves are rounded up."""
        if self.fraction is None:
            return self.count or 0
        return int(self.fraction * registered + 0.5)

    @property
    def strength(self) -> float:
        """The factor, or 1 for a role without one."""
        if self.role not in _WITH_FACTOR:
            return 1.0
        return DEFAULT_FACTOR if self.factor is None else self.factor
