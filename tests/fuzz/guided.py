"""Coverage-guided fuzzing of what reads text and bytes: ``python -m tests.fuzz.guided scenario FOLDER``.

Atheris (libFuzzer for Python) mutates inputs towards lines that none has reached; it is no dependency of the project.
Inputs that reached something new are kept in the folder; further arguments go to libFuzzer (``-max_total_time=600``).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml

from wirelessfl.errors import WirelessFLError


def read_scenario(data: bytes) -> None:
    """A scenario as text; whatever it is, it is accepted or refused in words."""
    from wirelessfl.scenario import parse_scenario

    try:
        parse_scenario(data.decode("utf-8", "replace"), "fuzz.yaml")
    except WirelessFLError as error:
        assert str(error)


def read_checkpoint(data: bytes) -> None:
    """The body of a checkpoint behind a right checksum."""
    from wirelessfl.trace import RunIdentity, load_checkpoint
    from wirelessfl.trace.checkpoint import _start_of_body

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.bin"
        path.write_bytes(_start_of_body(data) + data)
        try:
            load_checkpoint(path, RunIdentity("0" * 32, "0" * 64, 1, "0"))
        except WirelessFLError as error:
            assert str(error)


TARGETS: dict[str, Callable[[bytes], None]] = {"scenario": read_scenario, "checkpoint": read_checkpoint}


def seeds() -> dict[str, list[bytes]]:
    """Healthy inputs of each target, and some that are not."""
    scenarios = [one.read_bytes() for one in (Path(__file__).parents[2] / "scenarios").glob("*.yaml")]
    tree = b'{"map": {"run": {"map": {}}, "state": {"map": {"a": {"array": ["<f8", [1], 0]}, "b": {"int": "0x1"}}}}}'
    bodies = [len(text).to_bytes(8, "little") + text + bytes(8) for text in (tree, b"{}", b"[1]", b"null")]
    return {"scenario": [*scenarios, b"", b"a: &a [*a]", yaml.safe_dump({"name": "x"}).encode()], "checkpoint": bodies}


def main() -> None:
    """Hand one target to Atheris."""
    if importlib.util.find_spec("atheris") is None:
        sys.exit("atheris is not installed: pip install atheris")
    name, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(seeds()[name]):
        (folder / f"seed-{number}").write_bytes(content)
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["wirelessfl.scenario", "wirelessfl.trace", "yaml"]):
        importlib.import_module("wirelessfl.scenario")
        importlib.import_module("wirelessfl.trace")
    atheris.Setup([sys.argv[0], *sys.argv[3:], str(folder)], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
