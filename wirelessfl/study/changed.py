"""Code from outside that was edited since a study ran: what is computed again."""

import warnings
from contextlib import suppress

from wirelessfl.errors import OutputError, SourceWarning, TraceError
from wirelessfl.scenario.scenario import outside_sources
from wirelessfl.study.design import StudyDesign
from wirelessfl.study.folder import StudyFolder
from wirelessfl.trace import recorded_sources


def note_changed_sources(design: StudyDesign, folder: StudyFolder) -> None:
    """Warning of runs whose code from outside has changed since an earlier study in the folder: they run again."""
    try:
        earlier = {str(run["run"]): run["status"] for run in folder.read_record()["runs"]}
    except (OutputError, KeyError, TypeError):
        return
    begun = {run.partition("-")[0]: run for run, status in earlier.items() if status == "complete"}
    again = [run for run in design.runs if run.id not in earlier and run.id.partition("-")[0] in begun]
    if not again:
        return
    words: dict[str, None] = {}
    for run in again:
        here = outside_sources(run.scenario)
        with suppress(TraceError):
            recorded = recorded_sources(folder.trace(begun[run.id.partition("-")[0]]))
            if recorded is None:
                words |= {"the earlier runs did not record them": None}
            elif here is not None:
                words |= dict.fromkeys(recorded.differences(here))
    kept = sum(earlier.get(run.id) == "complete" for run in design.runs)
    warnings.warn(
        f"{folder.path}: sources of code from outside have changed ({', '.join(words) or 'which is not known'}): "
        f"{len(again)} of {len(design.runs)} runs are computed again, {kept} do not depend on them and are kept",
        SourceWarning,
        stacklevel=2,
    )
