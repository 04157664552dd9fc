"""Whether a data set is read from its files or replaced by its stand-in: settled when a scenario is read.

What ran is then in the resolved scenario, and neither a resumed nor a verified run can slip from one to the other.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ADULT_FOLDERS = ("adult", "Adult", ".")
ADULT_FILES = ("adult.data", "adult.test")
ROOT_VARIABLE = "WIRELESSFL_DATA"


def settle_source(tree: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A scenario's tree with ``data.dataset.source: auto`` replaced by what it comes to, and a note where that matters.

    A root that the scenario names is a wish for the files: where they are missing there, reading them says so.
    """
    settled, data = dict(tree), tree.get("data")
    if not isinstance(data, dict):
        return settled, []
    dataset = data.get("dataset")
    if not isinstance(dataset, dict) or (dataset.get("name"), dataset.get("source")) != ("adult", "auto"):
        return settled, []
    named = dataset.get("root") is not None
    source = "files" if named or _adult_is_below(os.environ.get(ROOT_VARIABLE)) else "synthetic"
    settled["data"] = {**data, "dataset": {**dataset, "source": source}}
    if source == "files":
        return settled, []
    return settled, [
        "data.dataset.source: synthetic rows in the form of adult, for its files were not found; "
        f"to read them, set data.dataset.root or {ROOT_VARIABLE} to the folder that holds them"
    ]


def _adult_is_below(root: str | None) -> bool:
    # Whether some folder holds both files, plain or packed.
    if not root:
        return False
    folders = [Path(root).expanduser() / name for name in ADULT_FOLDERS]
    return any(
        all((folder / name).is_file() or (folder / f"{name}.gz").is_file() for name in ADULT_FILES)
        for folder in folders
    )
