"""The privacy ledger of a recorded run, from its trace alone, for another δ, statement or accountant."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from wirelessfl import plugins
from wirelessfl.errors import TraceError
from wirelessfl.privacy import (
    ENDED_BY_ITS_OUTPUTS,
    Ledger,
    PrivacyFacts,
    Release,
    Statement,
    recompute,
    release_from_values,
)
from wirelessfl.trace import PRIVACY, open_trace, read_group, trace_errors

ROUTES = ("local", "air", "server")
"""In the order in which a round adds them to the ledger."""


def recorded_statement(privacy: xr.Dataset) -> Statement:
    """What the recorded ε is said about."""
    attributes = privacy.attrs
    return Statement(
        delta=float(attributes["delta"]),
        unit=attributes["unit"],
        adjacency=attributes["adjacency"],
        adversary=attributes["adversary"],
        colluding=int(attributes["colluding"]),
    )


def recorded_ledger(path: Path, *, allow_plugins: bool = False, **changes: Any) -> Ledger:
    """Ledger of a trace, computed anew.

    Clients are numbered as in the trace's ``client`` dimension; one more stands for all those who never took part.

    Args:
        path: The trace, of a run that has ended or was interrupted.
        allow_plugins: Whether code from outside the package may run where the trace holds releases of its own kinds.
        **changes: Fields of ``Statement`` to change, such as ``delta=1e-6`` or ``accountant="rdp"``.

    Raises:
        TraceError: The file is no trace, or the run was killed and not resumed, so that its header is not complete.
    """
    with open_trace(path) as trace, read_group(path, "privacy") as privacy:
        with trace_errors(path):
            if "release_settings" not in trace.attrs or trace.attrs.get("status") == "running":
                raise TraceError(f"{path}: the run did not end in order; continue it with --resume, then ask again")
            facts, clients = _facts(trace, privacy, path)
            kinds: list[str] = json.loads(trace.attrs["release_settings"])
            recorded = recorded_statement(privacy)
        statement = replace(recorded, **changes)
        with trace_errors(path):
            load = partial(plugins.load_class, "release_settings", protocol=Release) if allow_plugins else None
            ledger = recompute(_releases(trace, privacy, kinds, clients, load), facts, statement)
            if ENDED_BY_ITS_OUTPUTS in json.loads(trace.attrs.get("why_different") or "[]"):
                ledger.remark(ENDED_BY_ITS_OUTPUTS)
        return ledger


def _facts(trace: xr.Dataset, privacy: xr.Dataset, path: Path) -> tuple[PrivacyFacts, NDArray[np.int64]]:
    # What the ledger has to know of the clients, and who they are.
    clients = trace["client"].values.astype(np.int64)
    if not np.isin(trace["client_id"].values[privacy["released"].values == 1], clients).all():
        raise TraceError(f"{path}: holds rounds of clients that it does not count; continue the run with --resume")
    facts = PrivacyFacts(
        samples=np.append(trace["samples"].values.astype(np.int64), 1),
        weights=np.append(trace["weight"].values, float(privacy.attrs["largest_weight"])),
        total_samples=int(trace.attrs["total_samples"]),
    )
    return facts, clients


def _releases(
    trace: xr.Dataset,
    privacy: xr.Dataset,
    kinds: list[str],
    clients: np.ndarray[Any, Any],
    load: Callable[[str], type[Release]] | None,
) -> Iterator[Release]:
    per_round = {variable.name: privacy[variable.name].values for variable in PRIVACY.of("round")}
    per_slot = {variable.name: privacy[variable.name].values for variable in PRIVACY.of("round", "slot")}
    for row, round_index in enumerate(trace["round"].values.tolist()):
        taken = per_slot["released"][row] == 1
        members = np.searchsorted(clients, trace["client_id"].values[row][taken])
        for route in ROUTES:
            kind = int(per_round[f"{route}_settings"][row])
            if kind < 0:
                continue
            prefix = f"{route}_"
            numbers = {
                name.removeprefix(prefix): float(values[row])
                for name, values in per_round.items()
                if name.startswith(prefix) and not name.endswith("_settings") and not np.isnan(values[row])
            }
            columns = {
                name.removeprefix(prefix): values[row][taken]
                for name, values in per_slot.items()
                if name.startswith(prefix) and not np.isnan(values[row][taken]).all()
            }
            yield release_from_values(kinds[kind], round_index, members, numbers, columns, load)
