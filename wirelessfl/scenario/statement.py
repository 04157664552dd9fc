"""The privacy statement: for whom, against whom and how ε is stated."""

from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.scenario.base import Section, key


class PrivacyStatement(Section):
    """For whom, against whom and at which δ the run's ε is stated."""

    delta: Annotated[float, Field(gt=0, lt=1)] = key(1.0e-5, "δ of (ε, δ)-differential privacy.")
    unit: Literal["sample", "client"] = key("sample", "What is protected: one sample or one client's whole data.")
    adjacency: Literal["add_remove", "replace"] = key(
        "add_remove", "Neighbours: one unit's contribution taken out (zero-out), or exchanged for another."
    )
    adversary: Literal["observer", "server", "individual"] = key(
        "server", "Who looks: at released models only, at the received signal too, or at every single upload."
    )
    colluding: Annotated[int, Field(ge=0, le=10**9)] = key(0, "Clients that hand their own noise to the adversary.")
