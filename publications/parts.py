"""Parts of a page that follow from declarations and study files: settings, coverage, and what runs cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from publications.catalogue import find_paper, study_file
from publications.paper import Paper, Setting
from publications.results import Results
from publications.studies import SIZES, Size
from publications.tables import Tables, value_of
from publications.texts import duration
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


def cost_rows(results: Results) -> Iterator[dict[str, str]]:
    """What took how long on what, a row for each study of each size."""
    for size, tables in results.items():
        for name, planned in tables.about["runs"].items():
            yield {"size": size, "study": name, **_cost(tables, [name], planned)}


def total_cost(tables: Tables) -> dict[str, str]:
    """What a whole size took."""
    return _cost(tables, list(tables.studies), sum(tables.about["runs"].values()))


def left_to_run(tables: Tables) -> str:
    """The studies of which runs are missing, with their number."""
    missing = {
        name: planned - (tables.studies[name].stored if name in tables.studies else 0)
        for name, planned in tables.about["runs"].items()
    }
    return ", ".join(f"{name} ({count})" for name, count in missing.items() if count > 0) or "–"


def no_cost(paper: Paper, size: Size) -> dict[str, str]:
    """The row of a size of which nothing has run."""
    names = ", ".join(study.name for study in paper.studies_in(size))
    return {"runs": "none", "a run, median": "not run", "all": "–", "on": "–", "not run": names}


def _cost(tables: Tables, names: list[str], planned: int) -> dict[str, str]:
    studies = [tables.studies[name] for name in names if name in tables.studies]
    stored = sum(table.stored for table in studies)
    kept = [run.provenance for table in studies for run in table.runs if not math.isnan(run.provenance.seconds)]
    times = [one.seconds for one in kept]
    devices = "; ".join(device for device, _ in Counter(one.where for one in kept).most_common())
    return {
        "runs": f"{stored} of {planned}" if stored < planned else str(planned),
        "a run, median": duration(float(np.median(times))) if times else ("not run" if not stored else "not recorded"),
        "all": duration(sum(times)) if times else "–",
        "on": devices or "–",
    }
