"""Reference page of the trace format, from its schema."""

import numpy as np

from wirelessfl.trace.layout import FORMAT, VERSION, Variable
from wirelessfl.trace.schema import GROUPS


def reference_markdown() -> str:
    """The reference page of the trace format, one table per group."""
    lines = [f"# Trace format (`{FORMAT}`, version {VERSION})", ""]
    for group in GROUPS:
        lines += [f"## `{group.path}`", "", f"{group.long_name[0].upper()}{group.long_name[1:]}.", ""]
        lines += ["| variable | dimensions | type | unit | meaning | source |", "| --- | --- | --- | --- | --- | --- |"]
        lines += [
            _row(f"`{v.name}`", ", ".join(v.dims), str(np.dtype(v.dtype)), v.units, _meaning(v), v.source)
            for v in (*group.coordinates, *group.variables)
        ]
        if group.attributes:
            lines += ["", "| attribute | meaning |", "| --- | --- |"]
            lines += [_row(f"`{a.name}`", a.long_name + " (optional)" * (not a.required)) for a in group.attributes]
        lines.append("")
    return "\n".join(lines)


def _meaning(variable: Variable) -> str:
    codes = [f"{int(code)} {code.name.lower().replace('_', ' ')}" for code in variable.flags or ()]
    return ": ".join(filter(None, (variable.long_name, ", ".join(codes))))


def _row(*cells: str) -> str:
    # Escapes the bar, which Markdown tables read as a column border (|h| is full of them).
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
