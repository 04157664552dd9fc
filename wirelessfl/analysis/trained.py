"""The global model of a recorded run as a torch module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wirelessfl.analysis.replay.recording import open_recording
from wirelessfl.errors import CheckFailed, precondition
from wirelessfl.scenario.scenario import refuse_outside_code
from wirelessfl.trace import model_weights

if TYPE_CHECKING:
    from torch import nn


def trained_model(
    trace: str | Path, round_index: int | None = None, *, merged: bool = True, allow_plugins: bool = False
) -> nn.Module:
    """The whole network of a run: its trained parameters from the trace, frozen ones as they were.

    Data and weights that the scenario names must be there, and be those of the run.

    Args:
        trace: the trace file, or the folder of the run.
        round_index: round after which the model was stored; by default the last one stored.
        merged: whether low-rank adapters become part of the weights: ``state_dict()`` then has the names and shapes of
            the network without adapters.
        allow_plugins: whether code from outside the package that the recorded scenario names may run.

    Raises:
        TraceError: not a readable trace, or it keeps no such model.
        ScenarioError: code from outside that may not run, or no longer fits.
        DataError: data or weights are missing or damaged.
        CheckFailed: they are not those that the run was recorded with.
    """
    import torch

    from wirelessfl.assembly import other_data
    from wirelessfl.assembly.data import build_population
    from wirelessfl.assembly.learning import build_model
    from wirelessfl.learning.adapters import merge_adapters
    from wirelessfl.streams import Streams

    recording = open_recording(Path(trace))
    refuse_outside_code(recording.scenario, str(recording.path), allow_plugins)
    weights = torch.from_numpy(model_weights(recording.path, round_index))
    population = build_population(recording.scenario, Streams(recording.scenario.seed))
    other = other_data(recording.attributes, recording.scenario, population)
    precondition(other is None, f"{recording.path}: {other}", CheckFailed)
    module = build_model(recording.scenario, population).filled(weights)
    return merge_adapters(module) if merged else module
