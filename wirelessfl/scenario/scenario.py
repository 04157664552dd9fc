"""The root of a scenario."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic.json_schema import GenerateJsonSchema

from wirelessfl.scenario.aggregation import Aggregation, Synchronous
from wirelessfl.scenario.base import Says, Section, Steps, contradictions, key
from wirelessfl.scenario.bookkeeping import Compute, Evaluate, Stop, Trace
from wirelessfl.scenario.channel import Channel
from wirelessfl.scenario.clients import Clients
from wirelessfl.scenario.consistency import find_contradictions
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


class Scenario(Section):
    """One simulated system, complete: with the same seed it always gives the same trace."""

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

    @model_validator(mode="after")
    def _check_together(self) -> Scenario:
        found = list(find_contradictions(self))
        if found:
            raise contradictions(found)
        return self


class _SchemaWriter(GenerateJsonSchema):
    """Writes the defaults of schedules as in the file."""

    def encode_default(self, dft: Any) -> Any:
        return super().encode_default(dft.mapping() if isinstance(dft, Steps) else dft)


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of scenario files, for editors."""
    schema = Scenario.model_json_schema(by_alias=True, schema_generator=_SchemaWriter)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "wirelessfl scenario"}
