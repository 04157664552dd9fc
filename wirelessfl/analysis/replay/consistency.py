"""What a trace says of itself twice, checked before anything is repeated."""

from pathlib import Path

import numpy as np

from wirelessfl.errors import CheckFailed
from wirelessfl.streams import STREAM_VERSION
from wirelessfl.trace import read_attributes, round_labels, scenario_digest
from wirelessfl.version import package_version


def check_consistent(path: Path) -> None:
    """Check of a trace: rounds numbered in order, the scenario it was begun with, and the streams of this version.

    Raises:
        CheckFailed: it does not, so that no run repeats it.
        TraceError: it cannot be read.
    """
    attributes = read_attributes(path)
    _check_rounds(path, unfinished=attributes.get("status") == "running")
    recorded = attributes.get("scenario_digest")
    text = attributes.get("scenario")
    if recorded is not None and (not isinstance(text, str) or scenario_digest(text) != recorded):
        raise CheckFailed(f"{path}: the scenario it holds is not the one it was begun with: its digest differs")
    streams = attributes.get("stream_version", STREAM_VERSION)
    if streams != STREAM_VERSION:
        raise CheckFailed(
            f"{path}: attribute stream_version: found {streams!r} in the trace "
            f"(wirelessfl {attributes.get('package_version')}), expected {STREAM_VERSION} (wirelessfl "
            f"{package_version()}): the same seed gives other numbers here; verify it with the version that recorded it"
        )


def _check_rounds(path: Path, *, unfinished: bool) -> None:
    # Rounds count from 1; a row without a number is one that a killed process did not commit.
    labels = round_labels(path)
    committed = int(np.count_nonzero(labels >= 0))
    expected = np.where(np.arange(len(labels)) < committed, np.arange(1, len(labels) + 1), -1)
    wrong = np.flatnonzero((labels != expected) | ((labels < 0) & (not unfinished)))
    if len(wrong):
        row = int(wrong[0])
        raise CheckFailed(f"{path}: round, row {row}: found {int(labels[row])} in the trace, expected {row + 1}")
