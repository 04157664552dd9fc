"""The sections of a scenario, each valid by itself."""

from typing import Annotated

from pydantic import Field

from wirelessfl.scenario.aggregation import Aggregation, Synchronous
from wirelessfl.scenario.base import Says, Section, key
from wirelessfl.scenario.bookkeeping import Compute, Evaluate, Stop, Trace
from wirelessfl.scenario.channel import Channel
from wirelessfl.scenario.clients import Clients
from wirelessfl.scenario.data import Data
from wirelessfl.scenario.faults import Faults
from wirelessfl.scenario.model import Mlp, Model
from wirelessfl.scenario.statement import PrivacyStatement
from wirelessfl.scenario.timing import Timing
from wirelessfl.scenario.topology import SingleCell, Topology
from wirelessfl.scenario.training import Training
from wirelessfl.scenario.uplink import OverTheAir, Uplink

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
    aggregation: Aggregation = key(Synchronous(), "When the server steps the model.")
    topology: Topology = key(SingleCell(), "Base stations, and what is behind them.")
    channel: Channel = key(Channel(), "The radio channel.")
    uplink: Uplink = key(OverTheAir(), "How updates reach the server.")
    timing: Timing = key(Timing(), "Simulated time.")
    faults: Faults = key(Faults(), "What goes wrong.")
    privacy: PrivacyStatement = key(PrivacyStatement(), "For whom and against whom ε is stated.")
    evaluate: Evaluate = key(Evaluate(), "Use of the test set.")
    trace: Trace = key(Trace(), "What is recorded.")
    stop: Stop = key(Stop(), "Early end.")
    compute: Compute = key(Compute(), "Host resources.")
