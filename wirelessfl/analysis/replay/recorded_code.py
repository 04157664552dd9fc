"""Code from outside that a recorded run called: as it is here where that is the same, else from the trace."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wirelessfl.errors import CheckFailed, ScenarioError
from wirelessfl.plugins import Sources, importing_from, sources_of, top_of
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.scenario import outside_code
from wirelessfl.trace import sources_among


@contextmanager
def recorded_code(
    path: Path, attributes: Mapping[str, Any], scenario: Scenario, *, allow_plugins: bool, own: Collection[str] = ()
) -> Iterator[list[str]]:
    """Context in which code from outside is what the run was recorded with; gives notes on where it comes from.

    Where the files here are others, or missing, the texts of the trace are imported. They may come from anybody, so
    that this needs leave of its own: to trust a module by name is to trust the one that is installed here.

    Args:
        path: of the trace, for messages.
        attributes: its root attributes.
        scenario: that it holds.
        allow_plugins: whether the user agreed to run what the trace holds.
        own: what the user names beside the recorded scenario, as ``package.module:Name``; it is taken from here, and so
            is then all that lies in the same package.

    Raises:
        CheckFailed: the files here are others, and those of the trace may not run.
        TraceError: the trace's are damaged, or have the names of libraries here.
    """
    names = outside_code(scenario).values()
    recorded = sources_among(path, attributes)
    if not names or recorded is None:
        yield ["the trace holds no sources of code from outside: it is run as it is here"] if names else []
        return
    try:
        here = sources_of(names)
        different = recorded.differences(here)
    except ScenarioError as edited:  # loaded before, and edited since
        here, different = Sources({}, {}), [str(edited)]
    if here.files == recorded.files or recorded.unknown:
        yield different
        return
    words = f"code from outside is not here as it was recorded: {', '.join(different)}"
    if {top_of(name) for name in own} & recorded.tops:
        yield [f"{words}; it is run as it is here, for --set names some of it, and the difference comes from that too"]
    elif allow_plugins:
        with importing_from(recorded, str(path)):
            yield [f"{words}; what runs are the sources of the trace, SHA-256 {recorded.digest[:12]}"]
    else:
        raise CheckFailed(
            f"{path}: {words}. The trace holds the recorded sources; read them, then run them with --allow-plugins"
        )
