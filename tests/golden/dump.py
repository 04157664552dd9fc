"""Every recorded number of the shipped scenarios, as digests: what a change that keeps behaviour leaves as it is.

``python -m tests.golden.dump OUT.json [SCENARIO ...]`` writes them down, ``--compare BEFORE.json AFTER.json`` names
every difference and exits with 1 if there is one.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import warnings
from pathlib import Path

import h5py
import numpy as np

import wirelessfl as wfl
from wirelessfl.errors import WirelessFLError

ROUNDS = 3
CHUNK = 50
"""Clients trained at a time, given because a size that was found by timing changes the last digits."""
NOT_NUMBERS = {"wall_time", "created", "run_id", "package_version", "processor", "long_name", "source"}
"""What differs between two runs of one commit, says which commit it was, or describes a variable in words."""

Digests = dict[str, str]
SCENARIOS = Path(__file__).parents[2] / "scenarios"


def _digest(value: object) -> str:
    array = np.asarray(value)
    content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return hashlib.sha256(f"{array.shape}".encode() + content).hexdigest()[:16]


def digests_of(trace: Path) -> Digests:
    """The digest of every dataset and attribute of a trace, by its path."""
    found: Digests = {}

    def note(name: str, item: h5py.Dataset | h5py.Group) -> None:
        if isinstance(item, h5py.Dataset) and item.name.rsplit("/", 1)[-1] not in NOT_NUMBERS:
            found[name] = _digest(item[()])
        for key, value in item.attrs.items():
            if key not in NOT_NUMBERS and not key.isupper():
                found[f"{name}@{key}"] = _digest(value)

    with h5py.File(trace, "r") as file:
        note("", file)
        file.visititems(note)
    return found


def dump(names: list[str]) -> dict[str, Digests]:
    """The digests of a few rounds of each scenario on the CPU."""
    results: dict[str, Digests] = {}
    for path in sorted(SCENARIOS.glob("*.yaml")):
        if names and path.stem not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                scenario = wfl.load_scenario(str(path), overrides={"rounds": ROUNDS, "compute.chunk": CHUNK})
                wfl.simulate(scenario, out=folder, overwrite=True, device="cpu", threads=2)
                results[path.stem] = digests_of(Path(folder) / "trace.h5")
            except WirelessFLError as refusal:
                results[path.stem] = {"refused": str(refusal)}
        print(path.stem, len(results[path.stem]), file=sys.stderr, flush=True)
    return results


def differences(before: dict[str, Digests], after: dict[str, Digests]) -> list[str]:
    """What the scenarios in both dumps do not have in common, a line each."""
    lines = []
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        lines += [f"{name}: {key} dropped" for key in sorted(old.keys() - new.keys())]
        lines += [f"{name}: {key} new" for key in sorted(new.keys() - old.keys())]
        lines += [f"{name}: {key} differs" for key in sorted(old.keys() & new.keys()) if old[key] != new[key]]
    return lines


def main(arguments: list[str]) -> int:
    """The command line of this module."""
    warnings.simplefilter("ignore")
    if arguments[0] == "--compare":
        before, after = (json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments[1:])
        lines = differences(before, after)
        print(*lines, f"{len(before.keys() & after.keys())} scenarios, {len(lines)} differences", sep="\n")
        return bool(lines)
    Path(arguments[0]).write_text(json.dumps(dump(arguments[1:]), indent=1, sort_keys=True), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
