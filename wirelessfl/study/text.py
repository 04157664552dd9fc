"""A study as one file of its own: the base written into it, overrides among its keys."""

from collections.abc import Sequence
from pathlib import Path

from wirelessfl.scenario.loader import with_own_profile
from wirelessfl.scenario.overrides import Override
from wirelessfl.scenario.yamltree import Document, dump_yaml, plain_value
from wirelessfl.study.file import StudyFile

_HEAD = "# The study as it was run: its base and the overrides of the command line are written into it.\n"


def self_contained(name: str, file: StudyFile, base: Document, folder: Path | None, of_base: Sequence[Override]) -> str:
    """Text of a study file with the same runs, which needs no other file for them.

    Args:
        name: Its name.
        file: Its keys.
        base: The base scenario as it is written.
        folder: What the paths of the base are relative to; None where a recorded scenario may name none.
        of_base: Overrides of the base, none of which an axis sets as well.
    """
    typed = {".".join(override.path): override.value for override in of_base}
    changed = {"name": name, "base": with_own_profile(base, folder).tree, "set": {**file.set, **typed}}
    tree = {**plain_value(file), **changed}
    return _HEAD + dump_yaml({key: value for key, value in tree.items() if value != {}})
