"""wirelessfl: a discrete-event simulator of federated learning over a radio network, with an account of its privacy.

>>> import wirelessfl as wfl
>>> result = wfl.simulate("quickstart", out="results/x", rounds=5, uplink__snr_db=10)
>>> trace = wfl.open_trace(result.trace)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wirelessfl.analysis.audit.audit import Audit, audit_scenario
    from wirelessfl.analysis.compare import RunComparison, compare
    from wirelessfl.analysis.trained import trained_model
    from wirelessfl.api import (
        Plan,
        Result,
        Scenario,
        load_population,
        load_scenario,
        make_plan,
        open_run,
        open_trace,
        simulate,
    )
    from wirelessfl.channels import ChannelRecord, read_channels, write_channels
    from wirelessfl.cli.study_table import study_progress
    from wirelessfl.study import Study, load_study, open_study, run_study
    from wirelessfl.summary import epsilon_text, to_json
    from wirelessfl.summary.style import FigureOptions
    from wirelessfl.trace import by_client, read_group

    __version__: str

__all__ = [
    "Audit",
    "ChannelRecord",
    "FigureOptions",
    "Plan",
    "Result",
    "RunComparison",
    "Scenario",
    "Study",
    "__version__",
    "audit_scenario",
    "by_client",
    "compare",
    "epsilon_text",
    "load_population",
    "load_scenario",
    "load_study",
    "make_plan",
    "open_run",
    "open_study",
    "open_trace",
    "read_channels",
    "read_group",
    "run_study",
    "simulate",
    "study_progress",
    "to_json",
    "trained_model",
    "write_channels",
]

_HOMES = {
    "wirelessfl.analysis.audit.audit": ("Audit", "audit_scenario"),
    "wirelessfl.analysis.compare": ("RunComparison", "compare"),
    "wirelessfl.analysis.trained": ("trained_model",),
    "wirelessfl.api": (
        "Plan",
        "Result",
        "Scenario",
        "load_population",
        "load_scenario",
        "make_plan",
        "open_run",
        "open_trace",
        "simulate",
    ),
    "wirelessfl.channels": ("ChannelRecord", "read_channels", "write_channels"),
    "wirelessfl.cli.study_table": ("study_progress",),
    "wirelessfl.study": ("Study", "load_study", "open_study", "run_study"),
    "wirelessfl.summary": ("epsilon_text", "to_json"),
    "wirelessfl.summary.style": ("FigureOptions",),
    "wirelessfl.trace": ("by_client", "read_group"),
}


def __getattr__(name: str) -> Any:
    """Attribute that is imported on first use, so that ``import wirelessfl`` and the command line start quickly."""
    if name == "__version__":
        from wirelessfl.version import package_version

        return package_version()
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'wirelessfl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
