"""Content of an archive: which files of runs and studies go into it, under which names."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from wirelessfl.analysis.pack.layout import MOST_FILES, PLUGINS, PackedRun, is_safe
from wirelessfl.analysis.pack.sources import texts_of
from wirelessfl.analysis.replay.recording import Recording, check_consistent, open_recording
from wirelessfl.errors import InputError, TraceError, precondition
from wirelessfl.inputs import ROOT_VARIABLE, file_fingerprint
from wirelessfl.scenario.published_data import FileSet
from wirelessfl.scenario.scenario import outside_code
from wirelessfl.trace import FINISHED, read_attributes, recorded_sources, refuse_irregular

PICTURES = (".png", ".pdf", ".svg")
_OF_RUN = {"summary.json"}
_OF_RUNS = {"index.csv"}
_OF_STUDY = {"study.yaml", "study.json", "study.parquet", "report.html"}
_RUN_ID = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass
class Contents:
    """Files for an archive.

    Attributes:
        packed: Folders of the archive, one for each path that was packed.
        runs: Its runs.
        left_out: What is not in it, in words.
        files: Where the content of each file is, or the content itself.
        spellings: Their names without regard to case, as readers on any system compare them.
    """

    packed: list[str] = field(default_factory=list)
    runs: list[PackedRun] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    files: dict[str, Path | bytes] = field(default_factory=dict)
    spellings: set[str] = field(default_factory=set)

    @property
    def sources(self) -> list[Path]:
        """The files on disk among them."""
        return [source for source in self.files.values() if isinstance(source, Path)]

    def add(self, name: str, source: Path | bytes) -> None:
        """Entry of a file.

        Raises:
            InputError: the archive cannot hold it.
        """
        precondition(is_safe(name), f"{name!r}: found a name that an archive cannot hold", InputError)
        precondition(
            name.casefold() not in self.spellings,
            f"{name}: found twice among the files to pack; names that differ only in case count as equal",
            InputError,
        )
        if isinstance(source, Path):
            refuse_irregular(source)
        self.files[name] = source
        self.spellings.add(name.casefold())
        precondition(len(self.files) < MOST_FILES, f"found more than {MOST_FILES:,} files to pack", InputError)


def collect(paths: Sequence[Path], *, with_data: bool = False) -> Contents:
    """Content of an archive over runs and studies.

    Args:
        paths: The folder of a run or its trace, or the folder of a study, each.
        with_data: Whether files of data go along that a scenario names by a relative path.

    Raises:
        InputError: a path holds neither, or a run that has not ended.
    """
    contents = Contents()
    for path in paths:
        name = _free_name(path, contents.packed)
        contents.packed.append(name)
        if (path / "study.json").exists():
            _add_study(contents, name, path, with_data)
        else:
            trace = path / "trace.h5" if path.is_dir() else path
            precondition(
                trace.is_file(),
                f"{path}: found no trace there; allowed: the folder of a run or study, or a trace",
                InputError,
            )
            _add_run(contents, name, trace, None, with_data)
    return contents


def _free_name(path: Path, taken: Sequence[str]) -> str:
    here = path.resolve()
    own = here.parent if here.name == "trace.h5" else here.with_suffix("") if here.is_file() else here
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", own.name).strip("-.")[:100] or "run"
    names = (plain, *(f"{plain}-{number}" for number in range(2, len(taken) + 3)))
    known = {one.casefold() for one in taken}
    return next(name for name in names if name.casefold() not in known)


def _add_run(contents: Contents, name: str, trace: Path, label: str | None, with_data: bool) -> None:
    check_consistent(trace)
    recording = open_recording(trace)
    attributes, scenario = recording.attributes, recording.scenario
    status = attributes["status"]
    precondition(
        status in FINISHED,
        f"{trace}: found a run that has not ended (status {status}); allowed: a run that has ended; --resume "
        "continues it",
        InputError,
    )
    run = PackedRun(
        name=name,
        label=label or f"{scenario.name}, seed {scenario.seed}",
        status=status,
        rounds=recording.recorded,
        scenario_digest=str(attributes.get("scenario_digest", "")),
        data=json.loads(attributes.get("data_fingerprint", "{}")),
        outside=tuple(dict.fromkeys(outside_code(scenario).values())),
    )
    contents.runs.append(run)
    contents.add(run.trace, trace)
    contents.add(f"{name}/scenario.yaml", attributes["scenario"].encode())
    if trace.name == "trace.h5":
        for file in _beside(trace.parent, _OF_RUN):
            contents.add(f"{name}/{file.name}", file)
    if typed := [one for one in run.outside if one.startswith("__main__:")]:
        contents.left_out.append(
            f"{name}: a module with {', '.join(typed)}, of a script or notebook; nobody can repeat the run from the "
            "archive: move the code into a module, and run again"
        )
    for path, text in texts_of(recorded_sources(trace)).items():
        contents.add(f"{name}/{PLUGINS}/{path}", text.encode())
    _add_data(contents, run, recording, with_data)


def _beside(folder: Path, names: set[str]) -> Iterator[Path]:
    # Summaries and pictures of a folder, which may be links to elsewhere: those are left out
    known = (file for file in sorted(folder.iterdir()) if file.name in names or file.suffix in PICTURES)
    return (file for file in known if file.is_file() and not file.is_symlink() and not file.name.startswith("."))


def _add_study(contents: Contents, name: str, path: Path, with_data: bool) -> None:
    runs = _runs_of_study(path)
    complete = 0
    for run, label in runs.items():
        trace = path / "runs" / run / "trace.h5"
        why = _why_not(trace)
        if why is None:
            _add_run(contents, f"{name}/runs/{run}", trace, label, with_data)
            complete += 1
        else:
            contents.left_out.append(f"{name}: run {run} ({label}): {why}")
    precondition(complete, f"{path}: found no run of the study that has ended; --resume continues it", InputError)
    for file in _beside(path, _OF_STUDY):
        contents.add(f"{name}/{file.name}", file)
    for file in _beside(path / "runs", _OF_RUNS):
        contents.add(f"{name}/runs/{file.name}", file)


def _why_not(trace: Path) -> str | None:
    if not trace.exists():
        return "has no trace"
    try:
        status = read_attributes(trace).get("status")
    except TraceError:
        return "its trace cannot be read"
    return None if status in FINISHED else f"has not ended (status {status})"


def _runs_of_study(path: Path) -> dict[str, str]:
    # Labels of the runs by id, as study.json says; the folder may be anybody's
    file = path / "study.json"
    refuse_irregular(file)
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        runs = {str(run["run"]): _label(record["factors"], run) for run in record["runs"]}
        precondition(all(_RUN_ID.fullmatch(run) and run.strip(".") for run in runs), "a run without id")
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise InputError(f"{file}: no readable study ({type(error).__name__}: {error})") from error
    return runs


def _label(factors: list[dict[str, Any]], run: Mapping[str, Any]) -> str:
    values = [
        f"{key}={value}"
        for factor, level in zip(factors, run["levels"], strict=True)
        for key, value in zip(factor["keys"], factor["levels"][level], strict=True)
    ]
    return ", ".join([*values, f"seed {run['seed']}"])


def _add_data(contents: Contents, run: PackedRun, recording: Recording, with_data: bool) -> None:
    # Files of data under their relative names, once for all runs of a study; what is not there is told
    dataset = recording.scenario.data.dataset
    if isinstance(dataset, FileSet) and dataset.root is None and run.data:
        contents.left_out.append(f"{run.name}: the data of {dataset.name}, which are looked up in {ROOT_VARIABLE}")
    for key, text in recording.scenario.named_files().items():
        below = _name_below(text)
        if not with_data or below is None:
            why = "" if below else ", by a name that an archive cannot hold (absolute, or with ..)"
            contents.left_out.append(f"{run.name}: the data that {key} names{why}: {text}")
            continue
        path = recording.places.find(key, text)
        recorded = run.data.get(key)
        precondition(
            recorded is None or path.is_dir() or file_fingerprint(path) == recorded,
            f"{path}: found data that differ from those of the recorded run ({key}); restore them, or omit --with-data",
            InputError,
        )
        for file in [path] if path.is_file() else _files_in(path):
            name = f"{run.data_folder}/{(PurePosixPath(below) / file.relative_to(path).as_posix()).as_posix()}"
            if contents.files.get(name) != file:  # else of an earlier run of the study
                contents.add(name, file)


def _name_below(text: str) -> str | None:
    # Where an archive holds what a scenario names so, for a replay to find it; None where it cannot
    plain = PurePosixPath(text).as_posix()
    return plain if is_safe(plain) and not Path(text).expanduser().is_absolute() else None


def _files_in(folder: Path) -> Iterator[Path]:
    # Every file below, also below links to folders, as whoever reads the data finds them; no link to a folder above, by
    # the links that led here or by where the folder lies
    for place, folders, files in os.walk(folder, followlinks=True):
        here = Path(place)
        above = {one.resolve() for one in (here, *here.parents)} | set(here.resolve().parents)
        folders[:] = [name for name in sorted(folders) if (here / name).resolve() not in above]
        yield from (here / name for name in sorted(files) if (here / name).is_file())
