"""Marks of short pieces of code within a text, which style.css keeps on one line.

MkDocs calls the functions named ``on_…``. A browser would end a line after the hyphens of ``--set seeds=10``.
"""

from __future__ import annotations

import html
import re
from typing import Any

LONGEST = 30
"""Characters that fit a line on a phone, in a list too."""
_CODE = re.compile(r"<code>(?P<text>[^<\n]+)</code>")


def on_page_content(content: str, **_: Any) -> str:
    """Marks as ``short``, and as ``word`` what has no space; code of several lines is no part of a text."""
    return _CODE.sub(_marked, content)


def _marked(match: re.Match[str]) -> str:
    if len(html.unescape(match["text"])) > LONGEST:
        return match.group()
    kind = "short" if " " in match["text"] else "short word"
    return f'<code class="{kind}">{match["text"]}</code>'
