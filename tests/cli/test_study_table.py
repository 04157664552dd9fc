"""Table of a study in terminals of several widths."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.study.test_figure import COUNT, study
from wirelessfl.cli.study_table import print_study
from wirelessfl.study import Factor

POLICIES = Factor(("uplink.power_control.policy",), (("cross_layer",), ("strongest:StrongestShare",)))


@pytest.mark.parametrize("columns", [80, 100, 160])
def test_no_word_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_study(study(tmp_path, (POLICIES, COUNT)))
    lines = capsys.readouterr().out.split("means over", maxsplit=1)[0].splitlines()
    assert max(map(len, lines)) <= columns
    words = {word for line in lines for word in line.split()}
    whole = {"strongest:StrongestShare"} if columns > 80 else {"strongest:", "StrongestShare"}
    assert whole | {"cross_layer", "published", "accounted", "airtime"} <= words
