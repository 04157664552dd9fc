"""How a page of the documentation takes in the results of a paper.

A page is written by hand, but for its numbers: a line that holds nothing but a marker is replaced when the site is
built. A marker shows the largest size that has it, unless a size is named: ``{{ table sample small }}``.

| marker | becomes |
| --- | --- |
| ``{{ claims }}`` | a forest plot of the claims, each with its verdict, effect and size, and what it rests on |
| ``{{ table NAME [SIZE] }}`` | the table of a study, or a further table of the paper |
| ``{{ figure NAME [SIZE] }}`` | a picture with its caption |
| ``{{ setting }}`` | the paper's setting beside ours in every size |
| ``{{ coverage }}`` | every figure and table of the paper, and where it is, or why it is not |
| ``{{ cost }}`` | what took how long on what; on the index: of all papers |
| ``{{ tuning NAME [SIZE] }}`` | what was tuned for the study ``tuned-NAME``, and what was chosen |
| ``{{ audits }}`` | all audits, with published and accounted ε |
| ``{{ about }}`` | sizes, seeds, versions and commands |
| ``{{ overview }}`` | on the index: all papers, and how many claims came out how |
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from publications.catalogue import PAPERS
from publications.claims import Outcome
from publications.costs import cost_rows, left_to_run, no_cost, total_cost, uncommitted_text
from publications.files import read_rows
from publications.page import CLAIMS, claim_table, origin_text, stored_text
from publications.paper import Paper
from publications.parts import coverage_rows, setting_rows
from publications.results import Judgement, Results, judge_all, largest, read_results, size_folder
from publications.studies import SIZES, PaperStudy, Size
from publications.tables import StudyTable, Tables
from publications.texts import epsilon, escape, markdown, table_for_people
from publications.tuning_page import tuned_rows, tuning_lines, tuning_pictures
from publications.tuning_runs import TUNED
from wirelessfl.errors import OutputError

_MARKER = re.compile(r"^\{\{ *(\w+)(?: +([\w.-]+))?(?: +([\w.-]+))? *\}\}$", re.MULTILINE)
NOT_RUN = ["*Not run yet.*"]


class Shown(NamedTuple):
    """What a marker asks for.

    Attributes:
        paper: Whose page it is.
        results: What has run of it.
        root: The folder ``results``.
        name: The word after the marker's own, empty if there is none.
        size: The size that is named; None for the largest.
    """

    paper: Paper
    results: Results
    root: Path
    name: str = ""
    size: Size | None = None

    def folders(self) -> Iterator[Path]:
        """The folders in which it may lie, the first one first."""
        for size in reversed(list(self.results)) if self.size is None else (self.size,):
            yield size_folder(self.root, self.paper, size)


def fill(text: str, root: Path, paper: Paper | None) -> str:
    """A page with its markers replaced.

    Args:
        text: The page.
        root: The folder ``results``.
        paper: Whose page it is; None for the index.

    Raises:
        ValueError: a marker that is not known, or names no study, table, figure or size of the paper.
    """

    def put(match: re.Match[str]) -> str:
        word, name, size = match[1], match[2] or "", match[3]
        if paper is None and word in _INDEX:
            return "\n".join(_INDEX[word](root))
        if paper is None or word not in _FILLERS:
            raise ValueError(f"unknown marker {match[0]!r}; allowed: {', '.join([*_FILLERS, *_INDEX])}")
        sizes = [one for one in SIZES if one == size]
        if size is not None and not sizes:
            raise ValueError(f"{match[0]!r}: found size {size}; allowed: {', '.join(SIZES)}")
        try:
            results = read_results(paper, root)
        except OutputError:
            return NOT_RUN[0]
        return "\n".join(_FILLERS[word](Shown(paper, results, root, name, sizes[0] if sizes else None)))

    return _MARKER.sub(put, text)


def _overview(root: Path) -> list[str]:
    """The claims that each paper makes by their outcome, and beside them those that are made here about it."""
    words = [outcome.value for outcome in Outcome]
    lines = [
        f"| paper | sizes | {' | '.join(words)} | at the paper's size, or any | ours |",
        "| --- " * (len(words) + 4) + "|",
    ]
    for paper in PAPERS.values():
        link = f"[{paper.title}]({paper.name}.md)"
        try:
            results = read_results(paper, root)
        except OutputError:
            lines.append(f"| {link} | not run yet |{' |' * (len(words) + 2)}")
            continue
        judged = judge_all(paper, results)
        theirs = [one for one in judged if not one.claim.is_ours]
        counts = _outcomes(theirs)
        sizes = ", ".join(f"{size} ({stored_text(tables)})" for size, tables in results.items())
        at_size = sum(one.at_paper_size in ("yes", "any size") for one in theirs)
        numbers = " | ".join(str(counts[word]) for word in words)
        ours = _outcomes([one for one in judged if one.claim.is_ours])
        told = ", ".join(f"{ours[word]} {word}" for word in words if ours[word]) or "–"
        lines.append(f"| {link} | {sizes} | {numbers} | {at_size} of {len(theirs)} | {told} |")
    return lines


def _outcomes(judged: Sequence[Judgement]) -> Counter[str]:
    return Counter(one.verdict.outcome.value for one in judged)


def _claims(shown: Shown) -> list[str]:
    judged = judge_all(shown.paper, shown.results)
    plot = size_folder(shown.root, shown.paper, "small") / f"{CLAIMS}.svg"
    caption = (
        "The claims with their effects and intervals, numbered as in the table below; of several comparisons the least "
        "effect. Grey with an interval on one side: undecided for another reason, which the table says. Quotients have "
        "no interval: they are exact, or the largest of all runs or rounds. Claims without an effect are left out."
    )
    forest = [*_pictures(shown.paper, "small", CLAIMS, caption), "", f"*{caption}*", ""] if plot.exists() else []
    return [*forest, *claim_table(judged), "", '??? note "What each verdict rests on"', "", *_grounds(judged)]


def _grounds(judged: Sequence[Judgement]) -> Iterator[str]:
    for at, one in enumerate(judged, start=1):
        told = ". ".join(part for part in (one.verdict.numbers, one.verdict.reason) if part)
        size = f" Size `{one.size}`." if one.size else ""
        yield f"    {at}. {told}.{size}"


def _table(shown: Shown) -> list[str]:
    paper, name = shown.paper, shown.name
    if name in {study.name for study in paper.studies}:
        size = shown.size or largest(shown.results, name)
        tables = shown.results.get(size) if size else None
        if size is None or tables is None or name not in tables.studies or not tables.studies[name].runs:
            return NOT_RUN
        return [*_study_table(paper, name, size, tables), *(() if shown.size else _smaller(shown, size))]
    more = next((one for one in paper.tables if one.name == name), None)
    if more is None:
        raise ValueError(f"{paper.name} has no table {name!r}")
    return _further_table(shown, more.title)


def _further_table(shown: Shown, title: str) -> list[str]:
    """A table that no study gives, with its size where it is not the same in all."""
    every = {
        size: rows
        for size in reversed(list(shown.results))
        if (rows := read_rows(size_folder(shown.root, shown.paper, size) / f"{shown.name}.csv"))
    }
    size = shown.size or next(iter(every), None)
    if size is None or size not in every:
        return NOT_RUN
    apart = f" Size `{size}`." if any(rows != every[size] for rows in every.values()) else ""
    return [*markdown(every[size]), "", f"*{title}.{apart}*"]


def _study_table(paper: Paper, name: str, size: Size, tables: Tables) -> list[str]:
    planned, stored = tables.about["runs"].get(name, 0), tables.studies[name].stored
    count = f"{planned} run{'' if planned == 1 else 's'}"
    if stored < planned:
        count = f"{stored} of {count}; points that lack one are left out"
    tuned = name.startswith(TUNED)
    rows = tuned_rows(paper, name, size, tables) if tuned else table_for_people(tables, paper.study(name))
    title = paper.study(name).title
    return [*markdown(rows), "", f"*{title[0].upper()}{title[1:]}. Size `{size}`, {count}.*"]


def _smaller(shown: Shown, size: Size) -> Iterator[str]:
    """The table in the sizes below the one that is shown, folded away."""
    for other, tables in shown.results.items():
        if other == size:
            return
        if shown.name in tables.studies and tables.studies[shown.name].runs:
            yield from ("", f'??? note "The same in size {other}"', "")
            yield from ("    " + line for line in _study_table(shown.paper, shown.name, other, tables))


def _figure(shown: Shown) -> list[str]:
    figure = next((one for one in shown.paper.figures if one.name == shown.name), None)
    if figure is None:
        raise ValueError(f"{shown.paper.name} has no figure {shown.name!r}")
    there = [folder for folder in shown.folders() if (folder / f"{figure.name}.svg").exists()]
    if not there:
        return NOT_RUN
    size = next(size for size in SIZES if size_folder(shown.root, shown.paper, size) == there[0])
    return [
        *_pictures(shown.paper, size, figure.name, figure.caption),
        "",
        f"*{figure.caption} Size `{size}`.*" if figure.runs else f"*{figure.caption}*",
    ]


def _pictures(paper: Paper, size: Size, name: str, caption: str) -> list[str]:
    place = paper.name if size == "small" else f"{paper.name}/{size}"
    themes = {"": "light", "-dark": "dark"}
    return [f"![{escape(caption)}]({place}/{name}{end}.svg#only-{theme})" for end, theme in themes.items()]


def _tuning(shown: Shown) -> list[str]:
    lines = tuning_lines(shown.paper.name, shown.name, shown.root / "papers" / shown.paper.name, shown.size)
    tuned = f"{TUNED}{shown.name}"
    if tuned in {study.name for study in shown.paper.studies}:
        lines += ["", "At these settings, on the test set:", "", *_table(shown._replace(name=tuned))]
    return lines


def _audits(shown: Shown) -> list[str]:
    lines = [
        "| study | size | point | unit | ε published | ε empirical, at least | ε accounted |",
        "| --- " * 7 + "|",
    ]
    for study in shown.paper.studies:
        for size, tables in shown.results.items():
            if study.name in tables.studies:
                table = tables.studies[study.name]
                lines += [_audit_line(study, table, size, at) for at in range(len(table.audits))]
    return lines if len(lines) > 2 else ["*No audit has run.*"]


def _audit_line(study: PaperStudy, table: StudyTable, size: Size, at: int) -> str:
    row = table.audits[at]
    point = ", ".join(f"{study.words.get(key, key)} {study.words.get(text, text)}" for key, text in row.point.items())
    epsilons = [epsilon(value) for value in (row.epsilon_published, row.epsilon_empirical, row.epsilon_accounted)]
    return "| " + " | ".join(escape(cell) for cell in (table.name, size, point, row.unit, *epsilons)) + " |"


def _about(shown: Shown) -> list[str]:
    lines: list[str] = []
    for size, tables in shown.results.items():
        about = tables.about
        seeds = sorted({len(seeds) for seeds in about["seeds"].values()})
        count = " or ".join(str(number) for number in seeds)
        apart = uncommitted_text(shown.paper, tables, shown.root)
        told = f"Size `{size}`: {count} seeds a point, {stored_text(tables)}; {origin_text(tables)}."
        lines += [f"{told} {apart}".rstrip(), ""]
    commands = [f"$ {tables.about['command']}" for tables in shown.results.values()]
    return [*lines, "Re-create it with", "", "```console", *commands, "```"]


def _setting(shown: Shown) -> list[str]:
    rows = setting_rows(shown.paper)
    return markdown(rows) if rows else ["*Not declared yet.*"]


def _coverage(shown: Shown) -> list[str]:
    rows = coverage_rows(shown.paper)
    return markdown(rows) if rows else ["*Not declared yet.*"]


def _all_costs(root: Path) -> list[str]:
    rows = []
    for paper in PAPERS.values():
        link = f"[{paper.title}]({paper.name}.md)"  # in the first row of a paper
        with suppress(OutputError):
            results = read_results(paper, root)
            for size in SIZES:
                tables = results.get(size)
                if tables is not None:
                    told = {**total_cost(paper, tables, root), "not run": left_to_run(tables)}
                elif paper.studies_in(size):
                    told = no_cost(paper, size)
                else:
                    continue
                rows.append({"paper": link, "size": size, **told})
                link = ""
    return markdown(rows) if rows else NOT_RUN


_FILLERS: dict[str, Callable[[Shown], list[str]]] = {
    "claims": _claims,
    "table": _table,
    "figure": _figure,
    "setting": _setting,
    "coverage": _coverage,
    "cost": lambda shown: markdown(list(cost_rows(shown.paper, shown.results, shown.root))),
    "tuning": _tuning,
    "audits": _audits,
    "about": _about,
}
_INDEX: dict[str, Callable[[Path], list[str]]] = {"overview": _overview, "cost": _all_costs}


def documentation_pictures(root: Path) -> dict[str, Path]:
    """The pictures that pages show: path below ``docs/papers`` to the file."""
    found = tuning_pictures(root)
    for paper in PAPERS.values():
        for size in SIZES:
            for name in (CLAIMS, *(figure.name for figure in paper.figures)):
                for end in ("", "-dark"):
                    file = size_folder(root, paper, size) / f"{name}{end}.svg"
                    if file.exists():
                        found[file.relative_to(root / "papers").as_posix()] = file
    return found
