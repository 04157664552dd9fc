"""Identity of a run of a study, by what it runs."""

import hashlib
import json
import secrets
from contextlib import suppress
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any

from wirelessfl.errors import DataError
from wirelessfl.inputs import file_fingerprint
from wirelessfl.plugins import Sources
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.scenario import outside_sources

# Keys that were added after runs had been stored, each with the value that means what was done before: with it a run
# keeps its id
_LATER: dict[tuple[str, ...], Any] = {
    ("data", "augment"): None,
    ("data", "validation"): None,
    ("data", "test"): None,
    ("data", "dataset", "download"): False,
    ("data", "dataset", "fnlwgt"): False,
    ("data", "dataset", "scaling"): "public",
    ("model", "trainable"): ".*",
    ("model", "lora"): None,
    ("training", "privacy", "clipping", "update"): "step",
    ("training", "privacy", "gradient_clip"): None,
    ("training", "partial_work"): False,
    ("timing", "compute_deadline_s"): None,
    ("clients", "roles"): (),
    ("evaluate", "client_drift"): False,
    ("training", "robust"): {"rule": "mean"},
    ("privacy", "observer"): None,
    ("downlink",): {"model": "error_free"},
    ("uplink", "codec", "error_feedback"): False,
    ("uplink", "grant_delay_s"): 0.0,
    ("uplink", "harq"): None,
    ("uplink", "ofdma"): "fixed",
    ("uplink", "jammer", "antennas"): 1,
    ("uplink", "slot_groups"): 1,
    ("uplink", "rate", "power"): "equal",
    ("uplink", "receiver"): None,
    ("uplink", "receiver", "array"): {"geometry": "ula", "spacing": 0.5},
    ("uplink", "receiver", "correlation"): {"model": "none"},
}


_SOLE = ("file", "weights")  # keys of the one file of most sections


def content_id(scenario: Scenario) -> str:
    """Sixteen hexadecimal digits that are the same for equal scenarios, in every process and on every machine.

    They cover every key with the value that counts, defaults included, the bytes of every single file that it names
    (channels, fading, links, availability, places, norms, weights, data), and nothing else: not what lies in folders of
    data, not the order of the keys in the file, not its comments, not how a value was written. Among n runs two
    different ones share an id with probability below n²/2⁶⁵, about 3e-12 for 10,000 runs.

    Twelve more follow where the scenario names code from outside the package: of its sources, the user's modules that
    these import, and the versions of their packages. Where a text is not known, they are drawn anew.

    Raises:
        ScenarioError: a module was edited after it was imported.
    """
    return id_of(scenario, outside_sources(scenario))


def id_of(scenario: Scenario, sources: Sources | None) -> str:
    """As `content_id`, where the sources are known already."""
    tree = scenario.model_dump(by_alias=True)
    for key, text in scenario.named_files().items():
        _name_the_bytes(scenario, key, text, tree)
    for path, value in _LATER.items():
        _drop(tree, path, value)
    content = json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False)
    digits = hashlib.sha256(content.encode()).hexdigest()[:16]
    if sources is None:
        return digits
    return f"{digits}-{secrets.token_hex(6) if sources.unknown else sources.digest[:12]}"


def _name_the_bytes(scenario: Scenario, key: str, text: str, tree: dict[str, Any]) -> None:
    # The hash of a file, as a key of its section; where it is not there, the run says so
    *sections, name = key.split(".")
    section = reduce(dict.__getitem__, sections, tree)
    with suppress(DataError, OSError):
        path = scenario.places.find(key, text)
        if path.is_file():
            stat = path.stat()
            content = _fingerprint(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)
            section["content" if name in _SOLE else f"content of {name}"] = content


@lru_cache(maxsize=64)
def _fingerprint(path: Path, inode: int, size: int, modified_ns: int) -> str:
    # A study of thousands of runs reads each file once, and again where it was written to
    return file_fingerprint(path)


def _drop(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *sections, name = path
    for section in sections:
        tree = tree.get(section) or {}
    if name in tree and tree[name] == value:
        del tree[name]
