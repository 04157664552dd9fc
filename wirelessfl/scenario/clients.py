"""The clients: how many are registered and who takes part in a round."""

from __future__ import annotations

from typing import Annotated, Literal

from wirelessfl.scenario.base import Count, Family, Section, Share, key


class SelectAll(Section):
    """Everybody takes part in every round."""

    scheme: Literal["all"] = key("all", "Every client takes part in every round.")


class SelectUniform(Section):
    """A fixed number, drawn without replacement."""

    scheme: Literal["uniform"] = key("uniform", "A fixed number of clients, drawn afresh each round.")
    count: Count = key(10, "Clients drawn in each round, without replacement.")


class SelectPoisson(Section):
    """Each client for itself with the same probability."""

    scheme: Literal["poisson"] = key(
        "poisson",
        "Every client takes part with the same probability, independently; a round may be empty, and a server that "
        "adds noise releases it all the same.",
    )
    rate: Share = key(0.2, "Probability that a client is selected in a round.")


Selection = Annotated[SelectAll | SelectUniform | SelectPoisson, Family("scheme", default="all")]


class Clients(Section):
    """The registered population."""

    count: Count = key(50, "Registered clients K.")
    selection: Selection = key(SelectAll(), "Who is asked to take part in a round.")
