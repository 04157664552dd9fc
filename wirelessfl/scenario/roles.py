"""Roles of clients that do not follow the protocol, and what they cannot be combined with."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import Probability, Rule, Section, key

RoleName = Literal["label_flip", "sign_flip", "scaled", "free_rider", "power_cheat", "silent"]
# Of roles that have one, where none is given
_FACTORS = {"sign_flip": 1.0, "scaled": 10.0, "power_cheat": 10.0}


class MaliciousRole(Section, exclusive=(("count", "fraction"),), otherwise={"count": 1}):
    """One behaviour of some clients, the same ones in all rounds."""

    role: RoleName = key(
        "label_flip",
        "label_flip: trains on C - 1 - y in place of the label y of C classes. sign_flip: sends -factor Δ. scaled: "
        "sends factor times its clipped update. free_rider: sends zeros without training, and "
        "reports the loss ln C where a selection rule asks for one. power_cheat: sends with "
        "factor times its amplitude. silent: never sends.",
    )
    count: Annotated[int, Field(ge=0, le=10**9)] | None = key(
        None, "Clients with this role, drawn from the seed once for the run; 1 where fraction is not given."
    )
    fraction: Probability | None = key(
        None, "Share of the registered clients with this role, rounded to whole clients, instead of count."
    )
    factor: Annotated[float, Field(gt=0, le=1e9)] | None = key(
        None,
        "Factor of sign_flip and scaled (on the clipped update) and of power_cheat (on the amplitude). null: 1 for "
        "sign_flip, 10 for the others.",
    )

    def rules(self) -> list[Rule]:
        """A factor belongs to some of the roles."""
        idle = self.factor is not None and self.role not in _FACTORS
        return [(idle, "factor", f"{self.factor} with the role {self.role}", f"null, or {' | '.join(_FACTORS)}")]

    def held_by(self, registered: int) -> int:
        """The number of clients with this role, of so many; halves are rounded up."""
        if self.fraction is None:
            return self.count or 0
        return int(self.fraction * registered + 0.5)

    @property
    def strength(self) -> float:
        """The factor, or 1 for a role without one."""
        default = _FACTORS.get(self.role, 1.0)
        return default if self.factor is None else self.factor
