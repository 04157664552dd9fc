"""What a paper leaves in ``results/papers/<paper>/``, and how a page of the documentation takes it in.

A page is written by hand, but for its numbers: a line that holds nothing but a marker is replaced when the site is
built.

| marker | becomes |
| --- | --- |
| ``{{ claims }}`` | every claim with its verdict and numbers |
| ``{{ table NAME }}`` | the table of a study, or a further table of the paper |
| ``{{ figure NAME }}`` | a picture with its caption |
| ``{{ audits }}`` | all audits, with published and accounted ε |
| ``{{ about }}`` | size, seeds, version and command |
| ``{{ overview }}`` | on the index: all papers, and how many claims came out how |
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import wirelessfl as wfl
from publications.catalogue import PAPERS
from publications.claims import judge
from publications.figures import write_figure
from publications.files import cell, number, read_rows, read_study, write_rows, write_study
from publications.paper import Paper
from publications.studies import PaperStudy, Size
from publications.tables import MissingRuns, StudyTable, Tables, long_table
from wirelessfl.errors import OutputError

_MARKER = re.compile(r"^\{\{ *(\w+)(?: +([\w.-]+))? *\}\}$", re.MULTILINE)


def paper_folder(root: Path, paper: Paper, size: Size) -> Path:
    """Where the summaries of a paper lie: ``small``, which everyone can re-create, directly in its folder."""
    folder = root / "papers" / paper.name
    return folder if size == "small" else folder / size


def write_page(paper: Paper, tables: Tables, folder: Path) -> None:
    """Write tables, claims, figures and ``about.json``.

    Raises:
        OutputError: the place cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in tables.studies.values():
            write_study(folder, table)
        (folder / "about.json").write_text(wfl.to_json(tables.about), encoding="utf-8")
        # From the files, whose numbers have six digits: whoever makes the page again gets the same bytes.
        remake_page(paper, read_tables(paper, folder), folder)
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror or error}") from error


def remake_page(paper: Paper, tables: Tables, folder: Path) -> None:
    """Write again what follows from the runs: tables, claims and figures."""
    for name in tables.studies:
        write_rows(folder / f"{name}.csv", long_table(tables, paper.study(name)))
    for more in paper.tables:
        try:
            write_rows(folder / f"{more.name}.csv", more.make(tables))
        except MissingRuns:
            (folder / f"{more.name}.csv").unlink(missing_ok=True)
    rows = claim_rows(paper, tables)
    write_rows(folder / "claims.csv", rows)
    (folder / "claims.md").write_text("\n".join(_claims(rows)) + "\n", encoding="utf-8")
    for figure in paper.figures:
        write_figure(figure, tables, folder)


def read_tables(paper: Paper, folder: Path) -> Tables:
    """What was written for a paper.

    Raises:
        OutputError: nothing was.
    """
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise OutputError(
            f"{folder}: found no results of {paper.name}; `wirelessfl papers run {paper.name} --size small` makes them"
        ) from None
    found = {study.name: read_study(folder, study) for study in paper.studies}
    return Tables(about, {name: table for name, table in found.items() if table is not None})


def claim_rows(paper: Paper, tables: Tables) -> list[dict[str, str]]:
    """Every claim with its verdict, as in ``claims.csv``."""
    rows = []
    for claim in paper.claims:
        found = judge(claim, tables)
        rows.append(
            {
                "claim": claim.text,
                "source": claim.source,
                "verdict": found.outcome.value,
                "numbers": found.numbers,
                "reason": found.reason,
            }
        )
    return rows


# --- into the documentation --------------------------------------------------------------------------------------


def fill(text: str, root: Path, paper: Paper | None) -> str:
    """A page with its markers replaced.

    Args:
        text: The page.
        root: The folder ``results``.
        paper: Whose page it is; None for the index.

    Raises:
        ValueError: a marker that is not known, or names no study, table or figure of the paper.
    """

    def put(match: re.Match[str]) -> str:
        word, name = match[1], match[2]
        if word == "overview":
            return "\n".join(_overview(root))
        if paper is None or word not in _FILLERS:
            raise ValueError(f"unknown marker {match[0]!r}; allowed: {', '.join([*_FILLERS, 'overview'])}")
        folder = paper_folder(root, paper, "small")
        try:
            tables = read_tables(paper, folder)
        except OutputError:
            return "*Not run yet.*"
        return "\n".join(_FILLERS[word](paper, tables, folder, name or ""))

    return _MARKER.sub(put, text)


def _overview(root: Path) -> list[str]:
    lines = ["| paper | size | confirmed | not confirmed | not tested |", "| --- | --- | --- | --- | --- |"]
    for paper in PAPERS.values():
        folder = paper_folder(root, paper, "small")
        link = f"[{paper.title}]({paper.name}.md)"
        try:
            tables = read_tables(paper, folder)
        except OutputError:
            lines.append(f"| {link} | not run yet | | | |")
            continue
        counts = Counter(row["verdict"] for row in claim_rows(paper, tables))
        numbers = " | ".join(str(counts[word]) for word in ("confirmed", "not confirmed", "not tested"))
        lines.append(f"| {link} | {tables.about['size']} | {numbers} |")
    return lines


def _claims(rows: Sequence[Mapping[str, str]]) -> list[str]:
    lines = ["| claim | source | verdict | numbers |", "| --- | --- | --- | --- |"]
    for row in rows:
        told = ". ".join(part for part in (row["numbers"], row["reason"]) if part)
        cells = (row["claim"], row["source"], f"**{row['verdict']}**", told)
        lines.append("| " + " | ".join(_escape(cell) for cell in cells) + " |")
    return lines


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def table_for_people(tables: Tables, study: PaperStudy) -> list[dict[str, str]]:
    """The long table of a study with intervals joined to means, accuracies in percent, and plain words."""
    rows = [{key: cell(value) for key, value in row.items()} for row in long_table(tables, study)]
    if len({row["seeds"] for row in rows}) == 1:  # then `about` says it
        rows = [{key: text for key, text in row.items() if key != "seeds"} for row in rows]
    return [
        {study.words.get(head, head): study.words.get(text, text) for head, text in _joined(row).items()}
        for row in rows
    ]


def _table(paper: Paper, tables: Tables, folder: Path, name: str) -> list[str]:
    if name in tables.studies:
        rows = table_for_people(tables, paper.study(name))
    elif name in {more.name for more in paper.tables}:
        rows = read_rows(folder / f"{name}.csv")
    elif name in {study.name for study in paper.studies}:
        rows = []
    else:
        raise ValueError(f"{paper.name} has no table {name!r}")
    return _markdown(rows) if rows else ["*Not run yet.*"]


def _markdown(rows: Sequence[Mapping[str, str]]) -> list[str]:
    heads = list(rows[0])
    lines = ["| " + " | ".join(_escape(head) for head in heads) + " |", "| --- " * len(heads) + "|"]
    return [*lines, *("| " + " | ".join(_escape(row[head]) for head in heads) + " |" for row in rows)]


_HEADINGS = {
    "accuracy": "accuracy",
    "accuracy_equal_epsilon": "accuracy at equal accounted ε",
    "paper_accuracy": "paper",
    "epsilon_published": "ε published",
    "epsilon_accounted": "ε accounted",
    "equal_epsilon_accounted": "(that ε)",
    "epsilon_empirical": "ε empirical, at least",
}


def _joined(row: Mapping[str, str]) -> dict[str, str]:
    joined = {}
    for key, text in row.items():
        if key.endswith("_half_width") or key == "paper_source":
            continue
        if key in ("accuracy", "accuracy_equal_epsilon", "paper_accuracy"):
            half = row.get(f"{key}_half_width", "")
            source = f" ({row['paper_source']})" if key == "paper_accuracy" and text else ""
            text = percent(number(text), number(half)) + source
        elif key in _HEADINGS:
            text = epsilon(number(text))
        joined[_HEADINGS.get(key, key)] = text
    return joined


def percent(mean: float, half_width: float = math.nan) -> str:
    """An accuracy for people."""
    if math.isnan(mean):
        return "–"
    return f"{100 * mean:.1f} %" if math.isnan(half_width) else f"{100 * mean:.1f} ± {100 * half_width:.1f} %"


def epsilon(value: float) -> str:
    """An ε for people."""
    if math.isnan(value):
        return "–"
    return "∞" if math.isinf(value) else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def _figure(paper: Paper, tables: Tables, folder: Path, name: str) -> list[str]:
    figure = next((one for one in paper.figures if one.name == name), None)
    if figure is None:
        raise ValueError(f"{paper.name} has no figure {name!r}")
    if not (folder / f"{name}.svg").exists():
        return ["*Not run yet.*"]
    return [f"![{_escape(figure.caption)}]({paper.name}/{name}.svg)", "", f"*{figure.caption}*"]


def _audits(paper: Paper, tables: Tables, folder: Path, name: str) -> list[str]:
    lines = [
        "| study | point | unit | ε published | ε empirical, at least | ε accounted |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for table in tables.studies.values():
        study = paper.study(table.name)
        lines += [_audit_line(study, table, at) for at in range(len(table.audits))]
    return lines if len(lines) > 2 else ["*No audit has run.*"]


def _audit_line(study: PaperStudy, table: StudyTable, at: int) -> str:
    row = table.audits[at]
    point = ", ".join(f"{study.words.get(key, key)} {study.words.get(text, text)}" for key, text in row.point.items())
    epsilons = [epsilon(value) for value in (row.epsilon_published, row.epsilon_empirical, row.epsilon_accounted)]
    return "| " + " | ".join(_escape(cell) for cell in (table.name, point, row.unit, *epsilons)) + " |"


def _about(paper: Paper, tables: Tables, folder: Path, name: str) -> list[str]:
    about = tables.about
    seeds = sorted({len(seeds) for seeds in about["seeds"].values()})
    count = " or ".join(str(number) for number in seeds)
    runs = sum(about["runs"].values())
    return [
        f"Size `{about['size']}`, {count} seeds a point, {runs} runs; wirelessfl {about['version']}, "
        f"torch {about['torch']}. Re-create it with",
        "",
        "```console",
        f"$ {about['command']}",
        "```",
    ]


_FILLERS: dict[str, Callable[[Paper, Tables, Path, str], list[str]]] = {
    "claims": lambda paper, tables, folder, name: _claims(claim_rows(paper, tables)),
    "table": _table,
    "figure": _figure,
    "audits": _audits,
    "about": _about,
}


def documentation_pictures(root: Path) -> dict[str, Path]:
    """The pictures that pages show: path below ``docs/papers`` to the file."""
    return {
        f"{paper.name}/{figure.name}.svg": file
        for paper in PAPERS.values()
        for figure in paper.figures
        if (file := paper_folder(root, paper, "small") / f"{figure.name}.svg").exists()
    }
