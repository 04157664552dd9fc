"""Attributes of the root group of a trace: identity, scenario, plan and provenance of a run."""

from collections.abc import Mapping
from typing import Any

from wirelessfl.trace.layout import STATUSES, Attribute

ATTRIBUTES = (
    Attribute("status", "state of the run", among=STATUSES),
    Attribute("name", "name of the scenario", required=False),
    Attribute("scenario", "the resolved scenario, as YAML"),
    Attribute("scenario_digest", "SHA-256 of that text, in hexadecimal", later=True),
    Attribute("seed", "seed of all random streams", kind="whole number"),
    Attribute(
        "stream_version",
        "rises whenever the same scenario and seed give other numbers",
        kind="whole number",
        later=True,
    ),
    Attribute("run_id", "drawn at random when the run began; its checkpoint has the same", later=True),
    Attribute("created", "when the run began, ISO 8601"),
    Attribute("package_version", "version of wirelessfl"),
    Attribute("torch_version", "version of PyTorch"),
    Attribute(
        "processor",
        "name, family, model and widest vector instructions of the processor; the GPU where training ran on one",
        later=True,
    ),
    Attribute(
        "kernels",
        "compiled kernels in use on the machine, as a JSON list; NumPy and PyTorch did the work of the others",
        required=False,
        kind="JSON list of texts",
    ),
    Attribute("device", "where training ran"),
    Attribute(
        "why_different",
        "why published and accounted ε differ, as JSON; written at the end",
        required=False,
        kind="JSON list of texts",
    ),
    Attribute(
        "release_settings",
        "kinds of releases in /privacy, as a JSON list; known at the end",
        required=False,
        kind="JSON list of texts",
    ),
    Attribute(
        "ended_by",
        "keys of the limits that ended the run, as a JSON list: rounds, or those of stop; empty until it ends",
        required=False,
        kind="JSON list of texts",
    ),
    Attribute(
        "plan",
        "chunks, threads, device and precision, as JSON; reused to repeat the run",
        required=False,
        kind="JSON mapping",
    ),
    Attribute(
        "sources",
        "code from outside the package, as JSON: texts of its files by path, versions of its installed packages",
        required=False,
        kind="JSON mapping of sources",
    ),
    Attribute("sources_digest", "SHA-256 of that text, in hexadecimal", required=False),
    Attribute("delta", "δ of both ε", required=False, kind="positive number"),
    Attribute("dimension", "number of trainable parameters d", required=False, kind="whole number"),
    Attribute("total_samples", "samples of all clients |D|", required=False, kind="whole number"),
    Attribute(
        "data_fingerprint",
        "SHA-256 of the dataset as loaded and of further files, by key path, as JSON",
        required=False,
        kind="JSON mapping",
    ),
    Attribute(
        "data_folders",
        "folders in which relative names of data were found, relative to that of the trace, as JSON",
        required=False,
        kind="JSON list of texts",
    ),
)
"""Attributes of the root group, in the order of the reference."""


def run_name(attributes: Mapping[Any, Any]) -> str:
    """Name of the scenario of a run, by the attributes of its trace; ``unnamed`` where a trace has none."""
    return str(attributes.get("name", "unnamed"))
