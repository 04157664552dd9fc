"""A study whose runs have their commits noted in ``provenance.json``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from publications.collect import begun_runs, finished_runs
from publications.provenance import Notes
from wirelessfl.study import Message, Study, StudyDesign, run_study

Watch = Callable[[StudyDesign], AbstractContextManager[Callable[[Message], None]]]
"""What shows the progress of a study."""


@contextmanager
def unwatched(design: StudyDesign) -> Iterator[Callable[[Message], None]]:
    """No progress."""
    yield lambda _: None


def run_noted(
    design: StudyDesign, folder: Path, commit: str, watch: Watch, *, workers: int | None, resume: bool
) -> Study:
    """Run a study, and note for each run the commit under which it is computed.

    Args:
        design: What is run.
        folder: Where traces go.
        commit: The commit of the source that runs here.
        watch: What shows progress.
        workers: Processes.
        resume: Keep what is finished.

    Raises:
        OutputError: the notes cannot be read or written.
        RunInterrupted: Ctrl-C or SIGTERM; ``resume`` continues.
    """
    finished, begun = finished_runs(folder), begun_runs(folder)
    notes = Notes.of(folder, commit)
    with watch(design) as on_message:

        def on_any(message: Message) -> None:
            notes.note(message, finished, begun)
            on_message(message)

        return run_study(design, folder, workers=workers, resume=resume, on_message=on_any)
