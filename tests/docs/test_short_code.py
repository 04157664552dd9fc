"""Code within a text that stays on one line."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.docs.hooks import load_hook


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    return load_hook("short_code")


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
