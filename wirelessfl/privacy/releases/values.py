"""Releases as plain values, so that a trace can hold them and the ledger can be recomputed from it.

A release falls into numbers per round, numbers per client, and settings: everything else, as JSON.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.privacy.costs import Caveat
from wirelessfl.privacy.laws import (
    DynamicClip,
    FixedClip,
    HaarNoise,
    MooClip,
    PerLayerClip,
    QuantileClip,
    UnknownClip,
    WhiteNoise,
)
from wirelessfl.privacy.releases.air import AirRelease
from wirelessfl.privacy.releases.base import BareRelease, LossReport, Release, RobustRelease, UnvouchedRelease
from wirelessfl.privacy.releases.local import DpSgdRelease, SecureSum, ZcdpRelease
from wirelessfl.privacy.releases.losses import LocalPlans, LossNoise, LossRelease
from wirelessfl.privacy.releases.server_noise import NoAmplification, ServerNoiseRelease
from wirelessfl.privacy.releases.waveform import WaveformRelease

RELEASES: tuple[type[Release], ...] = (
    *(AirRelease, BareRelease, LossRelease, LossReport, DpSgdRelease, RobustRelease, ServerNoiseRelease),
    *(UnvouchedRelease, WaveformRelease),
    ZcdpRelease,
)
"""The package's own kinds of release; of one from outside a trace holds all fields as settings."""

PARTS: tuple[type, ...] = (
    *(WhiteNoise, HaarNoise),
    *(FixedClip, PerLayerClip, QuantileClip, DynamicClip, MooClip, UnknownClip),
    *(SecureSum, LossNoise, LocalPlans),
)
"""Every kind of record that is a field of a release."""

_PLACE = ("round_index", "clients")
_INTEGERS = ("batch_size", "steps")
# Fields of records in earlier traces, with the one value that they had; no record takes another one
_RETIRED = {"caveat": None, "masks_reused": False, "reshuffled": True, "steps_before": 0}

_REASONS: Mapping[str, type[Caveat] | type[NoAmplification]] = {"caveat": Caveat, "unamplified": NoAmplification}


def round_values(release: Release) -> dict[str, float]:
    """The numbers of a release that hold for its whole round."""
    return {name: float(value) for name, value in _numbers(release) if np.ndim(value) == 0}


def client_values(release: Release) -> dict[str, NDArray[np.float64]]:
    """The numbers of a release per client, each (n,) in the order of ``release.clients``."""
    return {name: np.asarray(value, dtype=np.float64) for name, value in _numbers(release) if np.ndim(value) == 1}


def settings(release: Release) -> str:
    """Kind and remaining fields of a release, as JSON with sorted keys: equal settings are equal strings."""
    numbers = dict(_numbers(release))
    values = {
        field.name: _plain(getattr(release, field.name))
        for field in fields(release)  # type: ignore[arg-type]
        if field.name not in numbers and field.name not in _PLACE
    }
    return json.dumps({"kind": _kind(release), **values}, sort_keys=True)


def _kind(release: Release) -> str:
    kind = type(release)
    return kind.__name__ if kind in RELEASES else f"{kind.__module__}:{kind.__qualname__}"


def release_from_values(
    settings: str,
    round_index: int,
    clients: NDArray[np.int64],
    round_values: Mapping[str, float],
    client_values: Mapping[str, NDArray[np.float64]],
    load: Callable[[str], Callable[..., Release]] | None = None,
) -> Release:
    """The release that ``settings``, ``round_values`` and ``client_values`` came from.

    Args:
        settings: As `settings` gave them.
        round_index: Communication round.
        clients: (n,) the clients of the release.
        round_values: As `round_values` gave them.
        client_values: As `client_values` gave them.
        load: From ``package.module:Class`` to a class from outside; None admits none.

    Raises:
        ValueError: If the settings name a kind of release or a part that is not known.
        TypeError: If they name a field that the record does not have.
    """
    named = json.loads(settings)
    kind = named.pop("kind", None)
    if ":" in str(kind):
        if load is None:
            raise ValueError(f"a record of {kind}, code from outside, which is read with --allow-plugins only")
        arrays = {name: np.asarray(value) if isinstance(value, list) else value for name, value in named.items()}
        return load(kind)(round_index=round_index, clients=np.asarray(clients, dtype=np.int64), **arrays)
    build = _named(RELEASES, kind)
    arguments: dict[str, Any] = {name: _rich(name, value) for name, value in named.items()}
    if build is ServerNoiseRelease:  # traces of version 0.1 do not say it, and lack the rounds that nobody took part in
        arguments.setdefault("unamplified", NoAmplification.UNSTATED)
    for name, value in {**round_values, **client_values}.items():
        arguments[name] = np.asarray(value).astype(np.int64) if name in _INTEGERS else value
    if not len(clients):  # of nobody a trace has no columns
        columns = {one.name: np.zeros(0) for one in fields(build) if one.default is MISSING}  # type: ignore[arg-type]
        absent = columns.keys() - arguments.keys() - {*_PLACE}
        arguments |= {name: columns[name].astype(np.int64 if name in _INTEGERS else np.float64) for name in absent}
    if arguments.get("sampling") == "reshuffle":
        arguments["sampling"] = "shuffle"
    place = {"round_index": round_index, "clients": np.asarray(clients, dtype=np.int64)}
    release: Release = build(**place, **_still_known(build, arguments))
    return release


def _still_known(kind: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    known = inspect.signature(kind).parameters
    return {
        name: value
        for name, value in arguments.items()
        if name in known or name not in _RETIRED or np.any(value != _RETIRED[name])
    }


def _numbers(release: Release) -> list[tuple[str, Any]]:
    # Fields that are numbers or arrays of them, with their values.
    if type(release) not in RELEASES:
        return []
    named = [(field.name, getattr(release, field.name)) for field in fields(release)]  # type: ignore[arg-type]
    return [
        (name, value)
        for name, value in named
        if name not in _PLACE and isinstance(value, int | float | np.ndarray) and not isinstance(value, bool)
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, Caveat | NoAmplification):
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__, **asdict(value)}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _rich(name: str, value: Any) -> Any:
    if name in _REASONS and value is not None:
        return _REASONS[name][value]
    if not isinstance(value, dict):
        return value
    arguments = {
        key: tuple(item) if isinstance(item, list) else item
        for key, item in value.items()
        if key not in ("kind", "nominal_multiplier")  # the latter in version 0.1, one for all rounds
    }
    part = _named(PARTS, value.get("kind"))
    return part(**_still_known(part, arguments))


def _named(kinds: tuple[type, ...], name: Any) -> Callable[..., Any]:
    for kind in kinds:
        if kind.__name__ == name:
            return kind
    raise ValueError(f"unknown kind {name!r}; known are {', '.join(kind.__name__ for kind in kinds)}")
