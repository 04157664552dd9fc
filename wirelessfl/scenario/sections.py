"""The sections of a scenario, each valid by itself."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import Count, Positive, Says, Section, Share, key
from wirelessfl.scenario.channel import Channel
from wirelessfl.scenario.clients import Clients, Faults
from wirelessfl.scenario.data import Data
from wirelessfl.scenario.downlink import Downlink, ErrorFreeDownlink
from wirelessfl.scenario.geography import SingleCell, Topology
from wirelessfl.scenario.mechanism import PrivacyStatement
from wirelessfl.scenario.model import Mlp, Model
from wirelessfl.scenario.timing import Aggregation, Synchronous, Timing
from wirelessfl.scenario.training import Training
from wirelessfl.scenario.uplink import OverTheAir, Uplink

StoredModels = Annotated[
    str,
    Field(pattern=r"^(none|final|every [1-9][0-9]{0,8})$"),
    Says('none | final | every N, as in "every 10"'),
]


class Evaluate(Section):
    """Measures of the learning beside the training loss: the test set, and the spread of updates."""

    every: Count = key(1, "Rounds between two evaluations; the last round is always evaluated.")
    client_drift: bool = key(
        False,
        "Measure the spread of the clients' updates about their mean in every round (client_drift in the trace); it "
        "takes one more pass over the updates.",
    )


class Trace(Section):
    """Content of the trace beside the numbers of each round."""

    events: bool = key(True, "Store the event log.")
    models: StoredModels = key(
        "final", "Store no model, the final one, or one every N rounds; with it the one before round 1."
    )

    @property
    def model_interval(self) -> int | None:
        """Rounds between two stored models, None if they are not stored along the way."""
        return int(self.models.removeprefix("every ")) if self.models.startswith("every ") else None


class Stop(Section):
    """Conditions that end the run before its last round; the first one reached counts."""

    accuracy: Share | None = key(
        None,
        "Ends the run once the test accuracy reaches this; where test samples belong to clients no accounted ε holds. "
        "null: off.",
    )
    epsilon: Positive | None = key(None, "Ends the run once the accounted ε reaches this. null: off.")
    sim_time_s: Positive | None = key(
        None,
        "Ends the run once the simulated clock reaches this [s]; noise of a trusted server is then not amplified by "
        "the selection of clients. null: off.",
    )
    energy_j: Positive | None = key(
        None,
        "Ends the run once the energy spent reaches this [J]; over the air every update counts with what it may spend "
        "at most (norm τ), as its own energy is private. null: off.",
    )
    diverged: bool = key(
        True,
        "Ends the run once the global model, or its loss on a test set that belongs to no client, is not finite; its "
        "status is then diverged. Updates are private: clipped ones that are not finite count as zeros and end "
        "nothing.",
    )


MOST_THREADS = 1024
"""Threads that a run may be given."""


class Compute(Section):
    """Resources of the host; they change results by float rounding only."""

    threads: Annotated[int, Field(ge=1, le=MOST_THREADS)] | None = key(
        None, "Threads of the host. null: chosen automatically."
    )
    chunk: Count | None = key(
        None,
        "Clients trained together in one block. null: as many as memory allows, or fewer where a measurement on "
        "this machine's CPU found that faster.",
    )
    precision: Literal["fp32", "tf32", "bf16"] = key(
        "fp32", "Number format of matrix products; clipping and noise are fp32."
    )


Name = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"),
    Says("up to 100 letters, digits and . _ -, the first a letter or digit (the name becomes a folder)"),
]


class Sections(Section):
    """All sections of a scenario, of which nothing is known to go together."""

    name: Name = key(..., "Name of the run; results go to results/<name>-<seed>/.")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = key(7, "Seed of every random number of the run.")
    rounds: Annotated[int, Field(ge=1, le=10**6)] = key(40, "Communication rounds M.")
    data: Data = key(Data(), "The data.")
    model: Model = key(Mlp(), "The model that is trained.")
    clients: Clients = key(Clients(), "The registered clients.")
    training: Training = key(Training(), "Local training and aggregation.")
    aggregation: Aggregation = key(Synchronous(), "When the server updates the global model.")
    topology: Topology = key(SingleCell(), "Base stations, and what is behind them.")
    channel: Channel = key(Channel(), "The radio channel.")
    uplink: Uplink = key(OverTheAir(), "How updates reach the server.")
    downlink: Downlink = key(ErrorFreeDownlink(), "How the global model reaches the clients.")
    timing: Timing = key(Timing(), "Simulated time.")
    faults: Faults = key(Faults(), "Absences, crashes, deep fades, batteries, and failures of jammer and server.")
    privacy: PrivacyStatement = key(PrivacyStatement(), "What ε protects, and against whom.")
    evaluate: Evaluate = key(Evaluate(), "Use of the test set.")
    trace: Trace = key(Trace(), "What is recorded.")
    stop: Stop = key(Stop(), "Early end.")
    compute: Compute = key(Compute(), "Host resources.")
