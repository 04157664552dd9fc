"""Rules for the selection of the clients of a round."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import (
    CoreVariant,
    Count,
    External,
    Probability,
    Reference,
    Share,
    key,
)
from wirelessfl.scenario.family import Family


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


LossNoiseStd = Annotated[
    Annotated[float, Field(gt=0, le=1e9)] | None,
    Field(
        description="Standard deviation of the Gaussian noise on each reported loss; its cost is part of the accounted "
        "ε. null: none, and the accounted ε is infinite."
    ),
]
LossClip = Annotated[
    float,
    Field(
        gt=0,
        le=1e9,
        description="With noise: bound on the loss of each sample, or on a mean training loss that is reported.",
    ),
]


class SelectPowerOfChoice(
    CoreVariant, core="wirelessfl.learning.selection:SelectPowerOfChoice", core_names={"count": None}
):
    """Of some candidates those with the largest losses."""

    scheme: Literal["power_of_choice"] = key(
        "power_of_choice",
        "Candidates are drawn in proportion to their samples; those of them with the largest local losses take part.",
    )
    count: Count = key(10, "Clients of each round.")
    candidates: Count = key(20, "Candidates d of each round, drawn without replacement.")
    loss: Literal["fresh", "minibatch", "last"] = key(
        "fresh",
        "fresh: candidates are sent the model and report its mean loss on all their samples. minibatch: on "
        "training.batch_size of them. last: nobody is asked; what counts is the last local training loss, clients "
        "without one first.",
    )
    loss_noise_std: LossNoiseStd = None
    loss_clip: LossClip = 5.0


class SelectOort(CoreVariant, core="wirelessfl.learning.selection:SelectOort", core_names={"count": None}):
    """By the utility of losses and the speed of clients, with exploration."""

    scheme: Literal["oort"] = key(
        "oort", "By n √(mean ℓ²), discounted for slow clients, raised for stale ones; a share explores new clients."
    )
    count: Count = key(10, "Clients of each round.")
    alpha: Annotated[float, Field(ge=0, le=100)] = key(2.0, "Exponent α of the penalty (T/t_i)^α of slow clients.")
    exploration: Probability = key(
        0.9, "Share of clients never heard in round 1; it falls by 2 % a round, to 0.2 at least."
    )
    cutoff: Share = key(0.95, "Share of the utility of the last one wanted with which a client is admitted.")
    loss_noise_std: LossNoiseStd = None
    loss_clip: LossClip = 5.0


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
    | SelectPowerOfChoice
    | SelectOort
    | ExternalSelection,
    Family("scheme", default="all"),
]


SizeUnknown = SelectPoisson | SelectChannelThreshold
"""Rules by which the number of clients of a round is random."""

ByChannel = SelectBestChannel | SelectProportionalFair | SelectChannelThreshold
"""Rules that follow the gains of channels."""
