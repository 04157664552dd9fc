"""What the documentation site makes by itself: reference pages and results of papers.

MkDocs calls the functions named ``on_…`` when it builds the site. Nothing here is written into the repository.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel

from publications.catalogue import PAPERS
from publications.markers import documentation_pictures, fill
from wirelessfl.cli import main
from wirelessfl.scenario import Scenario, all_keys, list_shipped
from wirelessfl.scenario.base import Section
from wirelessfl.scenario.yamltree import inline_yaml
from wirelessfl.study.file import StudyFile
from wirelessfl.trace import reference_markdown

RESULTS = Path(__file__).resolve().parents[1] / "results"
"""What `wirelessfl papers run` has left there is shown on the pages of the papers."""

SECAGG_COSTS = Path(__file__).parents[1] / "results" / "benchmarks" / "secagg-costs.svg"
"""Measured by benchmarks/secagg_costs.py."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages, and pictures that were stored."""
    pages = {
        "reference/scenario.md": scenario_page(),
        "reference/study.md": study_page(),
        "reference/shipped.md": shipped_page(),
        "reference/commands.md": commands_page(),
        "reference/trace.md": trace_page(),
        "tutorials/first-look.md": notebook_page(Path(config.docs_dir) / "notebooks" / "first_look.ipynb"),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    files.append(File.generated(config, "explanation/secagg-costs.svg", content=SECAGG_COSTS.read_bytes()))
    for place, picture in documentation_pictures(RESULTS).items():
        files.append(File.generated(config, f"papers/{place}", content=picture.read_bytes()))
    return files


# --- reference pages ---------------------------------------------------------------------------------------------


def scenario_page() -> str:
    """Every key of the scenario format, by section."""
    lines = [
        "# Scenario keys",
        "",
        "Every key has a default except `name`. Where a key belongs to some variants only, they are named below it.",
        "`wirelessfl schema` prints the same as JSON Schema for your editor, and `--set` takes the dotted paths.",
        "",
    ]
    top: dict[str, list[str]] = {}
    for path, entry in _key_entries(Scenario):
        top.setdefault(path.partition(".")[0], []).append(entry)
    plain = [entry for entries in top.values() if len(entries) == 1 for entry in entries]
    lines += ["## The run", "", *plain]
    for name, entries in top.items():
        if len(entries) > 1:
            lines += [f"## `{name}`", "", *entries]
    return "\n".join(lines)


def study_page() -> str:
    """Every key of the study format."""
    lines = [
        "# Study keys",
        "",
        "A study varies one scenario. Keys below `base`, `grid` and `zip` are those of [a scenario](scenario.md);",
        "`wirelessfl schema --study` prints the JSON Schema.",
        "",
    ]
    return "\n".join([*lines, *(entry for _, entry in _key_entries(StudyFile))])


def _key_entries(section: type[Section]) -> Iterator[tuple[str, str]]:
    """Key path and entry of each key; what several variants have in common is one entry."""
    variants: dict[tuple[str, ...], list[str]] = {}
    for key in all_keys(section):
        tag = f"{key.path.rpartition('.')[2]}: "
        *_, innermost = key.variant.split(", ")
        if innermost.startswith(tag):  # the key that names the variant: its value is all there is to say
            outer = key.variant.removesuffix(innermost).removesuffix(", ")
            variants[f"{key.path}: {innermost.removeprefix(tag)}", "", key.description, ""] = [outer]
        else:
            default = "required" if key.required else _default(key.default)
            variants.setdefault((key.path, default, key.description, key.allowed), []).append(key.variant)
    for (path, default, description, allowed), where in variants.items():
        head = f"`{path}`" + (f' <span class="aside">{default}</span>' if default else "")
        notes = [_under(where), _text(allowed)]
        asides = "".join(f'<br><span class="aside">{note}</span>' for note in notes if note)
        yield path, f"{head}\n:   {_text(description)}{asides}\n"


def _under(variants: list[str]) -> str:
    """The variants that a key belongs to, those of one family together."""
    families: dict[str, list[str]] = {}
    for variant in filter(None, variants):
        family, _, tag = variant.rpartition(": ")
        families.setdefault(family, []).append(tag)
    under = "; or ".join(f"{family}: {' or '.join(tags)}" for family, tags in families.items())
    return f"with {_text(under)}" if under else ""


def _default(value: Any) -> str:
    """A default in YAML; of a variant with many keys only the one that names it."""
    if isinstance(value, BaseModel):
        plain = value.model_dump(mode="json", by_alias=True)
        tag = next((name for name in ("kind", "model", "policy", "name", "scheme", "mechanism") if name in plain), None)
        if tag is None:
            return ""
        value = {tag: plain[tag]}
    elif not isinstance(value, str | int | float | bool | list | tuple | dict | None):
        value = value.mapping()  # Steps
    return f"default `{inline_yaml(list(value) if isinstance(value, tuple) else value)}`"


def _text(text: str) -> str:
    """Plain text that Markdown takes as it is, also in a table."""
    return re.sub(r"([|*\[\]])", r"\\\1", text).replace("<", "&lt;")


def shipped_page() -> str:
    """Every shipped scenario and study, as it is written."""
    lines = [
        "# Shipped scenarios and studies",
        "",
        "`wirelessfl simulate NAME` runs one, `wirelessfl scenarios copy NAME` gives you a file of your own.",
        "",
    ]
    for title, shelf in (("Scenarios", "scenarios"), ("Studies", "studies")):
        lines += [f"## {title}", ""]
        for shipped in list_shipped("studies" if shelf == "studies" else "scenarios"):
            lines += [f"### {shipped.name}", "", f"{shipped.description}", ""]
            text = shipped.path.read_text(encoding="utf-8")
            lines += [f'??? note "{shipped.name}.yaml"', "", "    ```yaml", *_indented(text), "    ```", ""]
    return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.rstrip().splitlines()]


def commands_page() -> str:
    """Every command with its options, from the command line itself."""
    lines = [
        "# Commands",
        "",
        "`wirelessfl` is the same as `python -m wirelessfl`, and from a checkout `python cli.py`.",
        "Results go to stdout, progress and notes to stderr.",
        "",
        "| exit code | means |",
        "| --- | --- |",
        "| 0 | done |",
        "| 2 | the input is wrong: file, line, key, what was found, what is allowed |",
        "| 3 | the request cannot be met, such as a privacy target that no allowed jammer power reaches |",
        "| 4 | a check failed |",
        "| 130 | interrupted; the trace is intact and resumable |",
        "",
    ]
    return "\n".join([*lines, *_command_lines(main, click.Context(main, info_name="wirelessfl"), 2)])


def _command_lines(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    if isinstance(command, click.Group):
        if context.parent is not None:
            yield from _one_command(command, context, level)
            level += 1
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            yield from _command_lines(inner, click.Context(inner, info_name=name, parent=context), level)
    else:
        yield from _one_command(command, context, level)


def _one_command(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f"{'#' * level} `{context.command_path}`", "")
    yield from ("```text", f"{context.command_path} {usage}", "```", "")
    yield from (_paragraphs(command.help or ""), "")
    records = [record for option in command.get_params(context) if (record := option.get_help_record(context))]
    records = [(name, meaning) for name, meaning in records if meaning and "--help" not in name]
    if records:
        yield from ("| option | means |", "| --- | --- |")
        yield from (f"| <code>{name.replace('|', '&#124;')}</code> | {_text(meaning)} |" for name, meaning in records)
        yield ""


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def trace_page() -> str:
    """Every variable of the trace, from its schema."""
    _, _, tables = reference_markdown().partition("\n")
    lines = [
        "# Trace variables",
        "",
        "A trace is one HDF5 file. `wfl.open_trace` gives its root group as an xarray dataset,",
        "`wirelessfl.trace.read_group` the others; `wfl.by_client` turns slots into clients.",
        "What is absent is NaN, never 0.",
    ]
    return "\n".join([*lines, tables])


def notebook_page(path: Path) -> str:
    """A notebook's cells as a page; the numbers come when you run it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    title, *rest = parts
    where = f"This page is a notebook: [{path.name}](../notebooks/{path.name}). `jupyter lab` shows its figures."
    return "\n\n".join([title, where, *rest])


# --- results of papers -------------------------------------------------------------------------------------------


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Puts the numbers of the papers in."""
    folder, _, name = page.file.src_uri.removesuffix(".md").rpartition("/")
    return fill(markdown, RESULTS, PAPERS.get(name)) if folder == "papers" else markdown
