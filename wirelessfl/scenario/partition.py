"""Divisions of the training samples among the clients."""

from typing import Annotated, Literal

from wirelessfl.scenario.base import CoreVariant, Count, External, NonNegative, Positive, Reference, key
from wirelessfl.scenario.family import Family


class IidPartition(CoreVariant, core="wirelessfl.learning.partition:iid_partition"):
    """Random partition into equal shares."""

    scheme: Literal["iid"] = key("iid", "Random partition into equal shares.")


class ClassesPartition(CoreVariant, core="wirelessfl.learning.partition:classes_partition"):
    """Every client holds a few classes only."""

    scheme: Literal["classes"] = key("classes", "Every client holds samples of a few classes only.")
    classes_per_client: Count = key(5, "Number of classes that a client holds.")


class DirichletPartition(CoreVariant, core="wirelessfl.learning.partition:dirichlet_partition"):
    """Label shares drawn from a Dirichlet law (Hsu et al. 2019)."""

    scheme: Literal["dirichlet"] = key("dirichlet", "Label shares of the clients drawn from a Dirichlet law.")
    alpha: Positive = key(
        0.5, "Concentration: a small value gives each client few labels, a large one is close to iid."
    )


class SizesPartition(CoreVariant, core="wirelessfl.learning.partition:power_law_partition"):
    """iid labels, unequal sizes after a power law."""

    scheme: Literal["sizes"] = key("sizes", "iid labels, and shares whose sizes follow a power law.")
    exponent: NonNegative = key(
        1.0, "The client of rank r gets a share proportional to r^-exponent; 0 means equal shares."
    )


class NaturalPartition(CoreVariant, core="wirelessfl.learning.partition:natural_partition"):
    """The division that the data come with."""

    scheme: Literal["natural"] = key(
        "natural",
        "As the data come: generated on demand per client (synthetic set), or by the owners that your own set names.",
    )


class ExternalPartition(
    External,
    family="partition",
    protocol="wirelessfl.learning.partition:PartitionRule",
    check="wirelessfl.learning.local_conformance:check_partition",
):
    """A division of the user's own."""

    scheme: Reference = key(..., "Importable rule that divides the samples, as package.module:Class.")


Partition = Annotated[
    IidPartition | ClassesPartition | DirichletPartition | SizesPartition | NaturalPartition | ExternalPartition,
    Family("scheme", default="classes"),
]
