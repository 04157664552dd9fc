"""Parts of a page that follow from declarations and study files: settings and coverage."""

from __future__ import annotations

from functools import cache
from typing import Any

from publications.catalogue import find_paper, study_file
from publications.paper import Paper, Setting
from publications.studies import SIZES, Size
from publications.tables import value_of
from wirelessfl.study import load_study

_MOST = 6
"""So many values of a key are listed; of more, the first and the last."""


def setting_rows(paper: Paper) -> list[dict[str, str]]:
    """The paper's setting beside ours in every size."""
    sizes = [size for size in SIZES if paper.studies_in(size)]
    return [
        {
            "setting": one.name,
            "paper": one.paper,
            **{f"here, `{size}`": _ours(paper, one, size) for size in sizes},
        }
        for one in paper.setting
    ]


def _ours(paper: Paper, setting: Setting, size: Size) -> str:
    if not setting.key:
        return setting.ours.get(size, "–")
    names = [study.name for study in paper.studies_in(size)]
    name = setting.study or names[0]
    return _values(paper.name, size, name, setting.key) if name in names else "–"


@cache
def _values(paper: str, size: Size, study: str, key: str) -> str:
    """The values of a key in all runs of a study."""
    known = find_paper(paper)
    runs = load_study(study_file(known, size, known.study(study))).runs
    found = list(dict.fromkeys(_at(run.scenario.model_dump(mode="json", by_alias=True), key) for run in runs))
    return ", ".join(found) if len(found) <= _MOST else f"{found[0]} to {found[-1]} ({len(found)} values)"


_UNSET = {"data.limit": "all"}
"""What null stands for, where it is not the absence of a thing."""


def _at(scenario: dict[str, Any], key: str) -> str:
    """The value of a dotted key; in words where it is null.

    Raises:
        ValueError: the scenario has no such key.
    """
    value: Any = scenario
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            raise ValueError(f"a setting names the key {key}, which the scenario does not have")
        value = value[part]
    return _UNSET.get(key, "–") if value is None else value_of(value)


def coverage_rows(paper: Paper) -> list[dict[str, str]]:
    """Every figure and table of the paper, and where it is, or the reason why not."""
    return [
        {
            "in the paper": one.item,
            "shows": one.shows,
            "here": f"[on this page]({one.where})" if one.where else "not here",
            "remark": one.reason,
        }
        for one in paper.coverage
    ]
