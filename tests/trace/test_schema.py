"""The schema holds what the contract fixes, and the reference page holds the schema."""

from __future__ import annotations

import re

import numpy as np
import pytest

from wirelessfl.trace import Status, axis_label, axis_scale, reference_markdown
from wirelessfl.trace.schema import EVENTS, GROUPS, MODEL, PRIVACY, ROOT, SECAGG

# The names of the contract, copied by hand: the schema may hold more, never fewer.
PER_ROUND = [
    "sim_time",
    "wall_time",
    "test_accuracy",
    "test_loss",
    "train_loss",
    "participants",
    "server_gain",
    "channel_noise_std",
    "effective_noise_std",
    "jammer_gain",
    "jammer_channel_re",
    "jammer_channel_im",
    "jammer_energy",
    "airtime",
    "energy",
    "epsilon_published",
    "epsilon_accounted",
]
PER_SLOT = [
    "client_id",
    "channel_re",
    "channel_im",
    "csi_re",
    "csi_im",
    "backoff",
    "tx_gain_abs",
    "tx_energy",
    "tx_energy_j",
    "path_gain",
    "update_norm",
    "update_norm_raw",
    "compute_time",
    "status",
]
PER_CLIENT = [
    "samples",
    "weight",
    "power_budget",
    "distance",
    "client_epsilon_published",
    "client_epsilon_accounted",
]


@pytest.mark.parametrize(
    ("dims", "names"),
    [(("round",), PER_ROUND), (("round", "slot"), PER_SLOT), (("client",), PER_CLIENT)],
)
def test_root_holds_the_names_of_the_contract(dims: tuple[str, ...], names: list[str]) -> None:
    assert set(names) <= {variable.name for variable in ROOT.of(*dims)}


def test_groups_hold_the_names_of_the_contract() -> None:
    assert {"time", "node", "kind", "round", "bits"} == {variable.name for variable in EVENTS.variables}
    assert {"air_effective_noise_std", "air_accounted_noise_std", "air_received_bound"} <= {
        v.name for v in PRIVACY.variables
    }
    assert {"round", "weights", "initial"} == {variable.name for variable in MODEL.variables}
    assert {"messages_up", "messages_down", "bits_up", "bits_down", "dropouts"} <= {
        v.name for v in SECAGG.of("round", "stage")
    }


def test_status_codes_are_those_of_the_contract() -> None:
    names = ["empty slot", "participated", "unavailable", "crashed", "late", "deep fade", "jamming", "battery empty"]
    assert [status.name.lower().replace("_", " ") for status in Status][: len(names)] == names
    assert [int(status) for status in Status] == list(range(len(Status)))


def test_absent_values_are_nan_and_never_zero() -> None:
    for group in GROUPS:
        for variable in group.variables:
            kind = np.dtype(variable.dtype).kind
            assert kind in "fiuS"
            if kind == "f":
                assert np.isnan(variable.fill)
            elif kind == "S":
                assert variable.fill == b""
            else:
                # Whole numbers have no NaN: −1 is no id and no count, and 0 is kept free in every enumeration.
                assert variable.fill == (-1 if kind == "i" else 0)


def test_names_are_unique_and_described() -> None:
    for group in GROUPS:
        stored = (*group.coordinates, *group.variables)
        assert len({variable.name for variable in stored}) == len(stored)
        for variable in stored:
            assert variable.long_name
            assert variable.units
            # Codes are unsigned bytes; a longer enumeration would wrap.
            assert variable.flags is None or max(variable.flags) < 256


def test_reference_page_has_one_row_for_every_variable_and_attribute() -> None:
    lines = reference_markdown().splitlines()
    for group in GROUPS:
        start = lines.index(f"## `{group.path}`")
        end = next((i for i in range(start + 1, len(lines)) if lines[i].startswith("## ")), len(lines))
        rows = [line for line in lines[start:end] if line.startswith("| `")]
        described = [*(v.name for v in (*group.coordinates, *group.variables)), *(a.name for a in group.attributes)]
        assert [row.split("`")[1] for row in rows] == described


def test_reference_page_escapes_bars_so_that_every_table_row_has_its_columns() -> None:
    for line in reference_markdown().splitlines():
        if line.startswith("| `"):
            assert line.replace("\\|", "").count("|") in (7, 3)
    assert "\\|h_CJ\\|" in reference_markdown()
    assert "7 battery empty" in reference_markdown()


def test_every_variable_of_the_root_group_has_a_label_with_its_unit() -> None:
    for variable in (*ROOT.coordinates, *ROOT.variables):
        assert variable.label and not re.search("_[a-z]{2}", variable.label), "no raw key"
        assert "label" not in variable.attributes() and "percent" not in variable.attributes()
    labels = {
        name: axis_label(name) for name in ("test_accuracy", "epsilon_accounted", "energy", "tx_energy", "sim_time")
    }
    assert labels == {
        "test_accuracy": "test accuracy (%)",
        "epsilon_accounted": "ε accounted",
        "energy": "energy (J)",
        "tx_energy": "energy sent (noise = 1)",
        "sim_time": "simulated time (s)",
    }
    assert {name: axis_label(name) for name in labels} == labels
    assert (axis_scale("test_accuracy"), axis_scale("energy")) == (100.0, 1.0)
