"""The privacy ledger of a recorded run, from its trace alone, for another δ, statement or accountant."""

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from wirelessfl import plugins
from wirelessfl.analysis.replay.recorded_code import recorded_code
from wirelessfl.analysis.replay.recording import Recording
from wirelessfl.errors import InputError, SourceWarning, TraceError, precondition
from wirelessfl.privacy import (
    Ledger,
    PrivacyFacts,
    Release,
    Statement,
    is_of_the_run,
    recompute,
    release_from_values,
)
from wirelessfl.trace import PRIVACY, open_trace, read_group, trace_errors

# In the order in which a round adds them to the ledger.
_ROUTES = ("local", "air", "server")


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
            precondition(
                "release_settings" in trace.attrs and trace.attrs.get("status") != "running",
                f"{path}: the run was killed; continue it with --resume, then repeat this command",
                TraceError,
            )
            clients = trace["client"].values.astype(np.int64)
            precondition(
                np.isin(trace["client_id"].values[privacy["released"].values == 1], clients).all(),
                f"{path}: clients of its last rounds are missing from its list of clients; continue the run with "
                "--resume",
                TraceError,
            )
            facts = PrivacyFacts(
                samples=np.append(trace["samples"].values.astype(np.int64), 1),
                weights=np.append(trace["weight"].values, float(privacy.attrs["largest_weight"])),
                total_samples=int(trace.attrs["total_samples"]),
            )
            kinds, said = json.loads(trace.attrs["release_settings"]), privacy.attrs
            words = {name: said[name] for name in ("unit", "adjacency", "adversary")}
            recorded = Statement(delta=float(said["delta"]), colluding=int(said["colluding"]), **words)
        statement = replace(recorded, **changes)
        with trace_errors(path):
            load = partial(plugins.load_class, "release_settings", protocol=Release) if allow_plugins else None
            ledger = recompute(_releases(trace, privacy, kinds, clients, load), facts, statement)
            told = json.loads(trace.attrs.get("why_different") or "[]")
            for sentence in told:
                if is_of_the_run(sentence, statement.adversary):
                    ledger.remark(sentence)
        return ledger


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
        if (kind := int(per_round["loss_settings"][row])) >= 0:
            said = json.loads(kinds[kind])
            asked = np.searchsorted(clients, np.array(said.pop("asked"), dtype=np.int64))
            yield release_from_values(json.dumps(said), round_index, asked, {}, {})
        taken = per_slot["released"][row] == 1
        members = np.searchsorted(clients, trace["client_id"].values[row][taken])
        for route in _ROUTES:
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


@dataclass(frozen=True)
class LedgerRow:
    """Both ε of a recorded run under one statement.

    Attributes:
        delta: δ.
        accountant: what composes subsampled releases.
        epsilon_published: by the paper's theorem, worst client.
        epsilon_accounted: of what really ran, worst client.
        why_different: why they differ.
    """

    delta: float
    accountant: str
    epsilon_published: float
    epsilon_accounted: float
    why_different: list[str]


def recompute_privacy(
    recording: Recording, deltas: tuple[float, ...], accountant: str | None, *, allow_plugins: bool = False
) -> list[LedgerRow]:
    """Both ε of the whole run at other δ or by another accountant, from the trace alone.

    Args:
        recording: all rounds of a trace.
        deltas: the δ; none stands for the recorded one.
        accountant: pld, rdp, gdp or zcdp; None for the default.
        allow_plugins: whether code from outside may read the releases that it left.

    Raises:
        InputError: a δ outside (0, 1), or not all rounds are looked at.
        TraceError: the run did not end in order.
    """
    precondition(
        recording.whole,
        "--from and --to are not allowed with --delta or --accountant, which need all rounds",
        InputError,
    )
    rows = []
    changes = {} if accountant is None else {"accountant": accountant}
    for delta in deltas or (float(recording.dataset.attrs["delta"]),):
        precondition(0 < delta < 1, f"--delta: found {delta:g}; allowed: a number between 0 and 1", InputError)
        try:
            ledger = _ledger(recording, allow_plugins, delta=delta, **changes)
            published, accounted = ledger.epsilon_published(), ledger.epsilon_accounted()
        except ValueError as error:
            raise InputError(f"--accountant {accountant}: {error}") from error
        rows.append(LedgerRow(delta, ledger.statement.accountant, published, accounted, ledger.why_different()))
    return rows


def _ledger(recording: Recording, allow_plugins: bool, **changes: Any) -> Ledger:
    if not allow_plugins:  # then nothing from outside is imported
        return recorded_ledger(recording.path, **changes)
    code = recorded_code(recording.path, recording.attributes, recording.scenario, allow_plugins=True)
    with code as notes:
        for note in notes:
            warnings.warn(f"{recording.path}: {note}", SourceWarning, stacklevel=2)
        return recorded_ledger(recording.path, allow_plugins=True, **changes)
