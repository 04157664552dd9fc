"""What goes wrong: absence, crashes, deep fades, empty batteries, a jammer that fails, a server that restarts."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wirelessfl.scenario.base import (
    RUN,
    CoreVariant,
    External,
    Family,
    Positive,
    Probability,
    Reference,
    Section,
    key,
)


class BernoulliAvailability(CoreVariant, core="wirelessfl.learning.faults:BernoulliAvailability"):
    """Independent in every round."""

    model: Literal["bernoulli"] = key("bernoulli", "Each client is there with the same probability, independently.")
    p: Probability = key(1.0, "Probability that a selected client is available in a round.")


class GilbertElliottAvailability(CoreVariant, core="wirelessfl.learning.faults:GilbertElliott"):
    """Absences that last."""

    model: Literal["gilbert_elliott"] = key(
        "gilbert_elliott", "A chain of two states for each client, there or gone: absences last for some rounds."
    )
    p_leave: Probability = key(0.1, "Probability, from one round to the next, that a client leaves.")
    p_return: Probability = key(0.4, "Probability, from one round to the next, that a client comes back.")


class RecordedAvailability(CoreVariant, core="wirelessfl.assembly.recordings:recorded_availability"):
    """Presence from a file."""

    model: Literal["recorded"] = key("recorded", "Who is there in which round, from a file.")
    file: str | None = key(None, "A trace, or CSV with round, client and available (0 or 1); others are there.")


class ExternalAvailability(External):
    """A model of the user's own."""

    family: ClassVar[str] = "availability"
    protocol: ClassVar[str] = "wirelessfl.learning.faults:AvailabilityModel"
    check: ClassVar[str] = "wirelessfl.learning.conformance:check_availability"
    context: ClassVar[str | None] = RUN

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
    """What goes wrong."""

    availability: Availability = key(BernoulliAvailability(), "Who is there when a round begins.")
    crash_rate_per_s: Annotated[float, Field(ge=0, le=1e12)] = key(
        0.0, "Hazard of a crash while a client computes [1/s]."
    )
    fade_threshold: Annotated[float, Field(ge=0, le=1e30)] = key(
        0.0, "A client stays silent while |ĥ|²/E|ĥ|² is below this."
    )
    battery_j: Positive | None = key(None, "Energy that a client can spend in the run [J]. null: no limit.")
    jammer_failure: Probability = key(
        0.0, "Probability, in a round, that the jammer does not jam; nobody notices, and the ledger has less noise."
    )
    server_restart: ServerRestart = key(ServerRestart(), "A server that loses what it has received.")
