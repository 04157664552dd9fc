"""Files of data that a scenario names: where they lie on this machine, and hashes by which others are known."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

from wirelessfl.errors import DataError
from wirelessfl.inputs import data_folders, file_fingerprint
from wirelessfl.learning import PartitionedData, Population
from wirelessfl.scenario import Scenario
from wirelessfl.scenario.base import CoreVariant, Section

DATASET = "data.dataset"
_TAG = "name"
_SHOWN = 12  # digits of a hash that a message shows

_Variant = TypeVar("_Variant", bound=Section)


def found(scenario: Scenario, path: str, variant: _Variant) -> _Variant:
    """A variant whose files and folders are named where they lie on this machine.

    Args:
        scenario: what it is a part of.
        path: its key path.
        variant: one of the package's own; what the options of the user's own mean is not known.

    Raises:
        DataError: one is nowhere, with the places that were looked at.
    """
    if not isinstance(variant, CoreVariant):
        return variant
    named = variant.named_files().items()
    kinds: dict[str, Literal["file", "folder"]] = {name: "folder" if name == "root" else "file" for name, _ in named}
    places = {}
    for name, text in named:
        try:
            places[name] = str(scenario.places.find(f"{path}.{name}", text, kinds[name]))
        except DataError as error:
            error.args = (f"{error.args[0]}{_allowed(variant, name)}",)
            raise
    return variant.model_copy(update=places)


@contextmanager
def reading(dataset: CoreVariant) -> Iterator[None]:
    """Errors of the reader of a dataset with the key in front that names the damaged file or is wrong.

    Args:
        dataset: with its files where they lie on this machine.

    Raises:
        DataError: that of the reader, or what the system refuses.
    """
    try:
        yield
    except OSError as error:
        found = f"{error.filename or 'a file'}: cannot be read: {error.strerror or error}"
        raise DataError(_of_the_key(dataset, found)) from error
    except DataError as error:
        error.args = (_of_the_key(dataset, str(error.args[0])),)
        raise


def _of_the_key(dataset: CoreVariant, message: str) -> str:
    # The message with its key in front, and what is allowed at the end where it does not say so itself
    if message.startswith("data."):
        return message
    own = message.partition(":")[0]
    if own in type(dataset).model_fields:
        return f"{DATASET}.{message}"
    files = {name: path for name, path in dataset.named_files().items() if message.startswith(path)}
    name = max(files, key=lambda one: len(files[one]), default=_TAG)
    allowed = "" if "allowed" in message else _allowed(dataset, name)
    return f"{DATASET}.{name}: {message}" if name == _TAG else f"{DATASET}.{name}: found {message}{allowed}"


def _allowed(variant: CoreVariant, name: str) -> str:
    # What may stand for a file: the first sentence of the meaning of its key
    meaning = str(type(variant).model_fields[name].description).partition(". ")[0].removesuffix(".")
    return f"; allowed: {meaning if meaning[:2].isupper() else meaning[:1].lower() + meaning[1:]}"


def fingerprints(scenario: Scenario, population: Population) -> dict[str, str]:
    """SHA-256 of the dataset as it was loaded and of each further file, by key path.

    A population that is made on demand has none, and neither has a file that is not there: then the run, a repeated
    one, takes what it holds from the recording.
    """
    whole = population.fingerprint if isinstance(population, PartitionedData) else None
    hashes = {} if whole is None else {DATASET: whole}
    for key, text in scenario.named_files().items():
        if not key.startswith(f"{DATASET}."):
            with suppress(DataError):
                hashes[key] = file_fingerprint(scenario.places.find(key, text))
    return hashes


def other_data(attributes: Mapping[str, Any], scenario: Scenario, population: Population) -> str | None:
    """What differs between the data of a recorded run and those here, in words; None where nothing is known to.

    Args:
        attributes: those of the trace; earlier versions recorded no fingerprint.
        scenario: what ran.
        population: its data as loaded here.
    """
    recorded = json.loads(attributes.get("data_fingerprint", "{}"))
    here = fingerprints(scenario, population)
    differing = (key for key in here if key in recorded and recorded[key] != here[key])
    return next(
        (
            f"{key}: the data here are not those that the run was recorded with: found the fingerprint "
            f"{here[key][:_SHOWN]}…, recorded is {str(recorded[key])[:_SHOWN]}…"
            for key in differing
        ),
        None,
    )


def folders_of_data(scenario: Scenario, beside: Path) -> list[str]:
    """Folders in which the relative names of a scenario were found, relative to that of its trace.

    Those of WIRELESSFL_DATA are left out, for every machine has its own, and so is what has no folder in common with
    the trace but the root of all.
    """
    here, others = beside.resolve(), [folder.resolve() for folder in data_folders()]
    folders: dict[str, None] = {}
    for key, text in scenario.named_files().items():
        with suppress(DataError):
            path, name = scenario.places.find(key, text), Path(text).expanduser()
            folder = next((one for one in scenario.places.folders() if one / name == path), here)
            if not name.is_absolute() and folder not in others and os.path.commonpath([folder, here]) != os.path.sep:
                folders[os.path.relpath(folder, here)] = None
    return list(folders)
