"""What a paper leaves in ``results/papers/<paper>/``: tables and pictures of each size, and verdicts over all sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import wirelessfl as wfl
from publications.claims import Outcome, Verdict
from publications.effects import MissingRuns
from publications.figures import remove_picture, write_both, write_figure
from publications.files import write_rows, write_study
from publications.forest import draw_forest
from publications.long_table import long_table
from publications.paper import Paper
from publications.results import Judgement, Results, judge_all, read_results, read_tables, size_folder
from publications.tables import Tables
from publications.texts import markdown
from wirelessfl.errors import OutputError

CLAIMS = "claims"
"""Name of the files of the verdicts and of their picture."""
_MOST_COMMITS = 2
"""So many commits are listed above a page; of more there is the number, and each run has its own in ``*.runs.csv``."""


def write_page(paper: Paper, tables: Tables, root: Path) -> Path:
    """Write the runs of one size and everything that follows from all sizes.

    Args:
        paper: The paper.
        tables: What has run in a size.
        root: The folder ``results``.

    Returns:
        The folder of that size.

    Raises:
        OutputError: the place cannot be written.
    """
    folder = size_folder(root, paper, tables.about["size"])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in tables.studies.values():
            write_study(folder, table)
        for study in paper.studies:
            if study.name not in tables.studies:
                for end in ("runs", "rounds", "audits"):
                    (folder / f"{study.name}.{end}.csv").unlink(missing_ok=True)
                (folder / f"{study.name}.csv").unlink(missing_ok=True)
        (folder / "about.json").write_text(wfl.to_json(tables.about), encoding="utf-8")
        remake_size(paper, read_tables(paper, folder), folder)
        remake_claims(paper, read_results(paper, root), root)
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror or error}") from error
    return folder


def remake_page(paper: Paper, root: Path) -> None:
    """Write again what follows from the runs of all sizes: tables, claims and figures."""
    results = read_results(paper, root)
    for size, tables in results.items():
        remake_size(paper, tables, size_folder(root, paper, size))
    remake_claims(paper, results, root)


def remake_size(paper: Paper, tables: Tables, folder: Path) -> None:
    """Write again what follows from the runs of one size: tables and figures."""
    for name, table in tables.studies.items():
        if table.runs:
            write_rows(folder / f"{name}.csv", long_table(tables, paper.study(name)))
        else:  # no point has all its seeds yet
            (folder / f"{name}.csv").unlink(missing_ok=True)
    for more in paper.tables:
        try:
            write_rows(folder / f"{more.name}.csv", more.make(tables))
        except MissingRuns:
            (folder / f"{more.name}.csv").unlink(missing_ok=True)
    for figure in paper.figures:
        write_figure(figure, tables, folder)


def remake_claims(paper: Paper, results: Results, root: Path) -> None:
    """Write again the verdicts."""
    folder = size_folder(root, paper, "small")
    folder.mkdir(parents=True, exist_ok=True)
    judged = judge_all(paper, results)
    write_rows(folder / "claims.csv", claim_rows(paper, results))
    write_rows(folder / "claims.levels.csv", level_rows(judged))
    if any(one.verdict.effect for one in judged):
        write_both(lambda: draw_forest(judged), folder, CLAIMS, paper.name)
    else:
        remove_picture(folder, CLAIMS)
    (folder / "claims.md").write_text("\n".join(claim_table(judged)) + "\n", encoding="utf-8")


def claim_rows(paper: Paper, results: Results) -> list[dict[str, str]]:
    """Every claim with its verdict, as in ``claims.csv``."""
    return [
        {
            "claim": one.claim.text,
            "source": one.claim.source,
            "outcome": one.verdict.outcome.value,
            "effect": one.verdict.effect.text() if one.verdict.effect else "",
            "size": one.size or "",
            "at_paper_size": one.at_paper_size,
            "numbers": one.verdict.numbers,
            "reason": one.verdict.reason,
        }
        for one in judge_all(paper, results)
    ]


def level_rows(judged: Sequence[Judgement]) -> list[dict[str, str | float | int]]:
    """``claims.levels.csv``: the levels of which effects are the mean, each with an interval of its own."""
    return [
        {
            "claim": one.claim.text,
            "size": one.size or "",
            "group": one.verdict.effect.name,
            "level": level.name,
            "mean": level.difference.mean,
            "low": level.difference.low,
            "high": level.difference.high,
            "seeds": level.difference.seeds,
        }
        for one in judged
        if one.verdict.effect
        for level in one.verdict.effect.levels
    ]


def claim_table(judged: Sequence[Judgement]) -> list[str]:
    """The short table of the claims."""
    return markdown(
        [
            {
                "no.": str(at),
                "claim": one.claim.text,
                "source": re.sub(r"(?<=[a-z])\.(?=[a-z])", ".<wbr>", one.claim.source),  # or it is the widest column
                "outcome": _outcome(one.verdict),
                "effect (95 % interval, where no other is named)": _effect(one),
                "at the paper's size": _at_size(one),
            }
            for at, one in enumerate(judged, start=1)
        ]
    )


def _outcome(one: Verdict) -> str:
    return f"**{one.outcome.value}**: {one.remark}" if one.remark else f"**{one.outcome.value}**"


def _effect(one: Judgement) -> str:
    effect = one.verdict.effect
    if effect is None:
        return one.verdict.reason if one.verdict.outcome is Outcome.NOT_TESTED else "–"
    claimed = f"; claimed: above {_threshold(effect.threshold, effect.scale)}" if effect.threshold else ""
    # Effects at several values of a setting stand one below the other
    return effect.text().replace("; ", ";<br>") + (claimed if effect.scale != "ratio" else "")


def _threshold(value: float, scale: str) -> str:
    return f"{100 * value:+g} points" if scale == "points" else f"{value:g}"


def _at_size(one: Judgement) -> str:
    told = ", ".join(f"{size}: {_other_text(verdict)}" for size, verdict in one.others.items())
    words = one.at_paper_size or "–"
    return f"{words} ({told})" if told else words


def _other_text(verdict: Verdict) -> str:
    if verdict.one_seed and verdict.effect is not None:
        return f"one seed, {verdict.effect.text()}"
    return f"{verdict.outcome.value}, {verdict.remark}" if verdict.remark else verdict.outcome.value


def stored_text(tables: Tables) -> str:
    """How many of how many runs are stored in a size."""
    planned = sum(tables.about["runs"].values())
    stored = sum(table.stored for table in tables.studies.values())
    return f"{planned} runs" if stored == planned else f"{stored} of {planned} runs"


def origin_text(tables: Tables) -> str:
    """Under what the runs of a size were computed."""
    kept = [run.provenance for table in tables.studies.values() for run in table.runs if run.provenance.kept]
    total = sum(len(table.runs) for table in tables.studies.values())
    told = []
    if kept:
        versions = ", ".join(sorted({one.version for one in kept}))
        commits = sorted({one.commit or "unknown" for one in kept})
        listed = ", ".join(f"`{one}`" for one in commits)
        under = f"commit {listed}" if len(commits) <= _MOST_COMMITS else f"{len(commits)} commits"
        torches = ", ".join(sorted({one.torch for one in kept}))
        streams = ", ".join(sorted({one.streams for one in kept}))
        told.append(f"wirelessfl {versions}, {under}, stream version {streams}, torch {torches}")
    if len(kept) < total:
        which = "" if not kept else f"{total - len(kept)} runs "
        about = tables.about
        told.append(
            f"{which}recorded before versions were kept (wirelessfl {about['version']}, torch {about['torch']})"
        )
    return "; ".join(told)
