"""What the command line writes is text, whatever a name holds and whatever the terminal can show."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

import h5py
import pytest
from rich.table import Table

from wirelessfl.cli import main
from wirelessfl.cli.terminal import open_console, printable

ESCAPES = "\x1b[31m\x1b]0;title\x07\x9b2J\r\u202e"


JAMMER = (
    *("privacy", "jammer", "--epsilon", "1", "--rounds", "9", "--samples", "99"),
    *("--server-gain", "1", "--channel-noise-std", "1", "--delta", "1e-5"),
)


class Run(NamedTuple):
    """What a command wrote, and how it ended."""

    stdout: str
    stderr: str
    returncode: int


def run(*arguments: str, encoding: str = "utf-8") -> Run:
    """The command in this process, on streams of an encoding."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        main(list(arguments))
    texts = []
    for stream in streams:
        stream.flush()
        raw = stream.buffer
        assert isinstance(raw, io.BytesIO)
        texts.append(raw.getvalue().decode(encoding))
    return Run(texts[0], texts[1], int(end.value.code or 0))


@pytest.mark.parametrize(
    "arguments",
    [
        JAMMER,
        ("validate", "quickstart", "--set", "rounds=1"),
        ("validate", "quickstart", "--set", "rounds=1", "--json"),
        ("validate", "quickstart", "--set", "naïve=ε"),
        ("schema",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_output_that_cannot_encode_greek_gets_escapes(arguments: tuple[str, ...]) -> None:
    ascii_only, plain = run(*arguments, encoding="ascii"), run(*arguments)
    assert ascii_only.returncode == plain.returncode
    assert not (plain.stdout + plain.stderr).isascii()
    assert "\\u03" in ascii_only.stdout + ascii_only.stderr
    if "--json" in arguments or arguments[0] == "schema":
        assert json.loads(ascii_only.stdout) == json.loads(plain.stdout)


def test_control_characters_are_escaped() -> None:
    assert printable("ε is 3\n  in two lines") == "ε is 3\n  in two lines"
    assert printable(ESCAPES).isprintable()
    assert printable("\x1b[31m") == "\\u001b[31m"
    assert json.loads(f'"{printable(chr(0x9B))}{printable(chr(0xE0001))}"') == "\x9b\U000e0001"
    assert printable("caf\udce9") == "caf\\udce9"  # bytes of a file name that are not UTF-8


def test_names_in_tables_mean_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("[/nope]")
    table.add_row(f"[/nope] [bold]x[/bold] :smile: {ESCAPES}")
    open_console().print(table)
    shown = capsys.readouterr().out
    assert shown.count("[/nope]") == 2
    assert "[bold]x[/bold] :smile:" in shown
    assert all(line.isprintable() for line in shown.splitlines())


def test_names_in_messages_are_escaped() -> None:
    for arguments in (
        ("validate", f"{ESCAPES}.yaml"),
        ("validate", "quickstart", "--set", f"{ESCAPES}=1"),
        ("report", ESCAPES),
        ("replay", f"[/nope]{ESCAPES}"),
        (ESCAPES,),
    ):
        done = run(*arguments)
        assert done.returncode == 2
        assert all(line.isprintable() for line in done.stderr.split("\n"))


def test_a_file_name_that_is_no_text() -> None:
    done = run("validate", os.fsdecode(b"caf\xe9.yaml"))
    assert done.returncode == 2
    assert "\\udce9" in done.stderr


@pytest.mark.slow
def test_markup_in_the_name_of_a_trace(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    made = run("simulate", "quickstart", "--set", "rounds=1", "--out", out, "--quiet")
    assert made.returncode == 0, made.stderr
    with h5py.File(tmp_path / "run" / "trace.h5", "r+") as file:
        file.attrs["name"] = f"[/nope]<script>{ESCAPES}"
    shown = run("replay", f"{out}/trace.h5")
    assert shown.returncode == 0, shown.stderr
    assert "[/nope]<script>\\u001b" in shown.stdout
    assert all(line.isprintable() for line in shown.stdout.split("\n"))
    page = run("report", out)
    assert page.returncode == 0, page.stderr
    html = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "[/nope]&lt;script&gt;" in html
    assert "<script>\x1b" not in html
