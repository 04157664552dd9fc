"""``wirelessfl pack``, and archives that other commands are given in the place of a run."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirelessfl.cli.terminal import OutputPath, json_option, open_console, remark, say
from wirelessfl.errors import WirelessFLError
from wirelessfl.inputs import Places

if TYPE_CHECKING:
    from wirelessfl.analysis.pack.layout import PackedRun
    from wirelessfl.analysis.pack.reading import Archive
    from wirelessfl.analysis.replay.recording import Recording

_SHOWN_FROM = 64 << 20
"""Bytes from which on packing and unpacking takes long enough for a progress line."""
_MOST_REMARKS = 8


@contextmanager
def bytes_line(words: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Progress line on stderr over bytes, for many of them; yields the function to call with those done since."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = open_console(stderr=True)
    columns = (TextColumn(words), BarColumn(bar_width=20), DownloadColumn(), TimeRemainingColumn(compact=True))
    silent = quiet or total < _SHOWN_FROM or not console.is_terminal
    with Progress(*columns, console=console, disable=silent) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--out", type=OutputPath(), metavar="FILE.zip", help="The archive [the name of PATH, here].")
@click.option(
    "--with-data", is_flag=True, help="Pack the files of data too that the scenario names relative to itself."
)
@click.option("--quiet", is_flag=True, help="Print neither progress nor a summary.")
@json_option
def pack(paths: tuple[Path, ...], out: Path | None, with_data: bool, quiet: bool, as_json: bool) -> None:
    """Pack each PATH, the folder of a finished run or of a study, into one archive that others can verify.

    It holds traces, resolved scenarios, sources of your own code, fingerprints of the data, the list of installed
    packages and the figures. `wirelessfl replay FILE.zip --verify` repeats the runs on any machine.
    """
    from wirelessfl.analysis.pack.writing import write_archive
    from wirelessfl.summary import to_json

    with ExitStack() as line:
        packed = write_archive(
            paths,
            out,
            with_data=with_data,
            begin=lambda total: line.enter_context(bytes_line("packing", total, quiet=quiet)),
        )
    manifest = packed.manifest
    for words in manifest.left_out[:_MOST_REMARKS]:
        remark(f"note: not packed: {words}")
    if len(manifest.left_out) > _MOST_REMARKS:
        remark(f"note: and {len(manifest.left_out) - _MOST_REMARKS} more; the manifest has all")
    if as_json:
        runs = [{"name": run.name, "label": run.label, "status": run.status} for run in manifest.runs]
        answer = {"archive": str(packed.path), "sha256": packed.sha256, "runs": runs, "left_out": manifest.left_out}
        say(to_json(answer), nl=False)
    elif not quiet:
        from wirelessfl.cli.console import print_rows

        size = sum(facts.bytes for facts in manifest.files.values())
        leave = " --allow-plugins" if any(run.outside for run in manifest.runs) else ""
        count = f"{len(manifest.runs)} run{'s' if len(manifest.runs) > 1 else ''}, {len(manifest.files)} files"
        print_rows(
            [
                ("archive", f"{packed.path}: {count} of {_size(size)} in {_size(packed.path.stat().st_size)}"),
                ("SHA-256", packed.sha256),
                ("to verify", f"wirelessfl replay {shlex.quote(str(packed.path))} --verify{leave}"),
            ]
        )


def _size(count: float) -> str:
    return f"{count / 1e6:.3g} MB" if count >= 1e6 else f"{count / 1e3:.3g} kB"


class Unpacked:
    """An archive with a temporary folder for its runs.

    Args:
        archive: What is in it.
        folder: The folder.
    """

    def __init__(self, archive: Archive, folder: Path) -> None:
        self.archive = archive
        self.folder = folder

    @property
    def outputs(self) -> Path:
        """Folder for what is made of it, beside it."""
        return self.archive.path.with_name(f"{self.archive.path.stem}-replay")

    def named(self, text: str) -> str:
        """A message with the files of the temporary folder by their names in the archive."""
        return text.replace(f"{self.folder}/", f"{self.archive.path}:")

    @contextmanager
    def recording(self, run: PackedRun, first: int | None = None, last: int | None = None) -> Iterator[Recording]:
        """Recording of one of its runs, unpacked for as long as it is looked at.

        Raises:
            InputError: it is damaged, or what stands beside its trace is not what it runs.
        """
        from wirelessfl.analysis.pack.sources import check_sources
        from wirelessfl.analysis.replay.recording import open_recording

        place, data = (self.folder.joinpath(*name.split("/")) for name in (run.name, run.data_folder))
        if not (data.exists() or data.is_relative_to(place)):  # of a study; it stays for its other runs
            self.archive.extract(self.folder, run.data_folder)
        self.archive.extract(self.folder, run.name)
        try:
            check_sources(self.archive.path, place / "trace.h5")
            places = Places.beside(data, place, self.archive.path.parent)
            yield open_recording(place / "trace.h5", first, last, places)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def unpack(self) -> list[Path]:
        """Folders of all that was packed, unpacked."""
        self.archive.extract(self.folder)
        return [self.folder / name for name in self.archive.manifest.packed]


@contextmanager
def unpacked(path: Path, *, quiet: bool) -> Iterator[Unpacked]:
    """An archive, checked; messages name its files and not those of the temporary folder.

    Raises:
        ArchiveError: it is damaged, or would write elsewhere or too much.
    """
    from wirelessfl.analysis.pack.machine import other_versions
    from wirelessfl.analysis.pack.reading import open_archive, unpacking

    with open_archive(path) as archive, unpacking(archive) as folder:
        with bytes_line("checking", archive.size, quiet=quiet) as on_bytes:
            archive.check(on_bytes)
        for words in other_versions(archive.manifest.packages):
            remark(f"note: {path}: packed with {words}; numbers may differ in their last bits")
        opened = Unpacked(archive, folder)
        try:
            yield opened
        except WirelessFLError as error:
            error.args = tuple(opened.named(one) if isinstance(one, str) else one for one in error.args)
            raise


@contextmanager
def folders_of(paths: tuple[Path, ...]) -> Iterator[list[Path]]:
    """The same paths with archives unpacked for as long as they are looked at."""
    from wirelessfl.analysis.pack.reading import looks_like_archive

    with ExitStack() as stack:
        found: list[Path] = []
        for path in paths:
            archive = looks_like_archive(path)
            found += stack.enter_context(unpacked(path, quiet=True)).unpack() if archive else [path]
        yield found
