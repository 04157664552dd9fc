"""Indices of symbols in the text of the documentation."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.docs.hooks import load_hook


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    return load_hook("indices")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("<p>by κη_C a step</p>", "<p>by κη<sub>C</sub> a step</p>"),
        ("<td>σ_Haar, h_min, q_c;</td>", "<td>σ<sub>Haar</sub>, h<sub>min</sub>, q<sub>c</sub>;</td>"),
        ("|h_{CJ}|² and J_0(2π)", "|h<sub>CJ</sub>|² and J<sub>0</sub>(2π)"),
        ("zC/(q_c d)", "zC/(q<sub>c</sub> d)"),
    ],
)
def test_symbols_have_subscripts(hook: ModuleType, written: str, shown: str) -> None:
    assert hook.on_page_content(written) == shown


@pytest.mark.parametrize(
    "text",
    [
        "<code>h_i</code>",
        "<pre><span>x_1</span> = <b>y_2</b></pre>",
        '<img alt="η_C over rounds" src="a_1.svg">',
        "<!-- p_i -->",
        "test_accuracy, n_trials_done, x_train, x_1.npy, runs/a_b, scheme: a_dsgd",
        "on_run_end, a_b_c",
    ],
)
def test_all_else_stays(hook: ModuleType, text: str) -> None:
    assert hook.on_page_content(text) == text
