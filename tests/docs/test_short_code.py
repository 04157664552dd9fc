"""Code within a text that stays on one line."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

HOOK = Path(__file__).resolve().parents[2] / "docs" / "short_code.py"


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("short_code", HOOK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("code", "marked"),
    [
        ("<code>--set seeds=10</code>", '<code class="short">--set seeds=10</code>'),
        ("<code>topology.kind</code>", '<code class="short word">topology.kind</code>'),
        (f"<code>{'&lt;' * 30}</code>", f'<code class="short word">{"&lt;" * 30}</code>'),
        (f"<code>{'a' * 31}</code>", f"<code>{'a' * 31}</code>"),
        ("<pre><span></span><code>cpu\n</code></pre>", "<pre><span></span><code>cpu\n</code></pre>"),
    ],
)
def test_short_code_is_marked(hook: ModuleType, code: str, marked: str) -> None:
    assert hook.on_page_content(code) == marked
