"""``--figures`` and ``--width`` on every command that draws: names, refusals, folders, and another format later."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import wirelessfl as wfl
from tests.simulation.scenarios import small
from tests.study.test_figure import study
from wirelessfl.cli import main
from wirelessfl.cli.figures import draw_beside
from wirelessfl.errors import InputError, OutputError
from wirelessfl.study.collect import write_figure
from wirelessfl.summary.axes import XAxis
from wirelessfl.summary.style import FigureOptions

SCENARIO = "name: small\nrounds: 1\ndata: {limit: 60}\nclients: {count: 3}\nmodel: {name: logistic}\n"


def invoke(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def pictures(folder: Path) -> set[str]:
    """Names of the figures in a folder."""
    return {path.name for path in folder.iterdir() if path.suffix in (".pdf", ".svg", ".png")}


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("figures") / "s.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(scenario: Path) -> Path:
    """A run without figures."""
    out = scenario.parent / "run"
    said = invoke("simulate", scenario, "--out", out, "--device", "cpu", "--figures", "none")
    assert said.exit_code == 0 and "timeline" not in said.stdout
    assert pictures(out) == set()
    return out


@pytest.mark.slow
def test_a_run_takes_any_format_and_resumes_in_another(run: Path, scenario: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    said = invoke("simulate", scenario, "--out", folder, "--resume", "--figures", "pdf", "--width", "column")
    assert said.exit_code == 0 and pictures(folder) == {"summary.pdf", "timeline.pdf"}
    assert "picture" in said.stdout and "timeline" in said.stdout
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", (folder / "summary.pdf").read_bytes())
    assert box is not None and float(box[1]) / 72 == pytest.approx(3.5)
    result = wfl.simulate(small(rounds=1), folder, overwrite=True, figures="none", device="cpu")
    assert pictures(folder) == set() and not result.picture.exists(), "a new run takes every figure of the old one away"


def test_figures_of_a_run_are_its_own_and_others_are_foreign(run: Path, scenario: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    for name in ("summary.svg", "timeline.pdf"):
        (folder / name).write_bytes(b"drawn before")
    assert invoke("simulate", scenario, "--out", folder, "--overwrite", "--figures", "none").exit_code == 0
    (folder / "figure3.pdf").write_bytes(b"of somebody else")
    refused = invoke("simulate", scenario, "--out", folder, "--overwrite", "--figures", "none")
    assert refused.exit_code == 2 and "figure3.pdf" in refused.stderr
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "summary.pdf").write_bytes(b"no run wrote it")
    with pytest.raises(OutputError, match=r"summary\.pdf"):
        wfl.simulate(small(rounds=1), alone, figures="pdf")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--width", "0"), "found 0; allowed: column (3.5 in), page (7.16 in), or a number of inches from 2.5 to 40"),
        (("--width", "foo"), "found 'foo'; allowed: column (3.5 in), page (7.16 in), or a number of inches"),
        (("--width", "inf"), "found inf; allowed: column"),
        (("--width", "1000"), "found 1000; allowed: column"),
        (("--figures", "jpg"), "'jpg' is not one of 'pdf', 'svg', 'png', 'none'"),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "study", "report"])
def test_bad_values_are_refused_with_what_is_allowed(command: str, options: tuple[str, ...], words: str) -> None:
    refused = invoke(command, "quickstart", *options)
    assert refused.exit_code == 2
    assert words in " ".join(refused.stderr.replace("│", " ").split())


def test_a_report_draws_figures_beside_the_page(run: Path, tmp_path: Path) -> None:
    one = shutil.copytree(run, tmp_path / "one")
    assert invoke("report", one).exit_code == 0 and pictures(one) == set()
    said = invoke("report", one, "--figures", "svg", "--width", "4")
    assert said.exit_code == 0 and pictures(one) == {"summary.svg", "timeline.svg"}
    assert all(str(one / name) in said.stdout for name in pictures(one))


def test_figures_of_several_paths_do_not_collide(
    run: Path, tmp_path: Path, undrawn: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wirelessfl.study.collect.draw_study", lambda study, new, width: new.write_bytes(b"drawn"))
    folder = tmp_path / "study"
    folder.mkdir()
    made = study(folder, (), seeds=1)
    made.folder.write_record(made.as_mapping())
    paths = [run, run / "trace.h5", folder]
    files = draw_beside(tmp_path / "page.html", paths, wfl.FigureOptions("pdf"))
    seed = wfl.open_trace(run / "trace.h5").attrs["seed"]
    runs = [f"small-{seed}-{place}-{name}.pdf" for place in (1, 2) for name in ("summary", "timeline")]
    assert [file.name for file in files] == [*runs, "made-up-study.pdf"]
    assert pictures(tmp_path) == {file.name for file in files}


@pytest.mark.parametrize(("x", "drawn"), [(None, ("round", "energy")), ("sim_time", ("sim_time",))])
def test_the_axis_of_a_report_is_that_of_its_figures_of_studies(
    x: XAxis | None, drawn: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = replace(study(tmp_path, (), seeds=1), x=("round", "energy"))
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr("wirelessfl.study.result.open_study", lambda _: made)
    monkeypatch.setattr("wirelessfl.study.collect.write_figure", lambda study, *_: asked.append(study.x))
    (tmp_path / "study.json").touch()
    draw_beside(tmp_path / "report.html", [tmp_path], FigureOptions("pdf"), x)
    assert asked == [drawn]


def test_a_study_draws_its_figure_in_the_format_that_is_asked_for(tmp_path: Path) -> None:
    made = study(tmp_path, (), seeds=1)
    for form in ("png", "pdf"):
        write_figure(made, wfl.FigureOptions(form, 3.5), tmp_path / f"study.{form}")
    write_figure(made, wfl.FigureOptions("none"), tmp_path / "study.none")
    assert pictures(tmp_path) == {"study.png", "study.pdf"} and not (tmp_path / "study.none").exists()
    made.folder.drop_results()
    assert pictures(tmp_path) == set(), "a study that goes on has no figure of its earlier state"


def test_the_study_command_hands_on_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[FigureOptions] = []

    def stop(*_: object, figures: FigureOptions, **__: object) -> None:
        asked.append(figures)
        raise InputError("far enough")

    monkeypatch.setattr("wirelessfl.study.run_study", stop)
    invoke("study", "snr-clients", "--figures", "svg", "--width", "column", "--quiet")
    assert asked == [FigureOptions("svg", 3.5)]


@pytest.mark.slow
def test_from_python_by_format_or_with_a_width(tmp_path: Path) -> None:
    result = wfl.simulate(
        small(rounds=1), tmp_path / "run", figures=wfl.FigureOptions("svg", 5.0), device="cpu", threads=1
    )
    assert (result.picture.name, result.timeline.name) == ("summary.svg", "timeline.svg")
    assert 'width="360pt"' in result.picture.read_text(encoding="utf-8") and "image/svg+xml" in result._repr_html_()
    with pytest.raises(InputError, match="found 'jpg'"):
        wfl.simulate(small(rounds=1), tmp_path / "other", figures="jpg")  # type: ignore[arg-type]
    assert not (tmp_path / "other").exists()


def width_of(pdf: Path) -> float:
    """Width of a PDF (inches)."""
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", pdf.read_bytes())
    assert box is not None
    return float(box[1]) / 72


@pytest.mark.slow
def test_figures_of_an_audit_a_replay_and_a_plan(
    run: Path, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(run, tmp_path / "run")
    audited = ("audit", scenario, "--trials", 10, "--out", folder)
    assert invoke(*audited, "--figures", "pdf", "--width", "page").exit_code == 0
    assert width_of(folder / "audit.pdf") == pytest.approx(7.16)
    changed = ("replay", folder, "--set", "uplink.snr_db=3", "--out", tmp_path / "replay")
    said = invoke(*changed, "--figures", "pdf", "--width", 4)
    assert said.exit_code == 0 and "paired.pdf" in said.stdout and width_of(tmp_path / "replay/paired.pdf") == 4.0
    assert invoke("simulate", scenario, "--out", folder, "--resume", "--figures", "none").exit_code == 0
    monkeypatch.chdir(tmp_path)
    said = invoke("validate", scenario, "--plot", "--figures", "svg", "--width", "column")
    assert said.exit_code == 0 and "small-topology.svg" in said.stderr
    assert Path("small-topology.svg").read_text(encoding="utf-8").count('width="252pt"') == 1


def test_no_figure_of_an_audit_a_replay_or_a_plan(
    run: Path, scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    audited = invoke("audit", scenario, "--trials", 10, "--out", "audit", "--figures", "none", "--json")
    assert audited.exit_code == 0 and json.loads(audited.stdout)["picture"] is None and not Path("audit").exists()
    changed = ("replay", run, "--set", "uplink.snr_db=3", "--out", "again", "--figures", "none")
    assert "picture" not in invoke(*changed).stdout and pictures(Path("again")) == set()
    assert "picture" not in invoke("validate", scenario, "--plot", "--figures", "none").stderr
    assert pictures(tmp_path) == set()


@pytest.mark.parametrize("option", [("--figures", "pdf"), ("--width", "column")])
def test_options_of_a_figure_that_is_not_drawn(run: Path, scenario: Path, option: tuple[str, str]) -> None:
    for arguments, needed in ((("replay", run), "--set"), (("validate", scenario), "--plot")):
        said = invoke(*arguments, *option)
        assert said.exit_code == 2 and f"{option[0]} is for the figure of {needed}" in said.stderr
