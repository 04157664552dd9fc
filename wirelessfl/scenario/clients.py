"""The clients: their number, selection, availability and faults."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import (
    RUN,
    CoreVariant,
    Count,
    External,
    Positive,
    Probability,
    Reference,
    Section,
    key,
)
from wirelessfl.scenario.family import Family
from wirelessfl.scenario.roles import MaliciousRole
from wirelessfl.scenario.selection import SelectAll, Selection, SelectPoisson, SelectUniform, SizeUnknown


class Clients(Section):
    """The registered population."""

    count: Count = key(50, "Registered clients K.")
    selection: Selection = key(SelectAll(), "Which clients are selected in a round.")
    roles: Annotated[tuple[MaliciousRole, ...], Field(strict=False)] = key(
        (), "Clients that do not follow the protocol: a list of roles, each with a count or a fraction of the clients."
    )

    @property
    def most(self) -> int:
        """The most clients that a round can have: as many as the rule says, else all."""
        return self.count if isinstance(self.selection, SizeUnknown | SelectAll) else self.selection.count

    @property
    def rate(self) -> float | None:
        """Probability that a client is selected in a round; None where the rule does not tell."""
        if isinstance(self.selection, SelectUniform):
            return self.selection.count / self.count
        if isinstance(self.selection, SelectPoisson):
            return self.selection.rate
        return 1.0 if isinstance(self.selection, SelectAll) else None

    @property
    def expected(self) -> int:
        """The clients of a round, on average where their number is random."""
        if isinstance(self.selection, SelectPoisson):
            return max(1, round(self.selection.rate * self.count))
        return self.most


class BernoulliAvailability(CoreVariant, core="wirelessfl.learning.faults:BernoulliAvailability"):
    """Independent in every round."""

    model: Literal["bernoulli"] = key("bernoulli", "Each client is available with the same probability, independently.")
    p: Probability = key(1.0, "Probability that a selected client is available in a round.")


class GilbertElliottAvailability(CoreVariant, core="wirelessfl.learning.faults:GilbertElliott"):
    """Absences that last."""

    model: Literal["gilbert_elliott"] = key(
        "gilbert_elliott",
        "A Markov chain of two states for each client, available or away: absences last several rounds.",
    )
    p_leave: Probability = key(0.1, "Probability, from one round to the next, that a client leaves.")
    p_return: Probability = key(0.4, "Probability, from one round to the next, that a client comes back.")


class RecordedAvailability(CoreVariant, core="wirelessfl.assembly.recordings:recorded_availability", files=("file",)):
    """Presence from a file."""

    model: Literal["recorded"] = key("recorded", "Availability by round and client, from a file.")
    file: str | None = key(
        None, "A trace, or CSV with round, client and available (0 or 1); clients not listed are available."
    )


class ExternalAvailability(
    External,
    family="availability",
    protocol="wirelessfl.learning.faults:AvailabilityModel",
    check="wirelessfl.learning.conformance:check_availability",
    context=RUN,
):
    """A model of the user's own."""

    model: Reference = key(
        ...,
        "Importable availability model, as package.module:Class; noise of a trusted server is then not amplified by "
        "the selection of clients.",
    )


Availability = Annotated[
    BernoulliAvailability | GilbertElliottAvailability | RecordedAvailability | ExternalAvailability,
    Family("model", default="bernoulli"),
]


class ServerRestart(Section):
    """The server goes down with what it has just received."""

    p: Probability = key(
        0.0, "Probability, in a round, that the server loses the updates it has received; the model stays."
    )
    downtime_s: Annotated[float, Field(ge=0, le=1e9)] = key(30.0, "Time until it is back [s].")


class Faults(Section):
    """Faults of clients, links, jammer and server."""

    availability: Availability = key(BernoulliAvailability(), "Which clients are available when a round begins.")
    crash_rate_per_s: Annotated[float, Field(ge=0, le=1e12)] = key(
        0.0, "Rate of crashes while a client computes [1/s]."
    )
    fade_threshold: Annotated[float, Field(ge=0, le=1e30)] = key(
        0.0, "A client stays silent while |ĥ|²/E|ĥ|² is below this."
    )
    battery_j: Positive | None = key(None, "Energy that a client can spend in the run [J]. null: no limit.")
    jammer_failure: Probability = key(
        0.0,
        "Probability, in a round, that the jammer does not jam; it goes unnoticed, and the ledger counts less noise.",
    )
    server_restart: ServerRestart = key(ServerRestart(), "A server that loses what it has received.")
