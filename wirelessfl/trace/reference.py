"""The reference page of the trace format, rendered from the schema."""

import numpy as np

from wirelessfl.trace.codes import FORMAT, VERSION
from wirelessfl.trace.layout import Variable
from wirelessfl.trace.schema import GROUPS


def reference_markdown() -> str:
    """The reference page of the trace format, one table per group."""
    lines = [f"# Trace format (`{FORMAT}`, version {VERSION})", ""]
    for group in GROUPS:
        lines += [f"## `{group.path}`", "", f"{group.long_name[0].upper()}{group.long_name[1:]}.", ""]
        lines += ["| variable | dimensions | type | unit | meaning | source |", "| --- | --- | --- | --- | --- | --- |"]
        lines += [_variable_row(variable) for variable in (*group.coordinates, *group.variables)]
        if group.attributes:
            lines += ["", "| attribute | meaning |", "| --- | --- |"]
            lines += [
                f"| `{attribute.name}` | {_cell(attribute.long_name)}{'' if attribute.required else ' (optional)'} |"
                for attribute in group.attributes
            ]
        lines.append("")
    return "\n".join(lines)


def _variable_row(variable: Variable) -> str:
    meaning = variable.long_name
    if variable.flags is not None:
        meaning += ": " + ", ".join(f"{int(code)} {code.name.lower().replace('_', ' ')}" for code in variable.flags)
    cells = (f"`{variable.name}`", ", ".join(variable.dims), str(np.dtype(variable.dtype)), variable.units, meaning)
    return "| " + " | ".join(_cell(cell) for cell in (*cells, variable.source)) + " |"


def _cell(text: str) -> str:
    # Escape the bar, which Markdown tables read as a column border (|h| is full of them).
    return text.replace("|", "\\|")
