"""Code from outside that the runs of a study call, in its workers."""

from collections.abc import Mapping

from wirelessfl.errors import ScenarioError, precondition
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.scenario import outside_sources


def refuse_other_sources(scenario: Scenario, expected: Mapping[str, str]) -> None:
    """Check that code from outside is, in a worker, what the study began with.

    Args:
        scenario: of a run.
        expected: digests of files by path, and versions of packages by name.

    Raises:
        ScenarioError: naming the files that differ.
    """
    sources = outside_sources(scenario)
    here = {} if sources is None else sources.digests
    other = sorted(name for name in {*here, *expected} if here.get(name) != expected.get(name))
    precondition(
        not other,
        f"{', '.join(other)}: not the version with which the study began; was it edited, or is it another copy on "
        "this worker? "
        "`study --resume` computes the missing runs with the present sources",
        ScenarioError,
    )
