"""The root of a scenario."""

from typing import Any, Self

from pydantic import model_validator
from pydantic.json_schema import GenerateJsonSchema

from wirelessfl.scenario.base import Steps, contradictions
from wirelessfl.scenario.consistency import find_contradictions
from wirelessfl.scenario.sections import Sections


class Scenario(Sections):
    """One simulated system, complete: with the same seed it always gives the same trace."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        found = list(find_contradictions(self))
        if found:
            raise contradictions(found)
        return self


class _SchemaWriter(GenerateJsonSchema):
    """Writer of the JSON Schema, with defaults of schedules as in the file."""

    def encode_default(self, dft: Any) -> Any:
        return super().encode_default(dft.mapping() if isinstance(dft, Steps) else dft)


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of scenario files, for editors."""
    schema = Scenario.model_json_schema(by_alias=True, schema_generator=_SchemaWriter)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "wirelessfl scenario"}
