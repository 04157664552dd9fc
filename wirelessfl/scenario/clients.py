"""The clients: their number, selection, availability and faults."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import (
    RUN,
    CoreVariant,
    Count,
    External,
    Family,
    Positive,
    Probability,
    Reference,
    Section,
    Share,
    key,
)
from wirelessfl.scenario.roles import MaliciousRole


class SelectAll(CoreVariant, core="wirelessfl.learning.selection:SelectAll"):
    """All registered clients in every round."""

    scheme: Literal["all"] = key("all", "Every client takes part in every round.")


class SelectUniform(CoreVariant, core="wirelessfl.learning.selection:SelectUniform", core_names={"count": None}):
    """A fixed number, drawn without replacement."""

    scheme: Literal["uniform"] = key("uniform", "A fixed number of clients, drawn afresh each round.")
    count: Count = key(10, "Clients drawn in each round, without replacement.")


class SelectRoundRobin(CoreVariant, core="wirelessfl.learning.selection:SelectRoundRobin", core_names={"count": None}):
    """A fixed number in turn, so that all take part equally often."""

    scheme: Literal["round_robin"] = key(
        "round_robin",
        "A fixed number of clients in turn, in cyclic order of their numbers: all take part equally often, to within "
        "one round.",
    )
    count: Count = key(10, "Clients of each round.")


class SelectPoisson(CoreVariant, core="wirelessfl.learning.selection:SelectPoisson"):
    """Each client independently with the same probability."""

    scheme: Literal["poisson"] = key(
        "poisson",
        "Every client takes part with the same probability, independently; a round may be empty, and a server that "
        "adds noise releases it all the same.",
    )
    rate: Share = key(0.2, "Probability that a client is selected in a round.")


Csi = Annotated[
    Literal["pilots", "last"],
    Field(
        description="Gains that the rule knows. pilots: all registered clients send pilots at the beginning of each "
        "round; where channels change within a round, the transmission has another gain. last: those of each client's "
        "last transmission; clients without one come first."
    ),
]


class SelectBestChannel(
    CoreVariant, core="wirelessfl.learning.selection:SelectBestChannel", core_names={"count": None}
):
    """A fixed number with the best channels."""

    scheme: Literal["best_channel"] = key(
        "best_channel", "The clients with the largest |ĥ|², path gain included, whoever they are."
    )
    count: Count = key(10, "Clients of each round.")
    csi: Csi = "pilots"


class SelectProportionalFair(
    CoreVariant, core="wirelessfl.learning.selection:SelectProportionalFair", core_names={"count": None}
):
    """A fixed number with the best rates against their own averages."""

    scheme: Literal["proportional_fair"] = key(
        "proportional_fair",
        "The clients with the largest log2(1 + SNR |ĥ|²/2) over their average rate of the rounds in which they were "
        "heard.",
    )
    count: Count = key(10, "Clients of each round.")
    window: Annotated[float, Field(ge=1, le=1e9)] = key(20.0, "Time constant t_c of the average rates [rounds].")
    csi: Csi = "pilots"


class SelectChannelThreshold(CoreVariant, core="wirelessfl.learning.selection:SelectChannelThreshold"):
    """All clients with a channel that is good enough."""

    scheme: Literal["channel_threshold"] = key(
        "channel_threshold", "All clients whose |ĥ|²/E|ĥ|² is at least the threshold; a round may be empty."
    )
    threshold: Annotated[float, Field(ge=0, le=1e30)] = key(1.0, "Least |ĥ|²/E|ĥ|² of a client that is selected.")
    csi: Csi = "pilots"


class SelectOldest(CoreVariant, core="wirelessfl.learning.selection:SelectOldest", core_names={"count": None}):
    """A fixed number that has not been heard for longest."""

    scheme: Literal["age"] = key(
        "age", "The clients with the largest age of information, the rounds since the server last heard them."
    )
    count: Count = key(10, "Clients of each round.")


class ExternalSelection(
    External,
    family="selection",
    protocol="wirelessfl.learning.selection:Selection",
    check="wirelessfl.learning.conformance:check_selection",
    context="wirelessfl.assembly.selection:SelectionSetting",
):
    """A rule of the user's own."""

    scheme: Reference = key(
        ..., "Importable rule, as package.module:Class; one that reads the clients' losses makes every ε infinite."
    )
    count: Count = key(10, "Maximum number of clients that it may select in a round.")


Selection = Annotated[
    SelectAll
    | SelectUniform
    | SelectRoundRobin
    | SelectPoisson
    | SelectBestChannel
    | SelectProportionalFair
    | SelectChannelThreshold
    | SelectOldest
    | ExternalSelection,
    Family("scheme", default="all"),
]


SizeUnknown = SelectPoisson | SelectChannelThreshold
"""Rules by which the number of clients of a round is random."""

ByChannel = SelectBestChannel | SelectProportionalFair | SelectChannelThreshold
"""Rules that follow the gains of channels."""


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
