"""Where a stored run comes from: the commit, versions and machine under which it was computed."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import wirelessfl as wfl
from wirelessfl.errors import OutputError
from wirelessfl.study import Message, Outcome

ROOT = Path(__file__).resolve().parents[1]
DECIDING = ("wirelessfl", "publications", "scenarios", "channels")
"""Folders that numbers follow from: a change there that is in no commit is marked."""


@dataclass(frozen=True)
class Provenance:
    """Under what a run was computed; what was not kept is empty.

    Attributes:
        commit: Of this repository, with ``+`` where files that numbers follow from had changed since.
        version: Of wirelessfl.
        streams: Version of the random streams.
        torch: Version of torch.
        device: Device and threads, as ``cpu, 1 thread``.
        processor: Kind of the processor, as `wirelessfl.processor.processor_name` tells it.
        seconds: Wall time of all rounds.
        chunk: Clients that are trained at once: sums of other blocks round differently, and each machine measures which
            it takes.
    """

    commit: str = ""
    version: str = ""
    streams: str = ""
    torch: str = ""
    device: str = ""
    processor: str = ""
    seconds: float = math.nan
    chunk: str = ""

    @property
    def plan(self) -> dict[str, Any]:
        """Device and threads as `wirelessfl.simulate` takes them; sums of other threads round differently."""
        _, _, threads = self.device.partition(", ")
        return {"device": self.trained_on, "threads": int(threads.split()[0])} if threads else {}

    @property
    def trained_on(self) -> str:
        """Where training ran, ``cpu`` or ``cuda``; before it was kept, on a CPU."""
        return self.device.partition(", ")[0] or "cpu"

    @property
    def where(self) -> str:
        """Device and threads, a GPU by its name."""
        _, known, name = self.processor.rpartition("; ")
        return self.device.replace("cuda", name, 1) if known and self.trained_on == "cuda" else self.device

    @property
    def source(self) -> tuple[str, str, str, str]:
        """Commit and versions: what decides the numbers of a run on a device."""
        return self.commit, self.version, self.streams, self.torch

    @property
    def kept(self) -> bool:
        """Whether anything was kept: runs stored before this was done have nothing, and six digits only."""
        return self.version != ""


UNKNOWN = Provenance()
"""Of runs that were stored before any of it was kept."""


def provenance_of(trace: Path, seconds: float, commit: str) -> Provenance:
    """What a trace itself says, and the commit that was noted."""
    with wfl.open_trace(trace) as recorded:
        told = recorded.attrs
    plan: dict[str, Any] = json.loads(told["plan"])
    threads = int(plan["threads"])
    return Provenance(
        commit,
        str(told["package_version"]),
        str(told["stream_version"]),
        str(told["torch_version"]).partition("+")[0],
        f"{told['device']}, {threads} thread{'s' if threads > 1 else ''}",
        str(told.get("processor", "")),
        seconds,
        str(plan.get("chunk") or ""),
    )


def current_commit(root: Path = ROOT) -> str:
    """The commit of the source that runs here, empty where it is no checkout.

    Returns:
        Twelve digits, and ``+`` where a file that numbers follow from is not as committed.
    """
    found = _git(root, "rev-parse", "--show-toplevel", "HEAD").split()
    if len(found) != 2 or Path(found[0]).resolve() != root.resolve():
        return ""
    changed = _git(root, "status", "--porcelain", "--", *DECIDING)
    return found[1][:12] + ("+" if changed else "")


def _git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    except OSError:  # no git on this machine
        return ""
    return done.stdout if done.returncode == 0 else ""


@dataclass
class Notes:
    """The file ``provenance.json`` of a study's folder: for each run the commit under which it was computed.

    A run keeps its line. One that another commit has begun and this one ends has both, ``a to b``: its bits are those
    of neither alone. A run that was there before notes were taken has no line, and its commit stays unknown.

    Attributes:
        file: Where it lies.
        commit: Under which runs are computed now.
        runs: By the id of a run.
    """

    file: Path
    commit: str
    runs: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, commit: str) -> Notes:
        """Notes in a folder, as far as there are any.

        Raises:
            OutputError: the file is damaged.
        """
        file = folder / "provenance.json"
        try:
            runs = json.loads(file.read_text(encoding="utf-8"))["runs"] if file.exists() else {}
        except (OSError, ValueError, KeyError, TypeError):
            raise OutputError(f"{file}: not the commits of runs; put it away, and its runs have none") from None
        return cls(file, commit, {str(run): str(one) for run, one in runs.items()})

    def note(self, message: Message, finished: Collection[str], begun: Collection[str]) -> None:
        """Note a run when it begins or ends here.

        Args:
            message: From the study.
            finished: Runs that had ended before.
            begun: Runs of which there was something before; without a line, nobody knows under which commit.
        """
        run = message.run
        if run in finished or (isinstance(message, Outcome) and message.status != "complete"):
            return
        known = self.runs.get(run)
        if known is None and run in begun:
            return
        parts = [self.commit] if known is None else known.split(" to ")
        self._keep(run, " to ".join(parts if parts[-1] == self.commit else [*parts, self.commit]))

    def _keep(self, run: str, commit: str) -> None:
        if self.runs.get(run) == commit:
            return
        self.runs[run] = commit
        beside = self.file.with_suffix(".part")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(wfl.to_json({"runs": dict(sorted(self.runs.items()))}), encoding="utf-8")
            beside.replace(self.file)
        except OSError as error:
            raise OutputError(f"{self.file} cannot be written: {error.strerror or error}") from error
