"""The trace schema as data: writer, reader, reference page and the labels of axes come from these tables.

Adding a quantity to the trace is adding one row to one of them. Every number is SI; "1" marks a dimensionless quantity
and "normalised" one in the units of RADIO's normalised link, where the receiver noise is σ_c² = 1 per real symbol.
"""

from functools import partial

from wirelessfl.trace.attributes import ATTRIBUTES
from wirelessfl.trace.layout import Group, Variable
from wirelessfl.trace.round_variables import ROUND_VARIABLES
from wirelessfl.trace.side_groups import EVENTS, MODEL, PRIVACY, SECAGG
from wirelessfl.trace.slot_variables import SLOT_VARIABLES

__all__ = ["EVENTS", "GROUPS", "MODEL", "PRIVACY", "ROOT", "SECAGG", "axis_label", "axis_scale"]

_PAPER = "ota-cross-layer-dp"
_per_round = partial(Variable, dims=("round",))
_per_client = partial(Variable, dims=("client",))

ROOT = Group(
    "/",
    "one row per round; round, slot: the clients selected in a round; client: every client selected at least once",
    coordinates=(
        _per_round(
            "round", "1", "communication round m; its length counts the rounds on disk", dtype="i8", label="round"
        ),
        Variable(
            "slot", "1", "position among the clients selected in a round", dims=("slot",), dtype="i8", label="slot"
        ),
        _per_client("client", "1", "client id i", dtype="i8", label="client"),
    ),
    variables=(
        *ROUND_VARIABLES,
        *SLOT_VARIABLES,
        _per_client("samples", "1", "training samples n_i", dtype="i8", required=True, label="training samples"),
        _per_client("weight", "1", "aggregation weight p_i = n_i / |D|", label="weight p"),
        _per_client(
            "power_budget",
            "normalised",
            "transmit energy budget per round P_i (on average where the power control limits that)",
            label="energy budget",
        ),
        _per_client("distance", "m", "distance to the server", label="distance"),
        _per_client(
            "client_epsilon_published",
            "1",
            "ε of this client by the paper's theorem",
            f"{_PAPER}, Theorems 1 and 3",
            label="ε published",
        ),
        _per_client(
            "client_epsilon_accounted", "1", "ε of this client for the mechanism that actually ran", label="ε accounted"
        ),
    ),
    attributes=ATTRIBUTES,
)

GROUPS = (ROOT, EVENTS, PRIVACY, MODEL, SECAGG)
"""Every group of the trace."""


_LABELLED = {variable.name: variable for variable in (*ROOT.coordinates, *ROOT.variables)}


def axis_label(name: str) -> str:
    """Label of an axis for a variable of the root group: its words for people, and its unit."""
    variable = _LABELLED[name]
    unit = "%" if variable.percent else {"1": "", "normalised": "noise = 1"}.get(variable.units, variable.units)
    return f"{variable.label} ({unit})" if unit else variable.label


def axis_scale(name: str) -> float:
    """Factor from the numbers of the trace to those on its axis: 100 for shares in percent, else 1."""
    return 100.0 if _LABELLED[name].percent else 1.0
