"""Code from outside the package that a scenario names, and whether the user wants it to run.

A scenario file that the user names is his own. One that a run left behind, in a trace or beside it, may come from
anybody: what it names is imported only where the user says so.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from wirelessfl.errors import ScenarioError
from wirelessfl.scenario.base import External
from wirelessfl.scenario.scenario import Scenario

TRUSTED_MODULES = "WIRELESSFL_PLUGINS"
"""Environment variable: modules and packages, separated by commas, that any scenario may name."""


def outside_code(scenario: Scenario) -> dict[str, str]:
    """The keys that name code from outside the package, and what they name, as ``package.module:Name``."""
    return {
        key: name for key, name in _external(scenario, ()) if not name.startswith(f"{__package__.partition('.')[0]}.")
    }


def _external(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, External):
        yield ".".join((*path, value.tag)), value.reference
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _external(getattr(value, name), (*path, name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _external(item, (*path, str(index)))


def is_left_by_a_run(path: Path) -> bool:
    """Whether a scenario file lies beside a trace: then a run wrote it, and not the user."""
    return any((place.parent / "trace.h5").exists() for place in (path, path.resolve()))


def refuse_outside_code(scenario: Scenario, origin: str, allow_plugins: bool, typed: Iterable[Any] = ()) -> None:
    """Checks that a scenario which a run left behind names no code that the user has not agreed to run.

    Args:
        scenario: What is to run.
        origin: Where it comes from, for messages.
        allow_plugins: Whether the user agreed to all of it.
        typed: Values that the user gave himself; what is named there is his own.

    Raises:
        ScenarioError: It names other code.
    """
    if allow_plugins:
        return
    own = {text for value in typed for text in texts(value)}
    trusted = [name.strip() for name in os.environ.get(TRUSTED_MODULES, "").split(",") if name.strip()]
    foreign = [
        f"{key}: found {reference}"
        for key, reference in outside_code(scenario).items()
        if reference not in own
        and not any(f"{reference.partition(':')[0]}.".startswith(f"{name}.") for name in trusted)
    ]
    if foreign:
        raise ScenarioError(
            f"{origin}: {'; '.join(foreign)}; allowed: code of this package. Other code that a recorded scenario names "
            "runs only if you say so: read it, then add --allow-plugins (in Python: allow_plugins=True), or list its "
            f"module in the environment variable {TRUSTED_MODULES}"
        )


def texts(value: Any) -> Iterator[str]:
    """Every text in nested mappings, lists and tuples."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts(item)
