"""wirelessfl: a discrete-event simulator of federated learning over a radio network, honest about privacy.

>>> import wirelessfl as wfl
>>> scenario = wfl.load_scenario("quickstart", overrides={"rounds": 5})
>>> result = wfl.simulate(scenario, out="results/x")
>>> trace = wfl.open_trace(result.trace)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirelessfl.api import Result, load_scenario, open_trace, simulate
    from wirelessfl.study import Study, load_study, open_study, run_study
    from wirelessfl.trace import by_client

__all__ = [
    "Result",
    "Study",
    "by_client",
    "load_scenario",
    "load_study",
    "open_study",
    "open_trace",
    "run_study",
    "simulate",
]

_HOMES = {
    "Result": "wirelessfl.api",
    "Study": "wirelessfl.study",
    "by_client": "wirelessfl.trace",
    "load_scenario": "wirelessfl.api",
    "load_study": "wirelessfl.study",
    "open_study": "wirelessfl.study",
    "open_trace": "wirelessfl.api",
    "run_study": "wirelessfl.study",
    "simulate": "wirelessfl.api",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that ``import wirelessfl`` and the command line start quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module 'wirelessfl' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
