"""The clients: how many are registered and who takes part in a round."""

from typing import Annotated, ClassVar, Literal

from wirelessfl.scenario.base import CoreVariant, Count, External, Family, Reference, Section, Share, key


class SelectAll(CoreVariant, core="wirelessfl.learning.selection:SelectAll"):
    """All registered clients in every round."""

    scheme: Literal["all"] = key("all", "Every client takes part in every round.")


class SelectUniform(CoreVariant, core="wirelessfl.learning.selection:SelectUniform", core_names={"count": None}):
    """A fixed number, drawn without replacement."""

    scheme: Literal["uniform"] = key("uniform", "A fixed number of clients, drawn afresh each round.")
    count: Count = key(10, "Clients drawn in each round, without replacement.")


class SelectPoisson(CoreVariant, core="wirelessfl.learning.selection:SelectPoisson"):
    """Each client for itself with the same probability."""

    scheme: Literal["poisson"] = key(
        "poisson",
        "Every client takes part with the same probability, independently; a round may be empty, and a server that "
        "adds noise releases it all the same.",
    )
    rate: Share = key(0.2, "Probability that a client is selected in a round.")


class ExternalSelection(External):
    """A rule of the user's own."""

    family: ClassVar[str] = "selection"
    protocol: ClassVar[str] = "wirelessfl.learning.selection:Selection"
    check: ClassVar[str] = "wirelessfl.learning.conformance:check_selection"

    scheme: Reference = key(
        ..., "Importable rule, as package.module:Class; one that reads the clients' losses makes every ε infinite."
    )
    count: Count = key(10, "The most clients that it may select in a round.")


Selection = Annotated[SelectAll | SelectUniform | SelectPoisson | ExternalSelection, Family("scheme", default="all")]


class Clients(Section):
    """The registered population."""

    count: Count = key(50, "Registered clients K.")
    selection: Selection = key(SelectAll(), "Who is asked to take part in a round.")

    @property
    def most(self) -> int:
        """The most clients that a round can have."""
        return self.selection.count if isinstance(self.selection, SelectUniform | ExternalSelection) else self.count

    @property
    def expected(self) -> int:
        """The clients of a round, on average where their number is drawn: no matter of the seed."""
        if isinstance(self.selection, SelectPoisson):
            return max(1, round(self.selection.rate * self.count))
        return self.most
