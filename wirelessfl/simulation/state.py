"""All that lives from one round to the next: one explicit value, and exactly what the checkpoint holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import TraceError


@dataclass
class SimulationState:
    """The state between two rounds.

    Attributes:
        parameters: (d,) float32, the global model.
        server_memory: what the algorithm keeps beside the model, by name.
        optimizer_memory: what the server optimizer keeps, by name.
        client_rows: what the algorithm keeps of the clients that ever took part, see ``learning.client_side``.
        round_index: rounds finished.
        model_version: steps that the global model has made; less where rounds went by without an update.
        ended_by: keys of the limits with which the run ended, by commas; empty while it goes on.
        diverged_in: round since which the global model or its test loss is not finite; 0 where both are.
        unlearnt_since: round since which no update that was received was finite; 0 where one was. It ends nothing.
        clock: simulated time in ticks.
        wall_time: seconds of real time spent so far.
        energy_j: joules spent so far; NaN where watts are unknown.
        nominal_energy_j: the same by public bounds, which is what ends a run.
        battery_used_j: (K,) joules drawn from each client's battery; empty where there are no batteries.
        clipping: what clipping rules remember of each client, by name, each (K,); empty for rules without memory.
        proxy_clip: the norm last calibrated on public data; NaN where there is none.
        release_settings: the kinds of releases recorded so far, each with its number in the trace.
        memories: what channels, availability and power control remember, by part.
        uplink_memory: what the uplink remembers from round to round, by name.
        ledger: the privacy spent so far, as the ledger serialises itself.
        unbounded: (m,) ascending numbers of the clients that sent beyond every bound, unknown to the ledger.
    """

    parameters: NDArray[np.float32]
    server_memory: dict[str, NDArray[Any]] = field(default_factory=dict)
    optimizer_memory: dict[str, NDArray[Any]] = field(default_factory=dict)
    client_rows: dict[str, NDArray[Any]] = field(default_factory=dict)
    round_index: int = 0
    model_version: int = 0
    ended_by: str = ""
    diverged_in: int = 0
    unlearnt_since: int = 0
    clock: int = 0
    wall_time: float = 0.0
    energy_j: float = 0.0
    nominal_energy_j: float = 0.0
    battery_used_j: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    clipping: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    proxy_clip: float = math.nan
    release_settings: dict[str, int] = field(default_factory=dict)
    memories: dict[str, Any] = field(default_factory=dict)
    uplink_memory: dict[str, int] = field(default_factory=dict)
    ledger: dict[str, Any] = field(default_factory=dict)
    unbounded: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def as_mapping(self) -> dict[str, Any]:
        """The state as a mapping of arrays, numbers and further mappings, for the checkpoint."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> SimulationState:
        """The inverse of ``as_mapping``.

        Raises:
            ValueError: a part is missing, unknown, of another type, or a number that no run has.
        """
        blank = cls(np.zeros(0, dtype=np.float32)).as_mapping()
        odd = sorted(set(values) ^ set(blank))
        if odd:
            raise ValueError(f"missing or unknown: {', '.join(odd)}")
        wrong = [name for name, value in blank.items() if not _alike(values[name], value)]
        wrong += [name for name in _ARRAYS if not _all_are(values[name], np.ndarray)]
        wrong += [name for name in ("release_settings", "uplink_memory") if not _all_are(values[name], int)]
        if wrong:
            raise ValueError(f"of another type than a run's: {', '.join(dict.fromkeys(wrong))}")
        negative = [name for name, value in values.items() if isinstance(value, int) and value < 0]
        if negative:
            raise ValueError(f"negative: {', '.join(negative)}")
        return cls(**values)


def _alike(found: object, wanted: object) -> bool:
    # Whether a value has the type of another: of arrays the dtype and number of dimensions
    if isinstance(wanted, np.ndarray):
        return isinstance(found, np.ndarray) and found.dtype == wanted.dtype and found.ndim == wanted.ndim
    return type(found) is type(wanted)


def _all_are(values: object, wanted: type) -> bool:
    return isinstance(values, dict) and all(isinstance(value, wanted) for value in values.values())


def check_continues(state: SimulationState, start: SimulationState) -> None:
    """Check that a state is one of a run that begins with ``start``: parts of fixed size have it.

    Raises:
        TraceError: naming the parts that have another size or type.
    """
    pairs: dict[str, tuple[Any, Any]] = {
        "parameters": (state.parameters, start.parameters),
        "battery_used_j": (state.battery_used_j, start.battery_used_j),
    }
    for name in _ARRAYS:
        ours, theirs = getattr(state, name), getattr(start, name)
        if name == "client_rows":  # of however many clients took part
            ours = {key: rows[:0] for key, rows in ours.items() if len(rows) == len(ours.get("client", ()))}
        pairs |= {f"{name}.{key}": (ours.get(key), theirs.get(key)) for key in ours.keys() | theirs.keys()}
    odd = [
        name
        for name, (found, wanted) in sorted(pairs.items())
        if found is None or wanted is None or found.shape != wanted.shape or found.dtype != wanted.dtype
    ]
    if odd:
        raise TraceError(f"{_FOREIGN}: their size differs from that of this run: {', '.join(odd)}; {_ANEW}")


@contextmanager
def restoring(part: str) -> Iterator[None]:
    """Context in which a part is restored; any failure means that the checkpoint does not belong to this run.

    Args:
        part: its name, for the message.

    Raises:
        TraceError: naming the part.
    """
    try:
        yield
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise TraceError(
            f"{_FOREIGN}: {part} cannot continue from it ({type(error).__name__}: {error}); {_ANEW}"
        ) from error


_ARRAYS = ("server_memory", "optimizer_memory", "client_rows", "clipping")
_FOREIGN = "the checkpoint holds no state of this run, though its checksum is right"
_ANEW = "run again with --overwrite, or into another folder with --out"
