"""The numbers of ``summary.json``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import ScenarioError
from wirelessfl.scenario import Scenario, parse_scenario
from wirelessfl.scenario.mechanism import FlatClip, GaussianNoise, noised_by_server
from wirelessfl.scenario.modulation import WaveformModulation
from wirelessfl.scenario.power_control import Cotaf, Gbma, RisFl
from wirelessfl.scenario.uplink import OverTheAir
from wirelessfl.summary.texts import OF_CLIENTS, PERSONAL
from wirelessfl.trace import AnyRoot, run_name

# Test accuracies at which time and energy are reported, beside the best accuracy.
_MILESTONES = (0.5, 0.8, 0.9)

# Decibels by which a clip may exceed the median norm before a user is told.
_TOLERATED_DB = 10.0

NOT_COVERED = (
    "Both ε cover what the adversary sees of one run. They do not cover the trace: the seed, update norms, "
    "training losses, client drift, accuracies on clients' own test samples, actual back-off, transmit energies and "
    "counts of updates that are not finite are private data of the simulated clients. Noise is accounted as real "
    "numbers; what floating-point rounding reveals (Mironov 2012) is not covered."
)


@dataclass(frozen=True)
class ClipFit:
    """Fixed clip beside the norms of the transmitted updates.

    Attributes:
        key: scenario key of the clip.
        excess_db: 20 log10 of the clip over the median norm; what updates of that norm lose against the noise.
        fitting: the median norm.
        largest: the largest norm.
    """

    key: str
    excess_db: float
    fitting: float
    largest: float

    def warning(self) -> str | None:
        """Warning to the user; None where the clip fits."""
        if self.excess_db <= _TOLERATED_DB:
            return None
        return (
            f"{self.key} is {self.excess_db:.1f} dB above the median norm of the updates: power and noise are set for "
            f"it, so that updates arrive that much weaker in the noise. A clip of {self.fitting:.3g} fits (the median "
            f"norm; the largest was {self.largest:.3g}). These norms are private data of the simulated clients; the "
            "privacy cost of choosing a clip by them is not accounted for"
        )


def clip_fit(trace: AnyRoot) -> ClipFit | None:
    """Fit of the clip of a run; None where nothing is scaled by a fixed clip, or nothing was sent.

    Args:
        trace: the opened trace, with the scenario in its attributes.
    """
    try:
        key, clips = _scales(parse_scenario(str(trace.attrs["scenario"]), "trace"))
    except ScenarioError:  # of another version
        return None
    if not clips or "update_norm" not in trace:
        return None
    norm, rounds = trace["update_norm"].values, trace["round"].values.astype(np.int64)
    scale = np.array([clips[min(index, len(clips)) - 1] for index in rounds.tolist()])[:, None]
    sent = np.isfinite(norm)
    ratio = float(np.median((norm / scale)[sent])) if sent.any() else 0.0
    if ratio == 0.0:
        return None
    return ClipFit(key, -20.0 * math.log10(ratio), float(np.median(norm[sent])), float(norm[sent].max()))


def _scales(scenario: Scenario) -> tuple[str, tuple[float, ...]]:
    # Key of the clip that scales power or noise, and its values by round; none where other norms set the scale
    uplink, mechanism = scenario.uplink, scenario.training.privacy
    if isinstance(uplink, OverTheAir):
        if (
            isinstance(uplink.modulation, WaveformModulation) and uplink.modulation.fixed_norm
        ):  # votes are as loud whatever the update is
            return "", ()
        if isinstance(control := uplink.power_control, RisFl):  # updates are as loud as their variances allow
            return "", ()
        given = control.expected_norms if isinstance(control, Cotaf | Gbma) else None
        if given is not None:
            return "uplink.power_control.expected_norms", given if isinstance(given, tuple) else ()
        return "uplink.clip", (uplink.clip,)
    if noised_by_server(mechanism) and mechanism.clip is not None:
        fixed = isinstance(mechanism, GaussianNoise) and isinstance(mechanism.clipping, FlatClip)
        return "training.privacy.clip", (mechanism.clip,) if fixed else ()
    return "", ()


_EVALUATED = ("test_accuracy", "test_loss", "validation_accuracy", "validation_loss", *OF_CLIENTS, *PERSONAL)


def last_evaluation(trace: AnyRoot) -> dict[str, float]:
    """Accuracies and losses (nat) of the last evaluation; all NaN where the model has diverged since then.

    Those on validation samples, or on test samples of single clients, are NaN where there are none, also in a trace of
    an earlier version.
    """
    evaluated = np.flatnonzero(~np.isnan(trace["test_accuracy"].values))
    lost = trace.attrs["status"] == "diverged" and len(evaluated) and evaluated[-1] != trace.sizes["round"] - 1
    known = len(evaluated) > 0 and not lost
    return {
        name: float(trace[name].values[evaluated[-1]]) if known and name in trace else math.nan for name in _EVALUATED
    }


def divergence(trace: AnyRoot) -> dict[str, Any]:
    """Entries of the summary on models that are not finite, and on updates whose norm is not, in single precision.

    ``diverged_in`` is the first round, as far as it was evaluated, since which the global model or its test loss is not
    finite, or since which no update that was received is, null where both are; ``updates_not_finite`` how many updates
    of the run were not, with the first round in which some were and how many of how many received.
    """
    rounds = trace["round"].values
    said: dict[str, Any] = {"diverged_in": None, "updates_not_finite": 0, "updates_not_finite_first": None}
    if trace.attrs["status"] == "diverged" and len(rounds):
        evaluated = np.flatnonzero(~np.isnan(trace["test_accuracy"].values))
        since = _first_of_the_end(evaluated, ~np.isfinite(trace["test_loss"].values[evaluated]))
        found = [at for at in (_unlearnt_since(trace), since, len(rounds) - 1) if at is not None]
        said["diverged_in"] = int(rounds[found[0]])
    if "updates_not_finite" not in trace:  # of an earlier version
        return said
    counts = np.nan_to_num(trace["updates_not_finite"].values)
    said["updates_not_finite"] = int(counts.sum())
    if counts.any():
        first = int(np.flatnonzero(counts)[0])
        numbers = (int(values[first]) for values in (rounds, counts, _received(trace)))
        said["updates_not_finite_first"] = dict(zip(("round", "count", "heard"), numbers, strict=True))
    return said


def _unlearnt_since(trace: AnyRoot) -> int | None:
    # Position of the first round after which no update that was received is finite, None where there is none.
    #
    # None as well where the model, as far as it was evaluated, is not finite: then updates are not the reason.
    loss = trace["test_loss"].values[~np.isnan(trace["test_accuracy"].values)]
    if "updates_not_finite" not in trace or (len(loss) and not np.isfinite(loss[-1])):
        return None
    received = _received(trace)
    some = np.flatnonzero(received > 0)
    return _first_of_the_end(some, (trace["updates_not_finite"].values >= received)[some])


def _received(trace: AnyRoot) -> NDArray[np.int64]:
    # (rounds,) updates received, those included that a robust rule left out, or that came in a round given up
    finite = np.isfinite(trace["update_norm_raw"].values).sum(axis=1)
    return np.asarray(finite + np.nan_to_num(trace["updates_not_finite"].values), dtype=np.int64)


def _first_of_the_end(positions: NDArray[np.int64], bad: NDArray[np.bool_]) -> int | None:
    # The first of ascending positions since which all are bad, None where the last one is not
    at = len(bad) - int(np.argmin(np.append(bad[::-1], False)))
    return int(positions[at]) if at < len(bad) else None


def divergence_warnings(said: Mapping[str, Any], rounds: int) -> list[str]:
    """Warnings on a run of so many rounds, from its ``divergence``; none where all is finite."""
    sentences, first = [], said["updates_not_finite_first"]
    if first is not None:
        sentences.append(
            f"in round {first['round']}, {first['count']} of {first['heard']} updates were not finite or longer than "
            f"3.4e38, the largest number in single precision ({said['updates_not_finite']} in the whole run): with a "
            "clip they count as zeros, a robust rule leaves them out, and with neither they reach the model"
        )
    if said["diverged_in"] is not None:
        ended = ", with which it ended" if said["diverged_in"] == rounds else ""
        sentences.append(
            f"the run diverged: its global model, the test loss or every update has not been finite since round "
            f"{said['diverged_in']}{ended}"
        )
    return sentences


def last_finite(values: NDArray[np.float64]) -> float:
    """Last value that is not NaN; NaN where there is none."""
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else math.nan


def _to_accuracy(accuracy: NDArray[np.float64], spent: NDArray[np.float64]) -> dict[str, float | None]:
    best = np.nanmax(accuracy) if np.any(~np.isnan(accuracy)) else math.nan
    levels = {**{f"{level:.0%}": level for level in _MILESTONES}, "best": best}
    reached = {name: np.flatnonzero(accuracy >= level) for name, level in levels.items()}
    return {name: float(spent[first[0]]) if len(first) else None for name, first in reached.items()}


def summarise(trace: AnyRoot, why_different: list[str]) -> dict[str, Any]:
    """Summary of a run, from its trace.

    Args:
        trace: the opened trace.
        why_different: the ledger's reasons why the two ε differ.

    Returns:
        The keys of CONTRACT.md; values in SI units, NaN and infinity as floats (see ``to_json``).
    """
    attributes, fit = trace.attrs, clip_fit(trace)
    columns = {str(name): trace[name].values for name in trace.data_vars if trace[name].dims == ("round",)}
    accuracy, diverged = columns["test_accuracy"], divergence(trace)
    return {
        "name": run_name(attributes),
        "seed": int(attributes["seed"]),
        "status": attributes["status"],
        "rounds": len(accuracy),
        "ended_by": json.loads(attributes.get("ended_by") or "[]"),
        **last_evaluation(trace),
        "epsilon_published": last_finite(columns["epsilon_published"]),
        "epsilon_accounted": last_finite(columns["epsilon_accounted"]),
        "delta": float(attributes["delta"]),
        "why_different": why_different,
        "privacy_scope": NOT_COVERED,
        "warnings": [*divergence_warnings(diverged, len(accuracy)), *filter(None, [fit and fit.warning()])],
        "clip_excess_db": math.nan if fit is None else fit.excess_db,
        "clip_fitting": math.nan if fit is None else fit.fitting,
        **diverged,
        "effective_noise_std": _mean_of_known(columns.get("effective_noise_std")),
        "aggregate_noise_std": _mean_of_known(columns.get("aggregate_noise_std")),
        "sim_time": last_finite(columns["sim_time"]),
        "wall_time": last_finite(columns["wall_time"]),
        "airtime": float(np.sum(columns["airtime"])),
        "energy": float(np.sum(columns["energy"])),
        "participants_mean": float(np.mean(columns["participants"])) if len(accuracy) else math.nan,
        "d": int(attributes["dimension"]),
        "samples": int(attributes["total_samples"]),
        "time_to_accuracy": _to_accuracy(accuracy, columns["sim_time"]),
        "energy_to_accuracy": _to_accuracy(accuracy, np.cumsum(columns["energy"])),
    }


def _mean_of_known(values: NDArray[np.float64] | None) -> float:
    # Mean over the rounds with a value; NaN where none has one, or the trace is older than the variable
    known = values[~np.isnan(values)] if values is not None else np.zeros(0)
    return float(known.mean()) if len(known) else math.nan


def _plain(value: Any) -> Any:
    # Values that JSON has: null for NaN, the strings "inf" and "-inf" for infinities
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def to_json(summary: Mapping[str, Any]) -> str:
    """JSON of a summary, with null for NaN and the string "inf" for infinity."""
    return json.dumps(_plain(dict(summary)), indent=2, ensure_ascii=False) + "\n"
