"""The documentation as something that runs: its fenced blocks, in order, in a folder of their own.

What a block does follows from its language:

- a block with ``title="NAME"`` is a file of that name; a YAML file is also checked as what it is used for;
- ``yaml`` without a title is part of a scenario, and has to be one together with a name;
- ``python`` without a title runs, all blocks of a page in one namespace;
- ``console`` holds commands after ``$`` and what they print; ``# exit N`` behind a command is its exit code, ``&`` at
  its end leaves it running until the page is over;
- ``text`` right after ``python`` is what that printed; any other ``text``, and every other language, is prose.

Of what is printed, words have to be the same, ``...`` stands for anything, and numbers may differ by 2 %: another
processor rounds differently.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wirelessfl.cli import main
from wirelessfl.scenario import parse_scenario

TOLERANCE = 0.02

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?[^\n]*\n(?P<text>.*?)^(?P=indent)```\s*$",
    re.MULTILINE | re.DOTALL,
)
_PIECE = re.compile(r"\.\.\.|\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|\w+|[^\w\s]")
_EXIT = re.compile(r"\s+# exit (\d+)$")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    title: str | None
    text: str
    line: int


def blocks(markdown: str) -> Iterator[Block]:
    """The fenced blocks of a page, without the indentation of the list or note they stand in."""
    for match in _BLOCK.finditer(markdown):
        indent = len(match["indent"])
        text = "".join(line[indent:] if line.strip() else line for line in match["text"].splitlines(keepends=True))
        yield Block(match["language"], match["title"], text, markdown.count("\n", 0, match.start()) + 1)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with what it is said to print."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield command, output


def differs(said: str, printed: str) -> str | None:
    """Where a text that was printed leaves what was said about it; None where it does not."""
    found = _PIECE.findall(printed)
    at = 0
    for number, segment in enumerate(_segments(said)):
        starts = range(at, len(found) - len(segment) + 1) if number else [0]
        start = next((start for start in starts if _matches(segment, found[start:])), None)
        if start is None:
            return f"nothing printed matches: {' '.join(segment)}"
        at = start + len(segment)
    if at < len(found) and not said.rstrip().endswith("..."):
        return f"more is printed: {' '.join(found[at:])}"
    return None


def _segments(said: str) -> list[list[str]]:
    """What was said, cut where anything may stand."""
    segments: list[list[str]] = [[]]
    for piece in _PIECE.findall(said):
        if piece == "...":
            segments.append([])
        else:
            segments[-1].append(piece)
    return segments


def _matches(segment: list[str], found: list[str]) -> bool:
    return len(segment) <= len(found) and all(_same(one, other) for one, other in zip(segment, found, strict=False))


def _same(said: str, printed: str) -> bool:
    if said[0].isdigit() and printed[0].isdigit():
        with contextlib.suppress(ValueError):
            return math.isclose(float(said.replace(",", "")), float(printed.replace(",", "")), rel_tol=TOLERANCE)
    return said == printed


class PageRun:
    """Carries a page out, in the current folder, whose modules can be imported."""

    def __init__(self) -> None:
        """Nothing has run."""
        self.printed = ""
        self._folder = str(Path.cwd())
        sys.path.insert(0, self._folder)
        self._names: dict[str, Any] = {"__name__": "page"}
        self._background: list[subprocess.Popen[bytes]] = []

    def carry_out(self, block: Block, before: Block | None) -> None:
        """One block; ``before`` is the one above it."""
        if block.title is not None:
            path = Path(block.title)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "yaml":
            parse_scenario(f"name: page\n{block.text}")
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(block.text, f"line {block.line}", "exec"), self._names)
            self.printed = out.getvalue()
        elif block.language == "console":
            for command, output in commands(block.text):
                self._command(command, output)
        elif block.language == "text" and before is not None and before.language == "python" and not before.title:
            self._compare("the block above", block.text, self.printed)

    def close(self) -> None:
        """End what still runs in the background, and forget the page's modules."""
        for process in reversed(self._background):
            process.terminate()
            process.wait(timeout=30)
        sys.path.remove(self._folder)
        self._forget_modules()

    def _forget_modules(self) -> None:
        # Of the page, as the next command of a reader would be a new process
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(self._folder):
                del sys.modules[name]

    def _command(self, command: str, output: str) -> None:
        wanted = _EXIT.search(command)
        command = _EXIT.sub("", command)
        if command.endswith("&"):
            words = shlex.split(command.removesuffix("&"))
            self._background.append(subprocess.Popen(_own(words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            return
        self._forget_modules()
        code, printed = run_here(command) if _is_ours(command) else run_in_shell(command)
        assert code == (int(wanted[1]) if wanted else 0), f"$ {command}\nexit {code}\n{printed}"
        self._compare(f"$ {command}", output, printed)

    def _compare(self, what: str, said: str, printed: str) -> None:
        if not said.strip():
            return
        difference = differs(said, printed)
        assert difference is None, f"{what}\n{difference}\n--- printed\n{printed}"


def _is_ours(command: str) -> bool:
    return command.startswith("wirelessfl ") and not any(sign in command for sign in "|><;")


def run_here(command: str) -> tuple[int, str]:
    """A wirelessfl command in this process: exit code, and what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(SystemExit):
        try:
            main(args=shlex.split(command)[1:], prog_name="wirelessfl")
        except SystemExit as end:
            return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


def run_in_shell(command: str) -> tuple[int, str]:
    """Any other command."""
    done = subprocess.run(_with_own_programs(command), shell=True, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def _with_own_programs(command: str) -> str:
    return f'export PATH="{Path(sys.executable).parent}:$PATH"; {command}'


def _own(words: list[str]) -> list[str]:
    return [str(Path(sys.executable).parent / words[0]), *words[1:]]
